"""A part was attached to a module after the module had moved."""

from devtrace.diagnosis.evidence.access_paths import NO_PATH, AccessPath
from devtrace.diagnosis.evidence.mismatch_case import MismatchCase, Verdict, owned
from devtrace.diagnosis.evidence.missed_moves import Ownership
from devtrace.source.defuse import path_of, targets
from devtrace.source.object_walk import registered
from devtrace.words.catalogue import sentence


def part_is_newer_than_the_move(case: MismatchCase, owner: Ownership) -> Verdict | None:
    if not owner.is_registered or not (owner.is_newer_than_the_move or owner.was_moved_as_a_whole):
        return None
    is_seen = owner.is_live and owner.is_newer_than_the_move
    return owned("attached-after-move", case, owner, "seen" if is_seen else "inferred")


def part_was_attached_after_the_move(case: MismatchCase, owner: Ownership) -> Verdict | None:
    """Its module was attached after the move; the tensor may be older."""
    return part_is_newer_than_the_move(case, owner) if owner.is_live and owner.is_newer_than_the_move else None


def reason(case: MismatchCase, verdict: Verdict) -> str:
    part = _attached_part(case, verdict)
    return sentence(
        "attached-after-move.reason",
        module=verdict.module_text,
        probably=verdict.probably,
        part=f"`{part}`" if part else sentence("attached-after-move.this-part"),
        odd=case.odd_trait,
    )


def _attached_part(case: MismatchCase, verdict: Verdict) -> str:
    """Return the layer that holds the tensor: `model.head` of `model.head.weight`.

    Where others of the layer moved, its call made the tensor, or it is the model itself, the tensor alone was attached.
    """
    name, module = verdict.name, verdict.module
    if module is NO_PATH:
        return ""
    is_of_the_model_itself = len(name.references) - 1 <= len(module.references)
    beside = registered(name.last.owner, depth=0)
    others_moved = any(case.is_expected(case.moment.row(tensor)) for _, tensor in beside)
    is_late = case.born < 0 or case.was_made_in_a_call or _is_set_by_a_method(case, name)
    is_alone = is_of_the_model_itself or not verdict.others or is_late or others_moved
    return name.text if is_alone else name.prefix(len(name.references) - 1).text


def _is_set_by_a_method(case: MismatchCase, name: AccessPath) -> bool:
    """Return whether `self.pe = table(n)` made it in another method than the constructor: the layer was there."""
    birth = case.queries.source_node(case.born)
    function, assigned = getattr(birth.function, "name", "__init__"), targets(birth.statement)
    return function != "__init__" and any(path_of(target.node).endswith(f".{name.last.key}") for target in assigned)
