"""The order in which the lines of a function ran, by the ops that they recorded."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.findings import Site
from devtrace.source import kinds
from devtrace.source.matching import nodes_of, run_names, variable
from devtrace.source.parsing import Source, kept_with_source
from devtrace.source.safe_values import Scope, evaluate
from devtrace.trace.ids import OpId
from devtrace.trace.tables import Ints


@dataclass(frozen=True)
class Passed:
    """Moment when execution last passed a line of a running function: between its ops `before` and `after`."""

    frame: FailingFrame
    line: int
    before: OpId
    after: OpId

    @classmethod
    def below(cls, frame: FailingFrame, line: int) -> Passed:
        """Return the last step from an op at or above a line to one below it; the last op where none goes past it."""
        ops, lines = _way(frame)
        here, then = lines[:-1], lines[1:]  # a step up is the next round of a loop
        passes_line = np.where(here <= then, (here <= line) & (line < then), (line >= here) | (line < then))
        steps = np.flatnonzero(passes_line)
        if not len(steps):
            return cls(frame, line, OpId(int(ops[-1]) - 1), OpId(int(ops[-1])))
        return cls(frame, line, OpId(int(ops[steps[-1]])), OpId(int(ops[steps[-1] + 1])))

    def since(self, birth: OpId) -> OpId:
        """Return the first op after the line, and after a tensor that the line created itself."""
        first = OpId(self.before + 1)
        if first <= birth < self.after and not self._is_made_below(birth):
            return OpId(birth + 1)
        return first if birth != first else self.before  # the next op makes it, below the line

    def _is_made_below(self, birth: OpId) -> bool:
        """Return whether the creator of a tensor is called only below the line, there or by what runs from there."""
        queries, frame, here = self.frame.moment.queries, self.frame, self.frame.code.site
        site, birth_node = queries.site(queries.op_site(birth)), queries.op_node(birth)
        if site is None or (site.file, site.function) == (here.file, here.function):
            return site is not None and site.line > self.line
        inner = [other for other in FailingFrame.all_of(frame.moment, "", to_read=True) if other.number < frame.number]
        called: dict[bool, set[str]] = {True: set(), False: set()}  # True: below the line
        for caller in (frame, *inner):
            for statement in caller.statements():
                if (line := caller.source.span(statement).line) <= caller.line:
                    called[caller is not frame or line > self.line] |= run_by(statement, caller.scope())
        sources = [*(caller.source for caller in (frame, *inner)), birth_node.source]
        files = list({source.file: source for source in sources}.values())
        maker, below, above = maker_at(site), led_to(called[True], files), led_to(called[False], files)
        return maker in below and maker not in above


def maker_at(site: Site) -> str:
    """Return the name by which the function around a site is called: `Slots` for its `__init__`."""
    *around, maker = site.function.split(".")
    return around[-1] if maker == "__init__" and around else maker


def _way(frame: FailingFrame) -> tuple[Ints, Ints]:
    """Return the ops of this function up to the error, and the lines that ran them; 0 is a line of an outer function.

    An op of the backward pass counts to the line that called `backward()`.
    """
    queries, here = frame.moment.queries, frame.code.site
    ways = frame.moment.ways
    if (here.file, here.function) not in ways:
        line_of_site, rows = np.full(len(queries.trace.sites) + 1, -1), queries.sites_beside(here)
        for outer in FailingFrame.all_of(frame.moment, "", to_read=True)[frame.number + 1 :]:
            line_of_site[queries.sites_beside(outer.code.site)] = 0  # it called the function anew after this
        line_of_site[rows] = queries.trace.sites.ints("line")[rows]
        # For ops that were read from the source no caller is known: a package's `__init__` ran further up.
        users = queries.cost_users if queries.evidence.saw_ops else queries.trace.ops.ints("site")
        line_of_op = line_of_site[users[: queries.failed]]
        ops = np.flatnonzero(line_of_op >= 0)
        ways[here.file, here.function] = ops, line_of_op[ops]
    steps, lines = ways[here.file, here.function]
    return np.concatenate(([-1], steps, [max(queries.failed, 0)])), np.concatenate(([0], lines, [frame.line]))


def run_by(statement: ast.stmt, scope: Scope) -> set[str]:
    """Return the names of functions that a statement itself calls or passes on, not those of its block."""
    parts = [part for part in ast.iter_child_nodes(statement) if not isinstance(part, ast.stmt)]
    calls_a_module = any(kinds.is_module(evaluate(call.func, scope)) for call in nodes_of(ast.Call, *parts))
    return set[str]({"forward"} if calls_a_module else ()).union(*map(run_names, parts))


def led_to(names: set[str], files: Collection[Source]) -> set[str]:
    """Return the names of functions and classes, of those that they call within some files, and so on."""
    reached, new = set(names), names
    while new:
        new = set[str]().union(*(_calls_by_function(file).get(name, ()) for file in files for name in new)) - reached
        reached |= new
    return reached


@kept_with_source
def _calls_by_function(source: Source) -> dict[str, set[str]]:
    """Return `{"fit": {"step"}}`: the names that `fit` calls; a class calls its bases and what its `__init__` calls."""
    called: dict[str, set[str]] = defaultdict(set)
    for node in nodes_of(ast.stmt, source.tree):
        match node, source.parent(node):
            case ast.ClassDef(name=name, bases=bases), _:
                called[name] |= {getattr(base, "attr", variable(base)) for base in bases}
            case ast.FunctionDef(name="__init__"), ast.ClassDef(name=name):
                called[name] |= run_names(node)
            case ((ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name)), _):
                called[name] |= run_names(node)
    return called
