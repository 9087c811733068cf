"""What must hold of the package as a whole: names, cost of the import, version, lock files, the environment's gates."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from importlib.metadata import PackageNotFoundError, distributions
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

import devtrace
from devtrace.runtime import requirements
from devtrace.words import errors
from folders import ROOT
from warm import LIMIT

LOCKS = ("yarn.lock", "requirements/constraints.txt", "requirements/dev.txt", "requirements/oldest.txt")


def python(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a Python of its own."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT, check=False)


def tracked_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout: no list of tracked files")
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def test_importing_devtrace_imports_nothing_that_costs() -> None:
    result = python("import sys; before = set(sys.modules); import devtrace; print(*(set(sys.modules) - before))")
    loaded = {name.split(".")[0] for name in result.stdout.split()}
    assert "devtrace" in loaded
    assert not loaded & {"torch", "IPython", "numpy", "ipywidgets", "jupyterlab", "plotly", "pandas"}
    assert not [name for name in result.stdout.split() if name.startswith("devtrace.")]


def test_no_module_of_ours_has_a_public_name() -> None:
    """Import would bind the module to the name, and `devtrace.record` would be a module one time in two."""
    modules = {path.stem for path in (ROOT / "src" / "devtrace").iterdir()}
    assert not modules & set(devtrace.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'devtrace' has no attribute 'no_such_name'"):
        _ = devtrace.no_such_name


def test_every_public_name_is_listed_by_dir() -> None:
    assert {"record", "simulate", "diagnose", "expect", "load", "Trace", "LiveView"} <= set(dir(devtrace))


def test_type_checkers_see_each_public_name_where_it_is_taken_from() -> None:
    tree = ast.parse((ROOT / "src" / "devtrace" / "__init__.py").read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    typed = {
        alias.name: node.module.removeprefix("devtrace.")
        for node in imports
        if node.module and node.module.startswith("devtrace.")
        for alias in node.names
        if alias.asname == alias.name
    }
    assert typed.items() <= devtrace._TAKEN_FROM.items()
    built = {name for name, module in devtrace._TAKEN_FROM.items() if importlib.util.find_spec(f"devtrace.{module}")}
    assert {name for name in built if hasattr(devtrace, name)} <= set(typed)


def test_package_json_has_the_one_version_number() -> None:
    version = json.loads((ROOT / "package.json").read_text())["version"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in project["project"]
    assert project["tool"]["hatch"]["version"]["path"] == "package.json"
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text()
    assert devtrace.__version__ == version, "installed from another version: run `make lab` or `make test` again"


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_file_carries_no_address(name: str) -> None:
    text = (ROOT / name).read_text()
    assert not re.findall(r"https?://\S+|git\+|\bresolved\b|\bfile:|index-url|find-links", text)


def test_what_is_pinned_takes_the_oldest_python_that_devtrace_takes() -> None:
    """One that asks for 3.11.5 lets `make` fail on Debian 12, whose Python is 3.11.2."""
    pinned = set(re.findall(r"^\S+==\S+", (ROOT / "requirements" / "constraints.txt").read_text(), re.MULTILINE))
    here = {f"{each.name}=={each.version}": each.metadata["Requires-Python"] or "" for each in distributions()}
    assert len(pinned & set(here)) > 50
    assert [pin for pin in pinned & set(here) if "3.11.0" not in SpecifierSet(here[pin])] == []


def test_no_tracked_file_names_a_path_of_this_machine_or_a_download() -> None:
    private = {str(path) for path in (ROOT, ROOT.parent, Path.home())} - {"/", tempfile.gettempdir()}
    paths = "|".join(map(re.escape, sorted(private)))
    leak = re.compile(rf"(?<![\w.])(?:{paths})/|https?://[^ \"']*(?:/simple/|\.tgz|\.whl|\.deb)")
    found = []
    for path in tracked_files():
        text = path.read_bytes().decode("utf-8", "replace")
        found += [f"{path.relative_to(ROOT)}: {hit}" for hit in leak.findall(text) if path != Path(__file__)]
    assert found == []


def test_no_tracked_file_is_built_or_large() -> None:
    built = ("src/devtrace/labextension", "src/devtrace/static", "labextension/lib", "node_modules", "build")
    names = [path.relative_to(ROOT).as_posix() for path in tracked_files()]
    assert [name for name in names if name.startswith(built)] == []
    assert [name for name in names if (ROOT / name).stat().st_size > 600 * 1024] == []


def test_a_message_names_what_was_got_expected_and_to_do() -> None:
    error = errors.FormatError("trace-newer", "version 3", "this devtrace reads version 1", "update devtrace")
    assert str(error) == "trace-newer: got version 3; this devtrace reads version 1; update devtrace."
    assert error.slug == "trace-newer"
    assert isinstance(error, errors.DevtraceError)


def test_a_missing_torch_gets_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(requirements, "version", missing)
    with pytest.raises(errors.SetupError, match=r"^torch-missing: got a Python without torch; .*pip install torch"):
        requirements.need_torch()


@pytest.mark.parametrize("found", ["2.9.1", "1.13.1+cu117"])
def test_a_torch_too_old_gets_one_sentence(monkeypatch: pytest.MonkeyPatch, found: str) -> None:
    monkeypatch.setattr(requirements, "version", lambda name: found)
    with pytest.raises(errors.SetupError, match=rf"^torch-too-old: got torch {re.escape(found)}; .*2\.10 or newer"):
        requirements.need_torch()


@pytest.mark.parametrize("found", ["2.10.0", "2.13.0+cpu", "3.0.0a0+git123"])
def test_a_torch_that_is_new_enough_passes(monkeypatch: pytest.MonkeyPatch, found: str) -> None:
    monkeypatch.setattr(requirements, "version", lambda name: found)
    requirements.need_torch()


def test_a_python_too_old_gets_one_sentence() -> None:
    result = python("import sys; sys.version_info = (3, 10, 13); sys.version = '3.10.13 (main)'; import devtrace")
    assert result.stderr.splitlines()[-1].startswith("ImportError: python-too-old: got Python 3.10.13; devtrace needs")


def test_the_oldest_torch_is_the_one_that_the_package_asks_for() -> None:
    oldest = ".".join(map(str, requirements.OLDEST_TORCH))
    assert f'\n  "torch>={oldest}",\n' in (ROOT / "pyproject.toml").read_text()  # as the Makefile reads it
    assert not re.search("^torch", (ROOT / "requirements" / "oldest.txt").read_text(), re.M)
