"""One mismatch under study with all evidence of it, and the verdict on it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from devtrace.diagnosis.evidence import modules
from devtrace.diagnosis.evidence.access_paths import NO_PATH, AccessPath
from devtrace.diagnosis.evidence.failing_moment import FailingMoment
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.lent_modules import Hook
from devtrace.diagnosis.evidence.mismatch import Mismatch
from devtrace.diagnosis.evidence.missed_moves import Ownership, PassingMove, find_ownership, find_passing_move
from devtrace.diagnosis.evidence.moves import Move, move_of
from devtrace.diagnosis.evidence.origins import Origin, factory_call, find_origin
from devtrace.diagnosis.evidence.subject import Subject
from devtrace.diagnosis.evidence.trace_queries import SourceNode, TraceQueries
from devtrace.diagnosis.findings import Site
from devtrace.diagnosis.slugs import MOVES, CauseSlug, Certainty
from devtrace.source.matching import called_names
from devtrace.source.safe_values import classes_of, full_name_of
from devtrace.source.vocabulary import MAKES
from devtrace.trace.ids import NO_SITE, NO_TENSOR, SiteId, TensorId
from devtrace.words.catalogue import sentence


class AskedAtRest(NamedTuple):
    """Call that `made` a tensor, the device that it was `given`, and the code that asked a module for that device."""

    made: SourceNode
    given: ast.expr
    frame: FailingFrame
    site: Site
    text: str
    hook: Hook


@dataclass(frozen=True)
class Verdict:
    """A cause with its evidence: `born` is a site, `name` leads to the tensor that the cause is about."""

    cause: CauseSlug
    born: SiteId = NO_SITE
    name: AccessPath = NO_PATH
    module: AccessPath = NO_PATH  # the module that should have taken it along
    move: Move | None = None  # the move that should have taken it along
    sent_by: Move | None = None  # the move that brought it to the odd device
    certainty: Certainty = "seen"
    others: int = 0  # the module's tensors on the expected device
    asked: AskedAtRest | None = None  # the module whose device it got, while that waited elsewhere
    dropped: bool = False  # nobody kept the copy that `move` returned

    @property
    def kind(self) -> CauseSlug:
        """Cause as it is called for a device."""
        return MOVES.get(self.cause, self.cause)

    @property
    def moved(self) -> SiteId:
        """Site of the move that should have taken it along, or -1."""
        return self.move.site if self.move is not None else NO_SITE

    @property
    def module_text(self) -> str:
        return self.module.text or "the module"

    @property
    def probably(self) -> str:
        return sentence("probably") if self.certainty == "inferred" else ""


@dataclass
class MismatchCase(Subject):
    """A mismatch: its subject is the odd tensor, else the nearest tensor with a name that it was computed from."""

    origin: Origin
    roots: dict[TensorId, list[AccessPath]]  # what the subject was computed from, by names that outlive the call

    @classmethod
    def of(cls, queries: TraceQueries, moment: FailingMoment, mismatch: Mismatch) -> MismatchCase:
        preferred = frozenset(moment.by_row or [row for _, row in modules.tensors(queries)])
        odd = mismatch.odd_tensor
        origin = find_origin(queries, odd, preferred)
        begins_so = queries.by.is_plain(mismatch.odd_trait)
        named = [row for row in (origin.path if begins_so else (odd, queries.base(odd))) if moment.names(row)]
        subject = named[0] if named else odd
        sources = {row: list(filter(outlives_the_call, moment.names(row))) for row in named[1:]}
        roots = {row: names for row, names in sources.items() if names}
        return cls(queries, moment, mismatch, subject, moment.names(subject), origin, roots)

    @property
    def root_cases(self) -> list[MismatchCase]:
        """One case for each root, if the subject is a passing value on the CPU."""
        if not self.begins_so or any(outlives_the_call(name) for name in self.names):
            return []
        return self.cases_of_roots

    @cached_property
    def cases_of_roots(self) -> list[MismatchCase]:
        """A case for each tensor with a lasting name among the subject's sources.

        Not for one of a module that a line cast away from the expected dtype: its output needs the cast.
        """
        cases = [replace(self, row=row, names=names, roots={}) for row, names in self.roots.items()]
        return [case for case in cases if case.ownership is None or case.ownership.sent_away is None]

    def objects_of_method(self, place: SourceNode) -> list[object]:
        """Return the objects that variables lead to and whose class has this code's method, which may have returned."""
        method = place.code.site.function.partition(".<locals>.<")[0]  # `<genexpr>` is a part of it
        kind, objects = method.rpartition(".")[0], self.moment.walk.objects
        return [value for value in objects if kind in {full_name_of(base)[1] for base in classes_of(type(value))}]

    def hooked(self) -> Iterator[tuple[AccessPath, AccessPath, Hook]]:
        """Yield `model.head.weight`, `model.head` and its hook: names of the odd tensor and of its sources."""
        for name in (*self.names, *(name for row in self.origin.path for name in self.moment.names(row))):
            owners = ((index, self.moment.hooks.get(id(module))) for index, module in reversed(name.modules()))
            yield from ((name, name.prefix(index + 1), hook) for index, hook in owners if hook is not None)

    @cached_property
    def ownership(self) -> Ownership | None:
        """Module that owns the tensor as parameter or buffer."""
        return find_ownership(self)

    @cached_property
    def passing_move(self) -> PassingMove | None:
        """Move of a module that keeps the tensor, but not as parameter or buffer."""
        return find_passing_move(self, self.names)

    @cached_property
    def former_state(self) -> TensorId:
        """State from before the module's move that this one was made of (`h = torch.cat([h, new])`), or -1."""
        if self.passing_move is None or self.roots or not self.was_made_in_a_call:
            return NO_TENSOR
        first_move = self.passing_move.moves[-1].op
        producers = ((row, self.queries.producer(row)) for row in self.origin.path)
        return next((row for row, op in producers if 0 <= op < first_move <= self.birth), NO_TENSOR)

    @cached_property
    def is_undated(self) -> bool:
        """True if the order of births and moves is not known, as some of them may not have been recorded."""
        rows = (self.row, *self.origin.path, *self.roots)
        return self._has_no_birth or any(self.queries.is_undated(row) for row in rows)

    @property
    def born(self) -> SiteId:
        """Site of its birth, or -1; that of its registration is no birth if it may have been made before."""
        return NO_SITE if self._has_no_birth else super().born

    @property
    def was_registered_late(self) -> bool:
        """True if its birth may be missing, but not its registration on a module."""
        queries = self.queries
        return queries.producer(self.base) < 0 and queries.registered_late(self.base) >= 0

    @cached_property
    def _has_no_birth(self) -> bool:
        """False if it was made as it was registered: by a torch layer's constructor, or a factory on the same line."""
        if not self.was_registered_late or self.queries.evidence.registered_late(self.base)[1]:
            return False
        return called_names(self.queries.source_node(super().born).statement).isdisjoint(MAKES)

    @property
    def in_a_replica(self) -> bool:
        """True if the op failed in a thread of DataParallel's, over a tensor that its module holds."""
        if self.queries.trace.ops.number("thread", self.op) <= 0:
            return False
        return any(type(value).__name__ == "DataParallel" for name in self.names for value in name.objects)


