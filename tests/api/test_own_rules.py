"""A package's own rules, as docs/how-to/own-rules.md has them: the code of that page is what runs here."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from documents import PAGES

PAGE = PAGES["how-to/own-rules.md"]
SLUG = "mylib-moved-twice"
FILES = dict(re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```', PAGE, re.M | re.S))
SHOWN = re.findall(r"^```text\n(.*?)^```", PAGE, re.M | re.S)[0]
BAD = """
FEATURE = {
    "cost rule": {"bad-cost": "bad:costs", "no-module": "gone:costs"},
    "error rule": {"bad-error": "bad:errors"},
}
TOO_MUCH = {"command": {}}

def costs(queries, tally):
    raise LookupError("made to fail")

def errors(queries, snapshot, op, text):
    raise LookupError("made to fail")
"""


def installed(folder: Path, name: str, points: dict[str, str]) -> None:
    """Put what pip would beside a package that was installed."""
    entries = "".join(f"{point} = {value}\n" for point, value in points.items())
    information = folder / f"{name}-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[devtrace.features]\n{entries}")


def with_the_package(folder: Path) -> None:
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    project = tomllib.loads(FILES["pyproject.toml"])["project"]
    installed(folder, "mylib_rules", project["entry-points"]["devtrace.features"])


def report_of_a_run(folder: Path, *options: str) -> str:
    command = [sys.executable, "-m", "devtrace", "run", "--simulate", "cuda:2", *options, "train.py"]
    known = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    return subprocess.run(command, cwd=folder, env=known, capture_output=True, text=True, check=False).stderr


def test_the_finding_of_a_packages_rule_is_in_each_form_of_the_report(tmp_path: Path) -> None:
    with_the_package(tmp_path)
    forms = {form: tmp_path / f"found.{form}" for form in ("json", "sarif", "html")}
    text = report_of_a_run(tmp_path, *(word for form, path in forms.items() for word in (f"--{form}", str(path))))
    assert SHOWN in text
    [found] = [each for each in json.loads(forms["json"].read_text())["findings"] if each["rule"] == SLUG]
    assert (found["severity"], found["site"]["line"]) == ("warning", 4)
    [run] = json.loads(forms["sarif"].read_text())["runs"]
    assert [each["level"] for each in run["results"] if each["ruleId"] == SLUG] == ["warning"]
    assert [each["shortDescription"] for each in run["tool"]["driver"]["rules"] if each["id"] == SLUG]
    assert f'data-rule="{SLUG}"' in forms["html"].read_text()


def test_what_fails_of_a_package_is_a_line_each_and_silences_nothing(tmp_path: Path) -> None:
    with_the_package(tmp_path)
    (tmp_path / "train.py").write_text(FILES["train.py"] + "near + points\n")
    (tmp_path / "bad.py").write_text(BAD)
    installed(tmp_path, "bad", {"bad": "bad:FEATURE", "foreign": "bad:TOO_MUCH", "absent": "nowhere:FEATURE"})
    text = report_of_a_run(tmp_path)
    assert SHOWN.splitlines()[0] in text
    assert "`points` is on cpu; the other input of this op is on cuda:1" in text
    for line in (
        "the rule bad-cost failed (LookupError: made to fail)",
        "the rule bad-error failed (LookupError: made to fail)",
        "the rule no-module failed (ModuleNotFoundError: No module named 'gone')",
        "the rules of absent are left out (ModuleNotFoundError: No module named 'nowhere')",
        "the rules of foreign are left out (UsageError: feature-point: got the point `command`;",
    ):
        assert text.count(line) == 1, text
