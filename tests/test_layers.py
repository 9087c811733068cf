"""The allow-list of who may know whom (DESIGN: arrows point down), for both languages.

A name that is not in a list may import nothing of ours: add a new module here with what it needs, below itself.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PYTHON = ROOT / "src" / "devtrace"
TYPESCRIPT = ROOT / "labextension" / "src"

# Top-level module or package of devtrace -> the ones it may import.
ALLOWED = {
    "errors": set[str](),
    "gates": {"errors"},
    "columns": set[str](),
    "trace": {"columns", "errors"},
    "builder": {"trace", "columns", "errors"},
    "source": set[str](),
    "live_objects": set[str](),
    "plain": set[str](),
    "palette": set[str](),
    "lanes": {"palette", "plain", "trace"},
    "bars": {"lanes", "palette", "trace"},
    "svg": {"bars", "lanes", "palette", "plain", "trace"},
    "inventory": {"source"},
    "rules": {"trace", "columns"},
    "dump": {"trace", "columns"},
    "schema": {"columns"},
    "format": {"rules", "builder", "trace", "columns", "errors"},
    "tally": set[str](),
    "job": set[str](),
    "record": {"tally", "job", "tracebacks", "live_objects", "source", "builder", "trace", "columns", "errors"},
    "spec": {"errors"},
    "simulate": {"spec", "errors"},
    "report": {"builder", "trace", "columns", "errors"},
    "diagnose": {"tally", "live_objects", "report", "source", "builder", "trace", "columns", "errors"},
    "cut": {"trace", "columns"},
    "html": {"report", "svg", "palette", "plain"},
    "page": {"html", "plain", "format", "report"},
    "progress": {"plain"},
    "running": {"tracebacks", "errors"},
    "ranks": {"format", "builder", "trace", "columns", "errors"},
    "environment": {"gates", "simulate", "errors"},
    "export": {"trace", "columns"},
    "perfetto": {"lanes", "plain", "trace"},
    "unmet": {"diagnose", "plain", "report", "trace", "errors"},
    "expect": {"session", "unmet", "diagnose", "record", "report", "builder", "source", "plain", "errors"},
    "session": {
        "live_objects",
        "tracebacks",
        "diagnose",
        "report",
        "record",
        "simulate",
        "format",
        "builder",
        "trace",
        "columns",
        "errors",
        "unmet",
    },
    "comparison": {"display", "html", "page", "report", "format", "plain", "trace"},
    "diff": {"comparison", "diagnose", "ranks", "report", "plain", "trace"},
    "profiler": {"record", "builder", "trace", "errors"},
    "figures": {"lanes", "palette", "plain", "trace", "columns", "errors"},
    "display": {"cut", "html", "page", "plain", "report", "format", "trace"},
    "launch": {"arrival", "session", "progress", "running", "job", "page", "errors"},
}
ALLOWED |= {
    "arrival": set[str](),
    "tracebacks": set[str](),
    "usage": {"errors"},
    "cells": {"arrival", "usage", "session", "simulate", "record", "report", "trace", "errors"},
    "commands": {"cells", "usage", "job", "display", "environment", "report", "trace", "errors"},
}
ALLOWED["panel"] = {"inventory", "cells", "cut", "format", "record", "trace", "errors"}
_BELOW_THE_DOORS = set(ALLOWED) | {"__init__"}
ALLOWED |= {
    "magic": _BELOW_THE_DOORS | {"live"},
    "live": _BELOW_THE_DOORS,
    "live_view": _BELOW_THE_DOORS,
    "cli": _BELOW_THE_DOORS,
    "__main__": {"cli"},
    "pytest_plugin": _BELOW_THE_DOORS,
    # The names, for type checkers; test_package holds what it loads.
    "__init__": _BELOW_THE_DOORS | {"magic", "live", "live_view"},
}

# Methods that the API puts on a lower object and that only forward (trace.save), imported in the method.
FORWARDED = {"trace": {"format", "export", "perfetto"}, "report": {"page", "figures", "display"}}

# A package that costs or binds -> the modules that may import it at run time (a type-checker's import is free).
CONFINED = {
    "torch": {"record", "simulate", "diagnose", "environment"},
    "IPython": {"magic"},
    "ipywidgets": {"live_view"},
    "comm": {"live"},
    "plotly": {"figures"},
    "pandas": {"trace", "export"},
}
# DESIGN 4: one place of diagnose/ looks at live objects.
MOST_TORCH_FILES = {"diagnose": 1}

TS_ORDER = ["model", "layout", "paint", "view", "jupyter"]
TS_PACKAGES = {"jupyter": ("@jupyterlab/", "@lumino/", "@jupyter-widgets/", "@codemirror/")}
TS_IMPORT = re.compile(
    r"""^\s*(?:import|export)\b(?:[^'"=;]*\bfrom)?\s*["']([^"']+)["']|\bimport\(\s*["']([^"']+)["']""", re.M
)


def python_violations(root: Path) -> list[str]:
    """Every import below `root` (a devtrace package) that the lists above do not allow, as `file: sentence`."""
    found = []
    torch_files: dict[str, set[Path]] = {}
    for path in sorted(root.rglob("*.py")):
        here = path.relative_to(root).parts[0].removesuffix(".py")
        for module, inside in _imports(path, root):
            top, _, rest = module.partition(".")
            if top == "devtrace":
                target = rest.split(".")[0] or "__init__"
                forwarded = FORWARDED.get(here, set()) if inside == "function" else set()
                if target != here and target not in ALLOWED.get(here, set()) | forwarded:
                    found.append(f"{path.relative_to(root)}: {here} may not import {target}")
            elif top in CONFINED and inside != "typing":
                if here not in CONFINED[top]:
                    found.append(f"{path.relative_to(root)}: {top} is for {sorted(CONFINED[top])} only")
                if top == "torch":
                    torch_files.setdefault(here, set()).add(path)
    found += [
        f"{here}: {len(files)} files import torch, {MOST_TORCH_FILES[here]} may"
        for here, files in torch_files.items()
        if len(files) > MOST_TORCH_FILES.get(here, len(files))
    ]
    return found


def _imports(path: Path, root: Path) -> Iterator[tuple[str, str]]:
    """Each imported module of a file, fully named, and where: in a "typing" block, a "function", the "file"."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside: dict[int, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inside |= {id(inner): "function" for inner in ast.walk(node)}
        elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            inside |= {id(inner): "typing" for statement in node.body for inner in ast.walk(statement)}
    package = ["devtrace", *path.relative_to(root).parts[:-1]]
    for node in ast.walk(tree):
        for name in _names(node, package):
            yield name, inside.get(id(node), "file")


def _names(node: ast.AST, package: list[str]) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = package[: len(package) - node.level + 1] if node.level else []
    module = ".".join([*base, *([node.module] if node.module else [])])
    return [f"{module}.{alias.name}" for alias in node.names] if module == "devtrace" else [module]


def typescript_violations(root: Path) -> list[str]:
    """Every import below `root` (labextension/src) that goes up, sideways out of the folders, or a confined package."""
    found = []
    for path in sorted(root.rglob("*.ts*")):
        here = path.relative_to(root).parts[0]
        if here not in TS_ORDER:
            found.append(f"{path.relative_to(root)}: a file belongs to one of {TS_ORDER}")
            continue
        for match in TS_IMPORT.finditer(path.read_text(encoding="utf-8")):
            target = match[1] or match[2]
            if reason := _typescript_reason(here, path, target, root):
                found.append(f"{path.relative_to(root)}: {reason}")
    return found


def _typescript_reason(here: str, path: Path, target: str, root: Path) -> str | None:
    if not target.startswith("."):
        allowed = target.startswith(TS_PACKAGES.get(here, ()))
        return None if allowed else f"{here} may not import {target}"
    resolved = (path.parent / target).resolve()
    if resolved.suffix in (".json", ".css"):
        return None
    if not resolved.is_relative_to(root.resolve()):
        return f"{target} is outside of labextension/src"
    there = resolved.relative_to(root.resolve()).parts[0]
    if TS_ORDER.index(there) > TS_ORDER.index(here):
        return f"{here} may not import {there}"
    return None


def test_python_imports_only_point_down() -> None:
    assert python_violations(PYTHON) == []


def test_typescript_imports_only_point_down() -> None:
    assert typescript_violations(TYPESCRIPT) == []


def test_the_allow_list_itself_has_no_cycle_below_the_package() -> None:
    below = {name: allowed - {"__init__"} for name, allowed in ALLOWED.items() if name != "__init__"}
    assert list(TopologicalSorter(below).static_order())


def test_record_and_simulate_know_nothing_of_what_reads_the_trace() -> None:
    assert not ALLOWED["record"] & {"diagnose", "display", "simulate", "report", "format", "session"}
    assert ALLOWED["simulate"] == {"spec", "errors"}


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("trace.py", "import torch", "torch is for"),
        ("trace.py", "from devtrace.builder import TraceBuilder", "trace may not import builder"),
        ("record/modules.py", "def f():\n    from devtrace import diagnose", "record may not import diagnose"),
        ("record/modules.py", "from ..simulate import devices", "record may not import simulate"),
        ("trace.py", "from devtrace import format", "trace may not import format"),
        ("session.py", "from IPython import get_ipython", "IPython is for"),
        ("session.py", "from devtrace.magic import load", "session may not import magic"),
        ("unheard.py", "from devtrace import trace", "unheard may not import trace"),
    ],
)
def test_a_forbidden_python_import_is_found(tmp_path: Path, file: str, text: str, reason: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    assert [reason in violation for violation in python_violations(tmp_path)] == [True]


def test_a_second_file_of_diagnose_may_not_import_torch(tmp_path: Path) -> None:
    (tmp_path / "diagnose").mkdir()
    for name in ("names.py", "causes.py"):
        (tmp_path / "diagnose" / name).write_text("import torch")
    assert python_violations(tmp_path) == ["diagnose: 2 files import torch, 1 may"]


def test_an_import_for_the_type_checker_is_free(tmp_path: Path) -> None:
    (tmp_path / "session.py").write_text("if TYPE_CHECKING:\n    import torch\n")
    assert python_violations(tmp_path) == []


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("model/decode.ts", "import { Widget } from '@lumino/widgets';", "model may not import @lumino/widgets"),
        ("view/report.ts", "export * from '../jupyter/mime';", "view may not import jupyter"),
        ("paint/boxes.ts", "const later = await import('../view/report');", "paint may not import view"),
        ("layout/lanes.ts", "import {\n  a,\n  b\n} from '../paint/canvas';", "layout may not import paint"),
        ("loose.ts", "", "a file belongs to one of"),
        ("view/report.ts", "import x from 'd3';", "view may not import d3"),
    ],
)
def test_a_forbidden_typescript_import_is_found(tmp_path: Path, file: str, text: str, reason: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    assert [reason in violation for violation in typescript_violations(tmp_path)] == [True]
