"""A public repository's own files: workflows, an action, hooks, templates; each keeps the schema of its format."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import needs
from folders import ROOT

yaml = needs.imported("yaml")
testing = needs.imported("click.testing")
SCHEMAS = {
    ".github/workflows/tests.yml": "vendor.github-workflows",
    ".github/workflows/release.yml": "vendor.github-workflows",
    "action/action.yml": "vendor.github-actions",
    ".github/ISSUE_TEMPLATE/bug.yml": "vendor.github-issue-forms",
    ".github/ISSUE_TEMPLATE/wish.yml": "vendor.github-issue-forms",
    ".github/ISSUE_TEMPLATE/config.yml": "vendor.github-issue-config",
    "CITATION.cff": "vendor.citation-file-format",
}
HOOK = {"id": str, "name": str, "description": str, "entry": str, "language": str, "types": list}


def read(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_file_of_the_repository_keeps_the_schema_of_its_format(name: str) -> None:
    command = needs.imported("check_jsonschema").main
    done = testing.CliRunner().invoke(command, ["--builtin-schema", SCHEMAS[name], str(ROOT / name)])
    assert done.exit_code == 0, done.output


def test_a_hook_of_pre_commit_runs_a_command_of_ours() -> None:
    hooks = read(".pre-commit-hooks.yaml")
    assert len(hooks) == len({hook["id"] for hook in hooks}) == 2
    for hook in hooks:
        assert {key: type(hook[key]) for key in HOOK} == HOOK
        assert hook["entry"].split()[0] in ("devtrace", "pytest")


def test_what_a_workflow_runs_is_there() -> None:
    """Targets of make, scripts and folders."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    text = "\n".join((ROOT / name).read_text() for name in SCHEMAS if "workflows" in name)
    asked = set(re.findall(r"'(test-\w+)'", text))
    assert asked == {"test-oldest", "test-released"}
    assert asked <= targets
    for file in re.findall(r"run: (?:python )?([\w./]+/[\w.]+)$", text, re.M):
        assert (ROOT / file).is_file(), file


def test_nothing_is_published_until_an_owner_has_asked_for_it() -> None:
    jobs = read(".github/workflows/release.yml")["jobs"]
    allowed = {name for name, job in jobs.items() if job.get("permissions", {}).get("id-token") == "write"}
    assert allowed == {"publish"}
    assert "vars.PUBLISH == 'true'" in jobs["publish"]["if"]
    assert set(jobs["publish"]["needs"]) == {"build", "try"}


def test_the_citation_has_the_one_version_number() -> None:
    assert read("CITATION.cff")["version"] == json.loads((ROOT / "package.json").read_text())["version"]


ECHO = '#!/bin/sh\nshift 2\nprintf "%s\\n" "$@"\n'


def action(folder: Path, given: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the step of the action with a Python that only prints what it is given."""
    python = folder / "python"
    python.write_text(ECHO)
    python.chmod(0o755)
    known = {"DEVTRACE_DEVICES": "cuda:1", "DEVTRACE_FAIL_ON": "error", "DEVTRACE_NOTES": "false"}
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", **known, **given}
    step = str(ROOT / "action" / "run")
    return subprocess.run([step], cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_the_action_runs_a_script_or_pytest_and_takes_no_input_for_a_command(tmp_path: Path) -> None:
    ran = action(tmp_path, {"DEVTRACE_RUN": "train.py --lr $(touch no) ; touch no"})
    assert ran.stdout.splitlines()[-7:] == ["train.py", "--lr", "$(touch", "no)", ";", "touch", "no"]
    assert not (tmp_path / "no").exists()
    assert "--fail-on\nerror\n--simulate\ncuda:1\n" in ran.stdout
    tests = action(tmp_path, {"DEVTRACE_PYTEST": "tests -x", "DEVTRACE_NOTES": "true"})
    assert tests.stdout.splitlines()[-4:] == ["--devtrace=cuda:1", "--devtrace-notes", "tests", "-x"]
    assert action(tmp_path, {}).returncode == 2
    assert action(tmp_path, {"DEVTRACE_RUN": "a.py", "DEVTRACE_PYTEST": "tests"}).returncode == 2


@pytest.mark.breadth
def test_the_smoke_test_of_ci_passes_here() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "smoke.py")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
