"""The parts that every fix is made of: its words and edits, source to edit, frames that still run."""

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import NamedTuple

import numpy as np

from devtrace.diagnosis.evidence.access_paths import AccessPath
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.lent_modules import goes_as_a_whole
from devtrace.diagnosis.evidence.mismatch_case import MismatchCase, Verdict
from devtrace.diagnosis.evidence.trace_queries import SourceNode
from devtrace.diagnosis.findings import Choice, Edit
from devtrace.diagnosis.slugs import CauseSlug
from devtrace.source import kinds
from devtrace.source.matching import called_name, calls_in, is_read, keyword, nodes_of, owner_of
from devtrace.source.object_walk import registered
from devtrace.source.safe_values import class_dict, classes_of
from devtrace.source.vocabulary import is_move
from devtrace.trace.ids import OpId, SiteId, TensorId


class Moved(NamedTuple):
    """A tensor that an edit moves: its row, and the first op after the move."""

    row: TensorId
    since: OpId


@dataclass(frozen=True)
class Fix:
    """Advice in words and as edits, with the moved tensors; `trains`: an optimizer finds them from then on.

    `because`: the reason to join it with another fix.
    """

    help: str
    edits: tuple[Edit, ...] = ()
    moved: tuple[Moved, ...] = ()
    others: tuple[Choice, ...] = ()
    trains: bool = False
    because: str = ""


def suggested(help: str, *edits: Edit | None, moved: Iterable[Moved] = ()) -> Iterator[Fix]:
    """Yield a fix for the proof to judge, if all its edits could be made."""
    whole = tuple(edit for edit in edits if edit is not None)
    if whole and len(whole) == len(edits):
        yield Fix(help, whole, tuple(moved))


def failing_frame(case: MismatchCase) -> FailingFrame:
    """Return the user's innermost frame, if it ran the op.

    The frames of another thread are gone, except that autograd hands on those of its threads with the error.
    """
    queries, ops, frames = case.queries, case.queries.trace.ops, case.queries.frames
    is_gone = ops.number("thread", case.op) > 0 and not (frames and frames[0][0] == ops.number("site", case.op))
    frame, line = FailingFrame.of(case.moment, 0, case.expected_trait), queries.source_node(queries.op_user(case.op))
    ran_it = case.op == queries.failed or line.statement is frame.source_node.statement  # earlier in that statement
    return frame if ran_it and not is_gone else FailingFrame.of(case.moment, -1, case.expected_trait)


def odd_expression(case: MismatchCase, *sources: TensorId) -> Iterator[tuple[FailingFrame, ast.expr]]:
    """Yield the failing frame with its line's expression for the odd tensor, if it has one, and for its sources."""
    frame = failing_frame(case)
    for row in (case.odd_tensor, *sources) if frame.is_there else ():
        if (node := frame.node_of(row)) is not None:
            yield frame, node


def frame_at(case: MismatchCase, site: SiteId) -> FailingFrame:
    """Return the frame that is still running the function of a site; of a package's code only to be read."""
    return FailingFrame.reading(case.moment, case.moment.frame_of(case.queries.site(site)), case.expected_trait)


def siblings_of_odd_trait(case: MismatchCase, name: AccessPath) -> Iterator[AccessPath]:
    """Yield the odd tensors beside a named one that the failing function, its caller or a method they call names."""
    mentioned = {word for frame in case.moment.frames[:2] for word in frame.f_code.co_names}
    dicts = (class_dict(kind) for kind in classes_of(type(name.last.owner)))
    methods = [value for attributes in dicts for key, value in attributes.items() if key in mentioned]
    mentioned.update(word for method in methods if type(method) is FunctionType for word in method.__code__.co_names)
    for sibling in case.moment.beside(name):
        row = case.odd_row(sibling.last.value)
        is_named = sibling.last.kind == "item" or sibling.last.key in mentioned
        if is_named and row is not None and case.queries.dims[row] != 0:
            yield sibling


def registering_root(case: MismatchCase, name: AccessPath) -> AccessPath | None:
    """Return the outermost module that registers the named object and goes as a whole, for good."""
    roots = ((index, module) for index, module in name.modules() if name.registered_from(index))
    return next((name.prefix(index + 1) for index, module in roots if goes_as_a_whole(module, case.moment.hooks)), None)


def is_assignable(name: AccessPath) -> bool:
    """Return whether source can assign to a path's last step: an item of a tuple, or a frozen object's, it cannot."""
    owner = name.last.owner
    return owner is None or not (kinds.is_frozen(owner) or name.last.kind in ("parameter", "state"))


def names_device(value: ast.expr) -> bool:
    """Return whether a factory's call names its device."""
    return any(keyword(call, "device") or (owner_of(call) and is_move(called_name(call))) for call in calls_in(value))


def reads(node: ast.AST, variable: str) -> list[ast.Name]:
    """Return where code reads a variable."""
    return [name for name in nodes_of(ast.Name, node) if name.id == variable and is_read(name)]


def odd_rows(case: MismatchCase, value: object) -> list[TensorId]:
    """Return the odd tensors of a value: itself, or those registered on it as a module."""
    if kinds.is_module(value) and not case.queries.by.goes_through_modules(case.odd_trait):
        return []
    tensors = [tensor for _, tensor in registered(value)] if kinds.is_module(value) else [value]
    return [row for tensor in tensors if (row := case.odd_row(tensor)) is not None]


def made_at(case: MismatchCase, chosen: Callable[[SourceNode], bool]) -> Iterator[Moved]:
    """Yield the tensors that calls at some sites made on the odd device."""
    queries, ops = case.queries, case.queries.trace.ops
    nodes = ((site, queries.source_node(site)) for site in map(SiteId, range(len(queries.trace.sites))))
    ran_there = np.isin(ops.ints("site")[: case.op], [site for site, node in nodes if chosen(node)])
    threads = ops.ints("thread")[: case.op + 1]
    if threads[case.origin.op] == threads[case.op]:  # another replica has its tensors where its own inputs are
        ran_there &= threads[:-1] == threads[case.op]
    for op in map(OpId, np.flatnonzero(ran_there).tolist()):
        yield from (Moved(row, OpId(op + 1)) for row in queries.outputs(op) if queries.trait(row) == case.odd_trait)


Strategy = Callable[[MismatchCase, Verdict], Iterator[Fix]]


class Ranked(NamedTuple):
    """A strategy at its rank: the causes that it is for, why it comes no later, and the one trait that it is for."""

    strategy: Strategy
    causes: tuple[CauseSlug, ...]
    why: str
    trait: str = ""
