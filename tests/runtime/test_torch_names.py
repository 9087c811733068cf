"""The inventory of torch's private names: whole, of the kinds that it says, and nothing fails where one has changed."""

from __future__ import annotations

import ast
import itertools
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, Final

import pytest
import torch

from devtrace.runtime import torch_names
from devtrace.simulation import ESSENTIAL
from devtrace.words.catalogue import sentence
from folders import ROOT

SOURCES: Final = ROOT / "src" / "devtrace"
PRIVATE: Final = re.compile(r"_(?!_)\w*[A-Za-z]\w*")
NOT_OF_TORCH: Final = frozenset({
    "_actions", "_optionals", "_positionals",  # argparse
    "_replace", "_fields",  # named tuples
    "_lru_list_elem", "_initializing", "_bootstrap_inner", "_showwarnmsg", "_args", "_closed",  # Python and ipywidgets
    "_queue", "_hf_hook",  # a module of Python; what accelerate keeps of a module that it dispatched
    "_ink", "_on_",  # endings of names of our own
    "_oh", "_raw_saved_",  # IPython; how attributes of a node of autograd begin
})  # fmt: skip
SILENT: Final = ("modules", "trace_impl", "pinned", "calls", "vocabulary")
"""Parts that have another way, or that these programs do not come by."""


def test_each_name_is_as_needed_on_this_torch() -> None:
    assert {part: fault for part in torch_names.names() if (fault := torch_names.fault_of(part))} == {}


@pytest.mark.skipif(torch.version.cuda is None, reason="a build without CUDA has none of them")
def test_each_name_that_a_simulation_replaces_is_in_a_build_with_cuda() -> None:
    missing = []
    for name in itertools.chain(*torch_names.names().values()):
        if name.kind.startswith("put") and not name.is_to_come:
            try:
                torch_names.found(name.path)
            except (AttributeError, ImportError):
                missing.append(name.path)
    assert missing == []


def test_every_private_name_of_torch_in_the_sources_is_in_the_inventory() -> None:
    trees = {path.relative_to(SOURCES): ast.parse(path.read_text("utf-8")) for path in SOURCES.rglob("*.py")}
    paths = {name.path for name in itertools.chain(*torch_names.names().values())}
    steps = {step.partition("(")[0] for path in paths for step in path.split(".")}
    own = {name for tree in trees.values() for name in own_names(tree)} | NOT_OF_TORCH
    operators = " ".join(torch._C._dispatch_get_all_op_names())
    unknown = []
    for path, tree in trees.items():
        for line, name in private_names(tree):
            listed = name in steps | own or f"::{name}" in operators
            if "." in name:
                listed = any(f"{each}.".startswith(f"{name}.") or name.startswith(f"{each}.") for each in paths)
            if not listed:
                unknown.append(f"{path}:{line}: {name}")
    assert unknown == [], unknown


def own_names(tree: ast.Module) -> Iterator[str]:
    """Yield the names that a file gives: definitions, parameters, variables, attributes and slots."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.Assign(targets=[ast.Name(id="__slots__")], value=value):
                yield from (str(each.value) for each in ast.walk(value) if isinstance(each, ast.Constant))


def private_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield private names with their line: from torch by imports with their dots, others as attributes and strings."""
    known = imports(tree)
    rooted: set[int] = set()
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=aliases) if module.partition(".")[0] == "torch":
                yield from (
                    (node.lineno, f"{module}.{alias.name}"[6:])
                    for alias in aliases
                    if is_private(f"{module}.{alias.name}")
                )
            case ast.Attribute() if id(node) not in rooted:
                steps, inner = [node.attr], node.value
                while isinstance(inner, ast.Attribute):
                    rooted.add(id(inner))
                    steps, inner = [inner.attr, *steps], inner.value
                root = known.get(inner.id) if isinstance(inner, ast.Name) else None
                if root is None:
                    yield from ((node.lineno, step) for step in steps if PRIVATE.fullmatch(step))
                elif root.partition(".")[0] == "torch" and is_private(name := ".".join([root, *steps])):
                    yield node.lineno, name[6:]
            case ast.Constant(value=str(text)) if PRIVATE.fullmatch(text) and not text.startswith("_devtrace"):
                yield node.lineno, text


def imports(tree: ast.Module) -> dict[str, str]:
    """Return what each imported name stands for, with dots, and each variable that is another name for it."""
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                known |= {
                    each.asname or each.name.partition(".")[0]: each.name
                    if each.asname
                    else each.name.partition(".")[0]
                    for each in aliases
                }
            case ast.ImportFrom(module=str(module), names=aliases):
                known |= {each.asname or each.name: f"{module}.{each.name}" for each in aliases}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            value = ast.unparse(node.value)
            root, _, rest = value.partition(".")
            if re.fullmatch(r"[\w.]+", value) and known.get(root, "").partition(".")[0] == "torch":
                known[node.targets[0].id] = f"{known[root]}.{rest}".rstrip(".")
    return known


def is_private(name: str) -> bool:
    return "._devtrace" not in name and any(map(PRIVATE.fullmatch, name.split(".")))


ESSENTIAL_NAMES: Final = {
    name.path: "recording" if part == "runtime" else "simulation"
    for part in reversed(ESSENTIAL)
    for name in torch_names.names().get(part, ())
    if not name.is_replaced
}
OTHERS: Final = [
    [name.path for name in names if not name.is_replaced and name.path not in ESSENTIAL_NAMES]
    for part, names in torch_names.names().items()
    if part not in (*ESSENTIAL, "profiler")  # which no recording asks
]
BATCHES: Final = [
    {path: ("missing", "wrong")[(number + at) % 2] for at, path in enumerate(batch) if path}
    for number, batch in enumerate(itertools.zip_longest(*OTHERS))
]
"""One name of each part at a time: the parts do not depend upon one another."""


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Any]:
    script = ROOT / "tests" / "harness" / "broken_torch.py"
    given = json.dumps([list(ESSENTIAL_NAMES.items()), BATCHES])
    done = subprocess.run([sys.executable, script, given], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_without_an_essential_name_there_is_a_sentence_with_that_name(outcomes: dict[str, Any]) -> None:
    refusals: dict[str, str] = outcomes["refusals"]
    slugs = {"SetupError: torch-unfit: got torch", "SimulateError: simulate-torch: got torch"}
    assert len(refusals) == 2 * len(ESSENTIAL_NAMES)
    assert [case for case, text in refusals.items() if text.partition(" 2.")[0] not in slugs] == []
    assert [case for case, text in refusals.items() if f"torch.{case.split()[1]} is" not in text] == []


@pytest.mark.parametrize("number", range(len(BATCHES)))
def test_without_another_name_programs_run_as_they_do_and_a_note_names_what_is_lost(
    number: int, outcomes: dict[str, Any]
) -> None:
    whole, got = outcomes["whole"], outcomes["without"][number]
    assert whole["same"]
    assert isinstance(got, dict), got
    assert (got["same"], got["found"]) == (True, whole["found"])
    notes = [note for note in got["notes"] if note not in whole["notes"]]
    lost = {
        sentence(f"torch-part.{part}")
        for part, names in torch_names.names().items()
        if part not in (*ESSENTIAL, *SILENT, "profiler") and any(name.path in BATCHES[number] for name in names)
    }
    assert {each for each in lost if not any(each in note for note in notes)} == set()
    assert [note for note in notes if not any(f"(torch.{path} is" in note for path in BATCHES[number])] == []
    assert len(notes) == len(lost)
