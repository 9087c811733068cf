"""Makes the curves of devices' memory: of pieces that live from one op to another, each for one thing."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Final

import numpy as np

from devtrace.runtime.observers import LEAST
from devtrace.trace.columns import PHASES
from devtrace.trace.curve import ENDLESS, KINDS, Curve, Lives, Part
from devtrace.trace.tables import Ints, TraceData
from devtrace.trace.views import modules_of_ops, storage_owners

MOST_POINTS: Final = 240
MOST_NAMES: Final = 5
"""Of one kind; the others are one part."""
_DEPTHS: Final = {"parameter": 1, "buffer": 1, "gradient": 2, "optimizer-state": 2}
"""So many parts of a tensor's name come after its layer: `.weight.grad`."""
_CODES: Final = 1 + max(_DEPTHS.values())
_LEVELS: Final = 2
"""Names are as far as the layers of a model: `model.blocks`."""


def curves(
    trace: TraceData, lives: Lives, limits: Mapping[str, int], *, is_exact: bool, least: int = LEAST
) -> Iterator[Curve]:
    """Yield the curve of each device that held enough to be looked at."""
    names, name_of_pieces = _names(trace, lives)
    keys = _kinds_of(trace, lives) * len(names) + name_of_pieces
    for device, device_name in enumerate(map(str, trace.devices)):
        on_device = np.flatnonzero((lives.device == device) & (lives.bytes > 0))
        if len(on_device):
            device_lives = Lives(*(column[on_device] for column in lives))
            curve = _curve(device_lives, keys[on_device], names)
            if int(curve.total.max()) >= least:
                yield replace(curve, device=device_name, limit=limits.get(device_name, 0), is_exact=is_exact)


