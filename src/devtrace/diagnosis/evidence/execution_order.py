"""The order in which the lines of a function ran, by the ops that they recorded."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.findings import Site
from devtrace.source.flow import DEFINED, statements
from devtrace.source.matching import nodes_of, run_names
from devtrace.source.parsing import NamedFunction, Source, kept_with_source
from devtrace.trace.ids import OpId
from devtrace.trace.tables import Ints


@dataclass(frozen=True)
class Passed:
    """Moment at which execution last passed a line of a function that still runs.

    `before` and `after` are the ops of the function's own lines around the moment.
    """

    frame: FailingFrame
    line: int
    before: OpId
    after: OpId

    @classmethod
    def below(cls, frame: FailingFrame, line: int) -> Passed:
        ops, lines = _way(frame)
        here, then = lines[:-1], lines[1:]  # a way up is the next round of a loop
        past = np.where(here <= then, (here <= line) & (line < then), (line >= here) | (line < then))
        steps = np.flatnonzero(past)
        if not len(steps):
            return cls(frame, line, OpId(int(ops[-1]) - 1), OpId(int(ops[-1])))
        return cls(frame, line, OpId(int(ops[steps[-1]])), OpId(int(ops[steps[-1] + 1])))

    def since(self, birth: OpId) -> OpId:
        """Return the first op after the line, and after a tensor that the line created itself."""
        first = OpId(self.before + 1)
        if first <= birth < self.after and not self._is_made_below(birth):
            return self._left_by_its_maker(birth)
        return first if birth != first else self.before  # what comes next makes it

    def _left_by_its_maker(self, birth: OpId) -> OpId:
        """Return the first op after the last one of the function that created a tensor: `collate(rows)`."""
        queries = self.frame.moment.queries
        made, here = queries.site(queries.op_site(birth)), self.frame.code.site
        if made is None or (made.file, made.function) == (here.file, here.function):
            return OpId(birth + 1)
        its = np.isin(queries.trace.ops.ints("site")[birth + 1 : self.after], queries.sites_beside(made))
        return OpId(birth + 1 + int(its.nonzero()[0].max(initial=-1)) + 1)

    def _is_made_below(self, birth: OpId) -> bool:
        """Return whether the creator of a tensor is called only below the line."""
        queries, here = self.frame.moment.queries, self.frame.code.site
        site = queries.site(queries.op_site(birth))
        if site is None or (site.file, site.function) == (here.file, here.function):
            return site is not None and site.line > self.line
        above, below = self._called
        return (maker := maker_at(site)) in below and maker not in above

    def has_run(self, op: OpId) -> bool:
        """Return whether `op` ran in a function called only above this line, such as a trainer's constructor."""
        queries, here = self.frame.moment.queries, self.frame.code.site
        site = queries.site(queries.op_user(op)) if op >= 0 and queries.evidence.saw_ops else None
        if site is None or (site.file, site.function) == (here.file, here.function):
            return False
        above, below = self._called
        return (maker := maker_at(site)) in above and maker not in below

    def may_have_left(self, site: Site) -> bool:
        """Return whether a function may have run by this line, if none of its ops was recorded."""
        queries, here = self.frame.moment.queries, self.frame.code.site
        source = queries.read(site.file, site.line)
        if source is None or (site.file, site.function) == (here.file, here.function):
            return source is None or site.line <= self.line
        built = {each.name for each in _outermost(source.tree) if isinstance(each, ast.ClassDef)}
        above, _ = self._called
        return site.function.endswith("__init__") or maker_at(site) in _led_to(above | built, source)

    @cached_property
    def _called(self) -> tuple[set[str], set[str]]:
        """Names of functions called up to the line, and below it, directly or by those called."""
        above, below = set[str](), set[str]()
        for statement in self.frame.statements():
            own = [part for part in ast.iter_child_nodes(statement) if not isinstance(part, ast.stmt)]
            called = set[str]().union(*map(run_names, own))
            if self.frame.source.span(statement).line <= self.frame.line:
                (above if self.frame.source.span(statement).line <= self.line else below).update(called)
        source, around = self.frame.source, self.frame.function
        return _led_to(above, source, around), _led_to(below, source, around)


def maker_at(site: Site) -> str:
    """Return the name by which the function around a site is called: `Slots` for its `__init__`."""
    *around, maker = site.function.split(".")
    return around[-1] if maker == "__init__" and around else maker


def _way(frame: FailingFrame) -> tuple[Ints, Ints]:
    """Return the ops of this function's lines up to the error, with their lines; line 0 is outside the function.

    An op of the backward pass counts to the line that called `backward()`.
    """
    queries, here = frame.moment.queries, frame.code.site
    ways = frame.moment.ways
    if (here.file, here.function) not in ways:
        own, rows = np.full(len(queries.trace.sites) + 1, -1), queries.sites_beside(here)
        for outer in FailingFrame.all_of(frame.moment, "", to_read=True)[frame.number + 1 :]:
            own[queries.sites_beside(outer.code.site)] = 0  # it called the function anew after this
        own[rows] = queries.trace.sites.ints("line")[rows]
        # Of what was read from the source, who called it is not known: a package's `__init__` ran further up.
        users = queries.cost_users if queries.evidence.saw_ops else queries.trace.ops.ints("site")
        lines = own[users[: queries.failed]]
        ops = np.flatnonzero(lines >= 0)
        ways[here.file, here.function] = ops, lines[ops]
    steps, at = ways[here.file, here.function]
    return np.concatenate(([-1], steps, [max(queries.failed, 0)])), np.concatenate(([0], at, [frame.line]))


def _led_to(names: set[str], source: Source, around: ast.AST | None = None) -> set[str]:
    """Return some names of functions and classes, and all names that they call within this file."""
    bodies, found, new = _bodies(source, around), set(names), names - {""}
    while new:
        new = set[str]().union(*(run_names(body) for name in new for body in bodies.get(name, ()))) - found
        found |= new
    return found


@kept_with_source
def _bodies(source: Source, around: ast.AST | None) -> dict[str, list[ast.stmt]]:
    """Return a file's functions by name, the `__init__` of a class by the name of the class.

    Nested functions belong to the outer one, unless that is running.
    """
    made_by: dict[ast.stmt, str] = {}
    bodies: dict[str, list[ast.stmt]] = defaultdict(list)
    inner = nodes_of(ast.stmt, around) if around is not None else ()
    for node in (*_outermost(source.tree), *inner):  # a class comes before what is in it
        if isinstance(node, ast.ClassDef):
            made_by |= dict.fromkeys(node.body, node.name)
        elif isinstance(node, NamedFunction):
            bodies[made_by.get(node, node.name) if node.name == "__init__" else node.name].append(node)
    return bodies


def _outermost(body: ast.AST) -> Iterator[ast.stmt]:
    """Yield the functions and classes of a file or a class, and those in its classes."""
    for node in statements(body):
        if isinstance(node, DEFINED):
            yield node
        if isinstance(node, ast.ClassDef):
            yield from _outermost(node)
