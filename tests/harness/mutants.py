"""Healthy programs with one tensor, layer or parameter left on the CPU: what a green tick must never stand over.

The programs are those of `corpus/` with the fixes of their authors. Which variables hold what is seen in a run; each
gives a few mutants, and a seed draws from all of them.
"""

from __future__ import annotations

import ast
import json
import random
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

import devtrace
from fix_rounds import execute, prepare
from programs import Program
from warm import Warm

MOVES = ("to", "cuda")
MOST_LAYERS = 4


@dataclass(frozen=True)
class Mutant:
    """A program with one line changed, or one more."""

    program: Program
    line: int
    change: str
    text: str

    def __str__(self) -> str:
        return f"{self.program.name}:{self.line} {self.change}"


@dataclass(frozen=True)
class Ending:
    """End of a run: its error, the tick, and how much a model did on the CPU or was given from there."""

    raised: str
    ticked: bool
    on_cpu: int
    given: int

    def does_more_than(self, healthy: Ending) -> bool:
        """Return whether something was left: a result that is only read on the CPU was not, nor what moves again."""
        return bool(self.raised) or self.on_cpu > healthy.on_cpu or self.given > healthy.given


def drawn(warm: Warm, programs: Iterable[Program], seed: int, count: int) -> list[Mutant]:
    """Return so many mutants of all that there are, the same for the same seed."""
    found = [mutant for program in programs for mutant in mutants(warm, program)]
    return random.Random(seed).sample(found, min(count, len(found)))


def with_its_fix(program: Program) -> str:
    """Return a program's text with its author's fix."""
    with tempfile.TemporaryDirectory() as folder:
        return program.with_fix(Path(folder) / "fixed").path.read_text()


def mutants(warm: Warm, program: Program) -> Iterator[Mutant]:
    """Yield all mutants of a program."""
    text = with_its_fix(program)
    tree = ast.parse(text)
    lines = text.splitlines()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MOVES:
            kept = ast.unparse(node.func.value)
            yield _replaced(program, text, node, kept, f"without .{node.func.attr}(...)")
        elif isinstance(node, ast.keyword) and node.arg == "device":
            yield _replaced(program, text, node.value, '"cpu"', 'device="cpu"')
    marked = "\n".join(_with_marks(lines, tree))
    for line, end, changes in _run(warm, "changes_seen", program, marked):
        indent = lines[line - 1][: len(lines[line - 1]) - len(lines[line - 1].lstrip())]
        for change in changes:
            yield Mutant(program, line, change, "\n".join([*lines[:end], indent + change, *lines[end:], ""]))


def _replaced(program: Program, text: str, node: ast.expr, by: str, change: str) -> Mutant:
    lines = text.encode().splitlines(keepends=True)
    assert node.end_lineno is not None
    before = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    after = sum(map(len, lines[: node.end_lineno - 1])) + (node.end_col_offset or 0)
    changed = text.encode()[:before] + f"({by})".encode() + text.encode()[after:]
    return Mutant(program, node.lineno, change, changed.decode())


def _with_marks(lines: list[str], tree: ast.Module) -> Iterator[str]:
    """Yield the lines, behind each assignment of one name or attribute a call that looks at its value."""
    marks: dict[int, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, prefix = node.targets[0], lines[node.lineno - 1][: node.col_offset]
            if isinstance(target, ast.Name | ast.Attribute) and not prefix.strip():
                assert node.end_lineno is not None
                name = ast.unparse(target)
                marks[node.end_lineno] = f"{prefix}seen_by_devtrace({node.lineno}, {node.end_lineno}, {name!r}, {name})"
    for number, line in enumerate(lines, 1):
        yield line
        if number in marks:
            yield marks[number]


def _run(warm: Warm, function: str, program: Program, text: str) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / program.name
        shutil.copytree(program.folder, copy)
        program.with_fix(copy).path.write_text(text)
        return warm.call("mutants", function, str(copy / "bug.py"), json.dumps(program.arguments))


def changes_seen(path: str, arguments: str) -> list[tuple[int, int, list[str]]]:
    """Run a marked program; return the lines of assignments, each with the lines that leave a part on the CPU."""
    import builtins

    found: dict[tuple[int, int], list[str]] = {}

    def seen(line: int, end: int, name: str, value: Any) -> None:
        if changes := _leaving(name, value):
            found.setdefault((line, end), changes)

    builtins.seen_by_devtrace = seen  # type: ignore[attr-defined]
    prepare({"packages": (), "imported_before": (), "path": path})
    with devtrace.simulate("cuda:2"):
        execute(path, json.loads(arguments))
    return [(line, end, changes) for (line, end), changes in sorted(found.items())]


def _leaving(name: str, value: Any) -> list[str]:
    """Return the lines that put a part of a value to the CPU: a tensor, some layers of a model, its parameters."""
    if isinstance(value, torch.Tensor):
        return [f"{name} = {name}.cpu()"] if value.is_cuda and not isinstance(value, nn.Parameter) else []
    if not isinstance(value, nn.Module):
        return []
    layers = [path for path, layer in value.named_modules() if next(layer.parameters(False), None) is not None]
    named = [path for path, each in value.named_parameters() if each.is_cuda]
    moves = [f'{name}.get_submodule("{path}").cpu()' for path in layers[:MOST_LAYERS]] if named else []
    return [*moves, *(_one_parameter(name, path) for path in named[-1:])]


def _one_parameter(name: str, path: str) -> str:
    owner, _, own = path.rpartition(".")
    left = f'torch.nn.Parameter({name}.get_parameter("{path}").detach().cpu())'
    return f'{name}.get_submodule("{owner}").{own} = {left}'


def ending(warm: Warm, program: Program, text: str) -> Ending:
    """Run a text of a program on simulated devices."""
    found = _run(warm, "ending_of", program, text)
    assert isinstance(found, Ending)
    return found


def ending_of(path: str, arguments: str) -> Ending:
    """Do in the forked process what `ending` promises."""
    raised = ""
    prepare({"packages": (), "imported_before": (), "path": path})
    try:
        with devtrace.record(simulate="cuda:2") as recording:
            execute(path, json.loads(arguments))
    except Exception as error:  # noqa: BLE001 (the program's own failure is what is studied)
        raised = f"{type(error).__name__}: {error}"
    trace = recording.trace
    computed = [op for op in trace.ops if op.kind == "compute" and op.device == "cpu" and op.call is not None]
    on_cpu = sum(any(each.shape for each in op.inputs if each.device == "cpu") for op in computed)
    moves = {move.site for move in trace.moves}  # of modules: what was left and moves again
    given = sum(copy.from_ == "cpu" and copy.op.site not in moves for copy in trace.copies)
    return Ending(raised, "✓" in str(recording.report), on_cpu, given)