Predicate = Callable[[MismatchCase], Verdict | None]
"""A claim of a cause: the verdict, where it has its evidence."""


def outlives_the_call(name: AccessPath) -> bool:
    """Return whether a name lasts: no local variable, and no item of a list of data."""
    return not name.listed and any(reference.kind not in ("variable", "item") for reference in name.references)


def owned(cause: CauseSlug, case: MismatchCase, owner: Ownership, certainty: Certainty = "seen") -> Verdict:
    """Return the verdict on a tensor that its module's last move should have taken along."""
    others = len(owner.others)
    return Verdict(cause, case.born, owner.name, owner.module, owner.last_move, certainty=certainty, others=others)


def passed_by(cause: CauseSlug, case: MismatchCase, passing: PassingMove) -> Verdict:
    """Return the verdict on a tensor that a module keeps and its move missed, or on that tensor's source."""
    born = case.queries.born(case.former_state) if case.former_state >= 0 else case.born
    return Verdict(cause, born, passing.name, passing.module, passing.moves[0], others=len(passing.moves))


def move_of_its_parameter(case: MismatchCase, name: AccessPath) -> Move | None:
    """Return the move of an optimizer state's parameter after the state was made.

    State without a recorded birth may be younger than the move, unless the source tells: a factory's call does not.
    """
    is_inferred = not case.queries.evidence.saw_ops and case.queries.certainty(case.row) != "seen"
    if is_inferred and (case.birth < 0 or factory_call(case.queries.source_node(case.born)) is not None):
        return None
    parameter = next((reference.key for reference in name.references if reference.kind == "state"), None)
    row = case.moment.row(parameter)
    move = move_of(case.queries, row) if row is not None and case.is_expected(row) else None
    return move if move is not None and move.op > case.birth else None
