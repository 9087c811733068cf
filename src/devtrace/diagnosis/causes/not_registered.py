"""A module holds a tensor as a plain attribute, or in a list or dict, which `.to()` passes by."""

from __future__ import annotations

from devtrace.diagnosis.causes.cause import Cause
from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.evidence.ownership import PassingMove, find_passing_move
from devtrace.diagnosis.fixes.register_on_module import register_on_module


def was_recorded_as_an_attribute(case: Case) -> Verdict | None:
    owner = case.ownership
    if owner is None or owner.is_registered or owner.last_move is None:
        return None
    return Verdict("not-registered", born=case.born, move=owner.last_move, others=len(owner.others))


def owner_is_in_a_plain_container(case: Case) -> Verdict | None:
    """A module further out was moved, and reaches the owner only through a list or a dict."""
    owner = case.ownership
    if owner is None or owner.others:
        return None
    passing = find_passing_move(case, owner.names)
    return _verdict(case, passing) if passing is not None else None


def module_has_it_unregistered(case: Case) -> Verdict | None:
    return _verdict(case, case.passing_move) if case.passing_move is not None else None


def _verdict(case: Case, passing: PassingMove) -> Verdict:
    moves = passing.moves
    born = case.queries.born(case.former_state) if case.former_state >= 0 else case.born
    return Verdict("not-registered", born, passing.name, passing.module, moves[0], others=len(moves))


def _reason(case: Case, verdict: Verdict) -> str:
    return f"{verdict.module_text}.to() moves only parameters and buffers of registered modules; it is none."


CAUSE = Cause(
    slug="not-registered",
    meaning="a plain attribute, list or dict of a module: `.to()` passes it by",
    what_helps="`register_buffer`, `nn.ModuleList`, `nn.ParameterDict`",
    born_remark="not registered",
    moved_remark="which passes it by",
    reason=_reason,
    advice="register it as a buffer or a submodule, so that .to() moves it",
    fixes=(register_on_module,),
)
