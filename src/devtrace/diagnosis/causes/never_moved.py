"""Nothing moved a tensor to the device of the computation."""

from devtrace.diagnosis.evidence.access_paths import NO_PATH
from devtrace.diagnosis.evidence.mismatch_case import MismatchCase, Verdict, move_of_its_parameter, owned
from devtrace.diagnosis.evidence.missed_moves import Ownership, dropped_results, move_of_a_neighbour, moves_of_lineage
from devtrace.diagnosis.evidence.origins import find_origin
from devtrace.diagnosis.evidence.trace_queries import NOWHERE
from devtrace.diagnosis.findings import Site
from devtrace.source.matching import alone, called_names, match_code
from devtrace.words.catalogue import sentence


def owner_was_not_moved_with_it(case: MismatchCase, owner: Ownership) -> Verdict | None:
    """Its owner moved in part, or not at all."""
    if owner.is_live and owner.last_move is None and not case.begins_so:
        return None
    is_unexplained = bool(owner.others) and owner.last_move is None
    return owned("never-moved", case, owner, "inferred" if is_unexplained or not owner.is_live else "seen")


def optimizer_keeps_it(case: MismatchCase) -> Verdict | None:
    """An optimizer keeps it as state, and no line moved it."""
    if case.origin.arrival in ("copied", "computed", "made-there"):
        return None
    names = [name for name in case.names if name.is_state_of_an_optimizer]
    moves = ((name, move) for name in names if (move := move_of_its_parameter(case, name)) is not None)
    name, move = next(moves, (next(iter(names), NO_PATH), None))
    return Verdict("never-moved", case.born, name, move=move) if names else None


def it_was_computed_from_what_stayed(case: MismatchCase) -> Verdict | None:
    if not case.root_cases or case.origin.arrival == "copied":
        return None
    root = case.root_cases[0]
    return nobody_kept_the_moved_copy(root) or Verdict("never-moved", born=root.born, name=root.name)


def nobody_kept_the_moved_copy(case: MismatchCase) -> Verdict | None:
    """A line is `x.to(device)` alone: it returns the moved copy and leaves x."""
    move = next(moves_of_lineage(case), None)
    mover = case.queries.source_node(move.site) if move is not None else NOWHERE
    if alone(mover.statement) is not mover.node:
        return None
    return Verdict("never-moved", case.born, case.name, move=move, dropped=True)


def nobody_kept_the_moved_whole(case: MismatchCase) -> Verdict | None:
    """A line is `batch.to(device)` alone, which made another batch of moved copies."""
    move, name = next(moves_of_lineage(case), None), next((name for name, _, _ in dropped_results(case)), None)
    if move is None or name is None:
        return None
    return Verdict("never-moved", case.born, name, move=move, dropped=True)


def nothing_moved_it(case: MismatchCase) -> Verdict | None:
    if not case.begins_so or (not case.names and case.born < 0):
        return None
    return Verdict("never-moved", born=case.born, name=case.name, move=move_of_a_neighbour(case))


def _came_from_numpy_past_the_default_device(case: MismatchCase) -> bool:
    if called_names(case.queries.source_node(case.born).node).isdisjoint(case.queries.by.past_default):
        return False
    others = (row for row in case.queries.inputs(case.op) if case.is_expected(row))
    return any(find_origin(case.queries, row).arrival == "made" for row in others)


def reason(case: MismatchCase, verdict: Verdict) -> str:
    odd, expected = case.odd_trait, case.expected_trait
    if verdict.dropped:
        return sentence("never-moved.reason-dropped", odd=odd)
    if _came_from_numpy_past_the_default_device(case):
        return sentence("never-moved.reason-numpy")
    is_inferred = verdict.certainty == "inferred"
    if verdict.module is not NO_PATH and not verdict.others:
        key = "never-moved.reason-module-inferred" if is_inferred else "never-moved.reason-module"
        return sentence(key, module=verdict.module_text, expected=expected)
    line, neighbour = _moved_neighbour(case, verdict)
    if line is not None:
        return sentence("never-moved.reason-beside", line=line, neighbour=neighbour, expected=expected)
    return sentence("never-moved.reason-inferred" if is_inferred else "never-moved.reason", expected=expected)


def _moved_neighbour(case: MismatchCase, verdict: Verdict) -> tuple[Site | None, str]:
    """Return the line that moved the tensor's neighbour, and the neighbour's code: `x` of `x = x.to(device)`."""
    mover = case.queries.source_node(verdict.moved)
    match = match_code("$x.to(...)", mover.node) or match_code("$x.cuda(...)", mover.node)
    if match is None or verdict.name is NO_PATH:
        return None, ""
    neighbour = mover.source.segment(match["x"])
    return (mover.code.site, neighbour) if neighbour and neighbour != verdict.name.text else (None, "")
