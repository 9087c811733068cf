"""The table of advice: what a report says of a line that waits or copies in each step, and how that is mended.

    total += loss.item()            # why "to add to a Python number"; where nothing looks at `total` before the end:
    total += loss.detach()          # the edit, and `total = float(total)` below the loop

The rows of a kind are asked from the top, the first that fits words the cost: its pattern is the code that waits, or
the statement around it, and its trait is true of the value. The first of its ways to mend it that fits is the advice.
Sentences and edits are filled with what is in the holes of the pattern, and with what traits give. An edit is a
template for each place that it changes; a way whose edit cannot be made does not fit.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from devtrace.costs import copies, edits, elements, reads, round_trips, same_tensor, uses
from devtrace.costs.repeated_costs import Cost, Names
from devtrace.diagnosis.evidence.trace_queries import SourceNode
from devtrace.diagnosis.findings import Culprit, Edit
from devtrace.diagnosis.slugs import Severity
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line

Trait = Callable[[Cost], Names | bool | None]


@dataclass(frozen=True, eq=False)
class Needless:
    """Why a cost need not be, and what to do about it. That of a short loop is worth a note."""

    cost: Cost
    why: str
    help: str
    culprit: Culprit | None = None
    edits: tuple[Edit, ...] = ()
    severity: Severity = "warning"


def always(_: Cost) -> bool:
    return True


class Way(NamedTuple):
    """A way to mend a cost: its sentence, where it is one (by a trait, or by a name that the row has), its edit."""

    help: str
    trait: Trait | str = always
    edit: Mapping[str, str] = {}


class Row(NamedTuple):
    """A row of the table."""

    why: str
    trait: Trait
    ways: tuple[Way, ...]
    code: tuple[str, ...] = ()


def _by(test: Callable[[SourceNode], Names | bool | None]) -> Trait:
    return lambda cost: test(cost.place)


_ABOVE_LOOP: Final = {"above loop": "{moved} = {moved}.{call}"}
_ABOVE: Final = {"above": "{attribute} = {attribute}.{call}"}

_SAME_TENSOR: Final = Row("copy.same", same_tensor.is_copied_again, (
    Way("copy.move-module", "module"),
    Way("copy.move-its-module", "is_parameter"),
    Way("copy.keep", "is_trained"),  # what was moved once would be of one step's graph
    Way("copy.above-loop", edits.is_moved_in_loop, _ABOVE_LOOP),
    Way("copy.keep-moved-or-register", lambda cost: edits.is_kept(cost) if edits.is_registered(cost) else None, _ABOVE),
    Way("copy.keep-moved", edits.is_kept, _ABOVE),
    Way("copy.register", edits.is_registered),
    Way("copy.keep-attribute", edits.is_attribute),
    Way("copy.once"),
))  # fmt: skip
_FEW_BYTES: Final = Row("copy.few-bytes", copies.are_a_few_bytes, (Way("copy.few-bytes.help"),))

TO_DEVICE: Final = (
    _SAME_TENSOR,
    Row("copy.number", copies.is_a_number, (
        Way("copy.above-loop", lambda cost: edits.is_moved_in_loop(cost, cost.name), _ABOVE_LOOP),
        Way("copy.number.help"),
    )),
    Row("copy.constant", same_tensor.is_made_of_factories, (
        Way("copy.draw.help", "is_of_weights"),
        Way("copy.constant.help", "new", {"value": "{new}"}),
        Way("copy.constant.help"),
    )),
    Row("copy.left-to-ddp", copies.is_left_to_ddp, (Way("copy.left-to-ddp.help"),)),
    Row("copy.unchanged", same_tensor.is_unchanged, (Way("copy.unchanged.help"),)),
    _FEW_BYTES,
)  # fmt: skip
TO_HOST: Final = (
    Row("copy.too-soon", copies.is_used_too_soon, (Way("copy.too-soon.help"),)),
    _SAME_TENSOR,
    Row("copy.back-computed", round_trips.comes_back, (
        Way("copy.back-numpy.help", "by_numpy"),
        Way("copy.back.help"),
    )),
    Row("copy.back-computed", round_trips.is_written_back, (Way("copy.back.help"),)),
    Row("copy.unused", copies.is_sent_in_vain, (Way("copy.unused.help"),)),
    Row("copy.there-already", same_tensor.is_there_already, (Way("copy.there-already.help"),)),
    Row("copy.weights", copies.are_weights, (Way("copy.weights.help"),)),
    Row("copy.in-each-step", copies.are_values, (Way("copy.in-each-step.help"),)),
    _FEW_BYTES,
)  # fmt: skip
BETWEEN_DEVICES: Final = (_SAME_TENSOR, _FEW_BYTES)
AS_USUAL: Final = (Row("copy.unpinned", copies.asks_in_vain, ()),)
"""What may be said of copies that have to be."""

_KEPT_IN_LIST: Final = Way(
    "fixed.append", edits.is_kept_in_list, {"value": "{kept}", "below loop": "{list} = torch.stack({list}).tolist()"}
)
_ADDED_UP: Final = Way(
    "fixed.add-up", edits.is_summed, {"value": "{kept}", "below loop": "{total} = {number}({total})"}
)

SINGLY: Final = (
    Row("host-sync.to-pick", elements.are_read_singly, (Way("host-sync.to-pick.help"),)),
    Row("host-sync.to-use", round_trips.is_used_again, (Way("host-sync.to-return.help"),)),
)
WAITS: Final = (
    Row("host-sync.to-draw", reads.is_drawn_from_nothing, (Way("host-sync.to-draw.help"),)),
    Row("host-sync.to-count", elements.are_picked, (
        Way("host-sync.to-count-labels.help", "is_of_labels"),
        Way("host-sync.to-count-mean.help", "is_averaged"),
        Way("host-sync.to-count.help"),
    ), ("$name[$mask]",)),
    Row("host-sync.to-compare", reads.lacks_is_causal, (Way("host-sync.to-compare.help"),)),
    Row("host-sync.to-check", reads.lacks_validate_args, (Way("host-sync.to-check.help"),)),
    Row("host-sync.to-add", reads.is_summed_at_once, (Way("host-sync.to-add-up.help"),)),
    Row("host-sync.to-give", reads.takes_number, (Way("host-sync.to-give.help"),)),
    Row("host-sync.to-read", lambda cost: not reads.is_truth_asked(cost), (
        Way("host-sync.to-read.help"),
    ), ("$x[$at]",)),
    Row("host-sync.to-write", reads.is_shown, (
        Way("host-sync.to-format.help", "is_of_package"),
        Way("host-sync.to-write.help", "step"),
        Way("host-sync.now-and-then"),
    )),
    Row("host-sync.to-add", reads.is_added, (_ADDED_UP, Way("host-sync.to-add.help"))),
    Row("host-sync.to-order", reads.function, (Way("host-sync.to-order.help"),), ("max(...)", "min(...)")),
    Row("host-sync.to-decide", reads.is_tested, (Way("host-sync.to-decide.help"),)),
    Row("host-sync.to-scale", _by(uses.factor_of), (Way("host-sync.to-scale.help"),)),
    Row("host-sync.to-schedule", _by(uses.is_rate), (Way("host-sync.to-schedule.help"),)),
    Row("host-sync.to-bound", reads.is_size, (Way("host-sync.to-bound.help"),)),
    Row("host-sync.to-decide", _by(uses.decides_later), (Way("host-sync.to-decide.help"),)),
    Row("host-sync.to-give", _by(uses.taken_by), (Way("host-sync.to-give.help"),)),
    Row("host-sync.to-keep", reads.is_gathered, (_KEPT_IN_LIST, Way("host-sync.to-keep.help"))),
    Row("host-sync.to-keep", always, (Way("host-sync.to-read.help"),), ("$list[$at] = $value",)),
    Row("host-sync.to-decide", always, (Way("host-sync.to-decide.help"),), ("bool($x)",)),
    Row("host-sync.to-read", always, (Way("host-sync.to-read.help"),)),
)  # fmt: skip


def advised(cost: Cost, rows: Iterable[Row], **names: Any) -> Needless | None:
    """Word a cost by the first row that fits it; None if none does."""
    places = (cost.node, cost.place.statement)
    for row in rows:
        holes = [found for node in places if (found := uses.matches(node, *row.code)) is not None]
        seen = row.trait(cost) if holes or not row.code else None
        if seen:
            parts = (part for each in holes[:1] for part in each.items())
            code = {hole: one_line(cost.place.source.segment(part)) for hole, part in parts}
            return _needless(cost, row, names | code | _given(seen))
    return None


def _given(seen: Names | bool) -> Names:
    return {} if isinstance(seen, bool) else seen


def _needless(cost: Cost, row: Row, names: Names) -> Needless:
    why = sentence(names.get("why", row.why), **names)
    own = {key: names[key] for key in ("culprit", "severity") if key in names}
    for way in row.ways:
        seen = bool(names[way.trait]) if isinstance(way.trait, str) else way.trait(cost)
        if seen:
            given = names | _given(seen)
            texts = {place: template.format(**given) for place, template in way.edit.items()}
            made = [_edit(cost, place, text, given) for place, text in texts.items()]
            if None not in made:
                for text in texts.values():
                    given = {**given, "code": one_line(text)}  # that of the last place
                help = sentence(way.help, **given)
                return Needless(cost, why, help, edits=tuple(filter(None, made)), **own)
    return Needless(cost, why, "", **own)


def _edit(cost: Cost, place: str, text: str, names: Names) -> Edit | None:
    """Return the edit that puts a text at a place: above or below a loop, above the statement, or in place of code."""
    code = cost.code
    if code is None:
        return None
    match place:
        case "above loop":
            return code.above(names["loop"], text)
        case "below loop":
            return code.below(names["loop"], text)
        case "above":
            return code.above(cost.place.statement, text)
    return code.replaced(names.get(place, cost.node), text)