def _curve(lives: Lives, keys: Ints, names: list[str]) -> Curve:
    """Return the curve of one device's pieces. A key is a kind and a name: KINDS[key // count], names[key % count]."""
    piece, is_begin = lives.happenings()
    change = np.where(is_begin, lives.bytes[piece], -lives.bytes[piece])
    ops = np.where(is_begin, lives.begin_op[piece], lives.end_op[piece])
    points = _points(np.cumsum(change))
    distinct_keys, key_index = np.unique(keys, return_inverse=True)
    pairs = [(key // len(names), names[key % len(names)]) for key in distinct_keys.tolist()]
    peak = int(points[np.cumsum(change)[points].argmax()])
    sizes = np.bincount(key_index[piece[: peak + 1]], change[: peak + 1], len(pairs)).astype(np.int64)
    part_numbers = _part_numbers(dict(zip(pairs, sizes.tolist(), strict=True)))
    part_of = np.array([part_numbers.get(pair, part_numbers[pair[0], ""]) for pair in pairs])[key_index[piece]]
    levels = np.zeros((len(set(part_numbers.values())), len(points)), dtype=np.int64)
    np.add.at(levels, (part_of, np.minimum(np.searchsorted(points, np.arange(len(part_of))), len(points) - 1)), change)
    levels = np.cumsum(levels, axis=1)
    of_part = {number: key for key, number in reversed(part_numbers.items())}
    parts = (Part(KINDS[kind], name, levels[number]) for number, (kind, name) in sorted(of_part.items()))
    return Curve("", 0, True, ops[points], tuple(each for each in parts if each.bytes.any()))


def _points(level: Ints) -> Ints:
    """Return the indexes that are drawn: of the highest level in each stretch, and the last."""
    edges = np.unique(np.linspace(0, len(level), MOST_POINTS).astype(np.int64))
    highest = [begin + int(level[begin:end].argmax()) for begin, end in pairwise(edges)]
    return np.unique([*highest, len(level) - 1])


def _part_numbers(sizes: dict[tuple[int, str], int]) -> dict[tuple[int, str], int]:
    """Number the parts that are shown, by kind and name: of each kind what has most at the peak, and the rest."""
    numbers: dict[tuple[int, str], int] = {}
    for kind in sorted({kind for kind, _ in sizes}):
        keys = sorted((key for key in sizes if key[0] == kind and key[1]), key=lambda key: -sizes[key])
        for key in [*keys[:MOST_NAMES], (kind, "")]:
            numbers[key] = len(numbers)
    return numbers


def _kinds_of(trace: TraceData, lives: Lives) -> Ints:
    """Return the index in KINDS of each piece: by its tensor's role, else by the pass that made it and what took it."""
    optimizer = trace.ops.ints("phase") == trace.string_id("optimizer")
    phase = np.append(trace.ops.ints("phase"), trace.string_id("other"))
    made_in = phase[np.minimum(lives.begin_op, len(trace.ops))]
    kinds = np.full(len(made_in), KINDS.index("named"))
    for name, kind in zip(PHASES, ("activation", "temporary", "temporary", "named"), strict=True):
        kinds[made_in == trace.string_id(name)] = KINDS.index(kind)
    was_input = np.append(_inputs_of(trace, optimizer), False)[lives.tensor]
    kinds[was_input & (made_in == trace.string_id("backward"))] = KINDS.index("gradient")
    steps_end = np.append(_next_marked(~optimizer), len(trace.ops))[lives.begin_op]
    stays = (made_in == trace.string_id("optimizer")) & ((lives.end_op > steps_end) | (lives.end == ENDLESS))
    kinds[stays] = KINDS.index("optimizer-state")
    role = np.append(trace.tensors.ints("role"), trace.string_id(""))[lives.tensor]
    for kind in ("parameter", "buffer", "gradient", "optimizer-state"):
        kinds[(role == trace.string_id(kind)) & (role != trace.string_id(""))] = KINDS.index(kind)
    return kinds


def _inputs_of(trace: TraceData, is_user: Ints) -> Ints:
    """Return for each tensor whether one of some ops took it, or a view of it."""
    inputs = trace.ops.lists("inputs")
    was_input = np.zeros(len(trace.tensors), dtype=bool)
    was_input[storage_owners(trace)[inputs.flat[is_user[inputs.rows]]]] = True
    return was_input


def _next_marked(marked: Ints) -> Ints:
    """Return for each op the first marked one from it on."""
    at = np.where(marked, np.arange(len(marked)), len(marked))
    return np.minimum.accumulate(at[::-1])[::-1]


def _names(trace: TraceData, lives: Lives) -> tuple[list[str], Ints]:
    """Return names in their order, and which each piece has: that of a parameter's layer, or of its maker's; or ""."""
    module = np.append(modules_of_ops(trace), -1)[np.minimum(lives.begin_op, len(trace.ops))]
    path_text = np.append(trace.modules.ints("path"), -1)[module]
    name_text = np.append(trace.tensors.ints("name"), -1)[lives.tensor]
    role = np.append(trace.tensors.ints("role"), trace.string_id(""))[lives.tensor]
    depth = np.zeros(len(name_text), dtype=np.int64)
    for kind, parts in _DEPTHS.items():
        depth[(role == trace.string_id(kind)) & (name_text >= 0)] = parts
    codes = (np.where(depth > 0, name_text, path_text) + 1) * _CODES + depth
    distinct, code_of_piece = np.unique(codes, return_inverse=True)
    texts = [_layer(trace.strings[code // _CODES - 1], code % _CODES) if code else "" for code in distinct.tolist()]
    names, rank = np.unique(texts, return_inverse=True)
    return names.tolist(), rank[code_of_piece]


def _layer(path: str, parts_after: int) -> str:
    return ".".join(path.rsplit(".", parts_after)[0].split(".")[:_LEVELS])


def lives_until_use(trace: TraceData) -> Lives:
    """Return the tensors as pieces of memory that live from their first op to their last: at the least."""
    first, last, owner_of = spans(trace)
    owners = np.flatnonzero((owner_of == np.arange(len(owner_of))) & (last >= 0))
    begin, end = first[owners], last[owners]
    sizes = trace.tensors.ints("bytes")[owners].astype(np.int64)
    return Lives(2 * begin, 2 * end + 1, begin, end, sizes, trace.tensors.ints("device")[owners], owners)


def spans(trace: TraceData) -> tuple[Ints, Ints, Ints]:
    """Return for each tensor its first op (-1: a module had it before), its last (views count), its memory's owner."""
    tensors, ops = trace.tensors, trace.ops
    producer, owners = tensors.ints("producer"), storage_owners(trace)
    last = producer.astype(np.int64)
    first = np.where(producer >= 0, producer, len(ops)).astype(np.int64)
    for name in ("inputs", "outputs"):
        lists = ops.lists(name)
        np.maximum.at(last, lists.flat, lists.rows)
        np.minimum.at(first, lists.flat, lists.rows)
    np.maximum.at(last, owners, last.copy())
    has_role = tensors.ints("role") != trace.string_id("")
    return np.where(has_role & (producer < 0) | (first == len(ops)), -1, first), last, owners
