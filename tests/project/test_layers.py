"""The allow-list of who may know whom (DESIGN: arrows point down), for both languages.

A package that is not in a list may import nothing of ours: add a new one here with what it needs, below itself. Between
files no import leads back to where it began, a type-checker's included, and no file is longer than a reader's patience.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from devtrace.features import FEATURES
from folders import ROOT
from trees import nodes

PYTHON = ROOT / "src" / "devtrace"
TYPESCRIPT = ROOT / "labextension" / "src"

# Package of the kernel -> the others that it may import: none of a feature, which it asks `features` for.
KERNEL = {
    "words": set[str](),
    "source": set[str](),
    "features": {"words"},
    "runtime": {"features", "words"},
    "trace": {"runtime", "words"},
    "recording": {"features", "runtime", "source", "trace"},
    "diagnosis": {"features", "runtime", "source", "trace", "words"},
    "contract": {"diagnosis", "runtime", "words"},
    "report": {"contract", "diagnosis", "features", "runtime", "trace", "words"},
}
_BELOW_THE_API = set(KERNEL)
KERNEL["api"] = _BELOW_THE_API | {"__init__"}
_BELOW_THE_DOORS = _BELOW_THE_API | {"api"}
KERNEL |= {
    "notebook": _BELOW_THE_DOORS,
    "cli": _BELOW_THE_DOORS,
    "__main__": {"cli"},
    # The names, for type checkers; test_package holds what it loads.
    "__init__": _BELOW_THE_DOORS | {"notebook"},
}
# A feature may import the kernel, and no other feature; of devices that are pretended nobody need know more.
ALLOWED = KERNEL | {name: set(KERNEL) for name in FEATURES} | {"simulation": {"features", "runtime", "words"}}

# Within a package, from the bottom up: a folder may import those before it.
INSIDE = {
    "budget": ["segments", "reads", "lines", "budget"],
    "recording": ["columns", "folding", "hot", "context", "progress", "finish", "recording"],
    "diagnosis": [
        "slugs",
        "findings",
        "edits",
        "evidence",
        "fixes",
        "causes",
        "messages",
        "ledger",
        "rules",
        "ending",
        "silence",
        "store",
        "diagnose",
    ],
    "explaining": [
        "stack", "reading", "worker_text", "kept_copies", "explanation", "explain", "installation",
        "failed_cells", "run_untraced", "command", "feature",
    ],
    "fixing": ["values", "source_text", "program", "rounds", "notebooks", "command", "feature"],
    "notebook": [
        "usage", "inventory", "left_on_devices", "cells", "companion", "earlier_cells", "device_list", "kept_traces",
        "commands", "panel", "panel_comm", "live_view", "magic", "quiet_shell",
    ],
    "cli": ["run_program", "output", "parser", "reports", "launch", "main"],
}  # fmt: skip

# A package that costs or binds -> the modules that may import it at run time (a type-checker's import is free).
CONFINED = {
    "torch": {
        "recording", "simulation", "explaining", "memory", "dtypes.autocast_recorder",
        "runtime.mode_stack",
        "runtime.quiet", "runtime.eager_paths", "runtime.profiles", "runtime.scripting",
        "runtime.torch_names", "runtime.watched_reads",
        "api.environment",
    },
    "IPython": {"notebook.magic", "notebook.quiet_shell"},
    "ipywidgets": {"notebook.live_view"},
    "anywidget": {"notebook.live_view"},
    "comm": {"notebook.panel_comm"},
    "plotly": {"drawing.figures"},
    "pandas": {"interchange.pandas_tables"},
}  # fmt: skip

LONGEST_FILE = 400

# `isinstance(node, ast.X)` in all files: what a piece of code is or does is asked of source.matching and source.defuse.
MOST_TREE_QUESTIONS = 150

TS_ORDER = ["model", "layout", "paint", "view", "jupyter"]
TS_PACKAGES = {"jupyter": ("@jupyterlab/", "@lumino/", "@jupyter-widgets/", "@codemirror/")}
TS_IMPORT = re.compile(
    r"""^\s*(?:import|export)\b(?:[^'"=;]*\bfrom)?\s*["']([^"']+)["']|\bimport\(\s*["']([^"']+)["']""", re.M
)


def python_violations(root: Path) -> list[str]:
    """Every import below `root` (a devtrace package) that the lists above do not allow, as `file: sentence`."""
    return [
        f"{path.relative_to(root)}: {reason}"
        for path in sorted(root.rglob("*.py"))
        for module, typing in _imports(path, root)
        if (reason := _python_reason(path.relative_to(root), module, typing=typing))
    ]


def _python_reason(path: Path, module: str, *, typing: bool) -> str | None:
    here = ".".join(path.with_suffix("").parts)
    top, _, target = module.partition(".")
    if top == "devtrace":
        return _reason_of_ours(here, target or "__init__")
    if typing or not (allowed := CONFINED.get(top)):
        return None
    known = any(here == name or here.startswith(f"{name}.") for name in allowed)
    return None if known else f"{top} is for {sorted(allowed)} only"


def _reason_of_ours(here: str, target: str) -> str | None:
    package, other = here.split(".")[0], target.split(".")[0]
    if package != other:
        return None if other in ALLOWED.get(package, ()) else f"{package} may not import {other}"
    order = INSIDE.get(package, [])
    below, above = (next(iter(name.split(".")[1:]), "") for name in (target, here))
    if below in order and above in order and order.index(below) > order.index(above):
        return f"{package}.{above} may not import {package}.{below}"
    return None


def python_imports(root: Path) -> dict[str, set[str]]:
    """Return the files below `root`, each with those that it imports, for the type checker too."""
    files = {".".join(path.relative_to(root).with_suffix("").parts): path for path in root.rglob("*.py")}
    return {
        name: {found for module, _ in _imports(path, root) if (found := _file_of(module, files)) is not None}
        for name, path in files.items()
    }


def _file_of(module: str, files: Mapping[str, Path]) -> str | None:
    name = module.removeprefix("devtrace").removeprefix(".")
    candidates = (name, f"{name}.__init__", name.rpartition(".")[0], f"{name.rpartition('.')[0]}.__init__")
    return next((found for found in candidates if found in files), None) if module.startswith("devtrace.") else None


@cache
def _imports(path: Path, root: Path) -> list[tuple[str, bool]]:
    """Each imported module of a file, fully named, and whether only the type checker imports it."""
    typing: set[int] = set()
    for node in nodes(path):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            typing |= {id(inner) for statement in node.body for inner in ast.walk(statement)}
    package = ["devtrace", *path.relative_to(root).parts[:-1]]
    return [(name, id(node) in typing) for node in nodes(path) for name in _names(node, package)]


def _names(node: ast.AST, package: list[str]) -> list[str]:
    """Return what an import statement names: modules, and names that may be modules."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = package[: len(package) - node.level + 1] if node.level else []
    module = ".".join([*base, *([node.module] if node.module else [])])
    return [f"{module}.{alias.name}" for alias in node.names] if module.startswith("devtrace") else [module]


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


def typescript_imports(root: Path) -> dict[str, set[str]]:
    """Return the files below `root`, each with those that it imports, types included."""
    return {
        str(path.relative_to(root)): {
            str(found.relative_to(root.resolve()))
            for match in TS_IMPORT.finditer(path.read_text(encoding="utf-8"))
            if (target := match[1] or match[2]).startswith(".")
            and (found := (path.parent / target).resolve().with_suffix(".ts")).exists()
        }
        for path in root.rglob("*.ts")
    }


def circle(imports: Mapping[str, set[str]]) -> list[str]:
    """Files that import each other, in order; empty where there are none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return [str(name) for name in error.args[1]]
    return []


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


def test_the_allow_list_itself_has_no_circle_below_the_package() -> None:
    assert circle({name: allowed for name, allowed in ALLOWED.items() if name != "__init__"}) == []


def test_no_import_leads_back_to_its_own_file() -> None:
    assert circle(python_imports(PYTHON)) == []
    assert circle(typescript_imports(TYPESCRIPT)) == []


def test_recording_and_simulation_know_nothing_of_what_reads_the_trace() -> None:
    assert ALLOWED["recording"] == {"features", "runtime", "source", "trace"}
    assert ALLOWED["simulation"] == {"features", "runtime", "words"}


def test_diagnosis_needs_no_running_program() -> None:
    """It looks at stand-ins: at no frame, no live object, and at nothing of torch's."""
    asked = re.compile(r"\bFrameType\b|\b_getframe\b|\bgc\.|^import torch|^from torch\b", re.M)
    texts = {path.name: path.read_text(encoding="utf-8") for path in (PYTHON / "diagnosis").rglob("*.py")}
    assert {name for name, text in texts.items() if asked.search(text)} == set()
    code = "import sys, devtrace.diagnosis.diagnose; print({'torch', 'IPython'}.intersection(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "set()\n"


def test_beside_the_packages_there_is_only_what_python_asks_for() -> None:
    loose = {path.name for path in PYTHON.iterdir() if path.is_file()}
    schemas = {"devtrace.schema.json", "findings.schema.json"}
    assert loose == {"__init__.py", "__main__.py", "features.py", "py.typed", *schemas}


def test_no_file_is_too_long_to_read() -> None:
    files = [*PYTHON.rglob("*.py"), *TYPESCRIPT.rglob("*.ts")]
    lengths = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    assert {name: length for name, length in lengths.items() if length >= LONGEST_FILE} == {}


def test_a_file_that_imports_for_the_type_checker_evaluates_no_annotation() -> None:
    """Else its annotations fail where the file is imported; other files need no line for it."""
    late = "from __future__ import annotations\n"
    texts = {path.name: path.read_text(encoding="utf-8") for path in PYTHON.rglob("*.py")}
    assert [name for name, text in texts.items() if "if TYPE_CHECKING" in text and late not in text] == []


def test_trees_are_asked_in_few_ways() -> None:
    calls = [node for path in PYTHON.rglob("*.py") for node in nodes(path) if isinstance(node, ast.Call)]
    asked = [node for node in calls if isinstance(node.func, ast.Name) and node.func.id == "isinstance"]
    assert sum("ast." in ast.unparse(node.args[1]) for node in asked) <= MOST_TREE_QUESTIONS


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("trace/tables.py", "import torch", "torch is for"),
        ("trace/tables.py", "from devtrace.diagnosis import findings", "trace may not import diagnosis"),
        (
            "recording/context/modules.py",
            "def f():\n    import devtrace.diagnosis",
            "recording may not import diagnosis",
        ),
        ("recording/modules.py", "from ..simulation import devices", "recording may not import simulation"),
        ("recording/columns/chunk.py", "from devtrace.recording.hot import dispatch", "columns may not import"),
        ("diagnosis/evidence/names.py", "from devtrace.diagnosis.rules import copies", "evidence may not import"),
        ("diagnosis/causes/never_moved.py", "import torch", "torch is for"),
        ("trace/tables.py", "from devtrace import api", "trace may not import api"),
        ("api/recording.py", "from IPython import get_ipython", "IPython is for"),
        ("api/recording.py", "from devtrace.notebook.magic import load", "api may not import notebook"),
        ("report/page.py", "def f():\n    from devtrace.jobs import page", "report may not import jobs"),
        ("memory/report.py", "from devtrace.drawing import svg", "memory may not import drawing"),
        ("unheard.py", "from devtrace import trace", "unheard may not import trace"),
    ],
)
def test_a_forbidden_python_import_is_found(tmp_path: Path, file: str, text: str, reason: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    assert [reason in violation for violation in python_violations(tmp_path)] == [True]


def test_a_circle_of_files_is_found_whoever_the_import_is_for(tmp_path: Path) -> None:
    (tmp_path / "trace").mkdir()
    (tmp_path / "trace" / "a.py").write_text("from devtrace.trace.b import B")
    (tmp_path / "trace" / "b.py").write_text("if TYPE_CHECKING:\n    from devtrace.trace import a")
    assert set(circle(python_imports(tmp_path))) == {"trace.a", "trace.b"}
    (tmp_path / "a.ts").write_text("import type { B } from './b';")
    (tmp_path / "b.ts").write_text("export * from './a';")
    assert set(circle(typescript_imports(tmp_path))) == {"a.ts", "b.ts"}


def test_an_import_for_the_type_checker_is_free(tmp_path: Path) -> None:
    (tmp_path / "trace.py").write_text("if TYPE_CHECKING:\n    import torch\n")
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
