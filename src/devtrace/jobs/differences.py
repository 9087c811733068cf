"""Lines at which some ranks did otherwise than the rest: other devices, copies, waits or ops.

Ranks are compared each with its own device, so that rank 1 on cuda:1 does as rank 0 on cuda:0. What most ranks did is
what the others are compared with; where no two do the same, the line says nothing of a rank.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from devtrace.words.catalogue import family, sentence

MOST_LINES: Final = 5


class Did(NamedTuple):
    """Counts of one rank at a line: ops on foreign devices by name, copies, waits, ops."""

    elsewhere: tuple[tuple[str, int], ...] = ()
    copies: int = 0
    waits: int = 0
    ops: int = 0


KINDS: Final = ("elsewhere", "copies", "waits", "ops")
"""What is told of a line is the first of these that differs."""
_COUNTS: Final = family("ranks.*", "ranks.copies", "ranks.waits", "ranks.ops")


class Difference(NamedTuple):
    """At a site some ranks did `found`, the rest `usual`."""

    site: int
    kind: str
    ranks: list[int]
    found: Did
    usual: Did


def done_by(ops: Mapping[str, int], own: str, copies: int, waits: int) -> Did:
    """Count what a rank did at a line; `own` is its device."""
    elsewhere = tuple(sorted((name, count) for name, count in ops.items() if count and name not in (own, "cpu")))
    return Did(elsewhere, copies, waits, sum(ops.values()))


def own_device(lines: Iterable[Mapping[str, int]]) -> str:
    """Return the accelerator on which a rank ran most ops; nothing where it has none."""
    total = sum(map(Counter, lines), Counter[str]())
    return next((name for name, _ in total.most_common() if name not in ("cpu", "meta", "")), "")


def differences(did: Mapping[int, Mapping[int, Did]], ranks: list[int]) -> list[Difference]:
    """Return how ranks differ, by site and what each rank did there; the gravest first."""
    found = [each for site, by_rank in did.items() for each in _at(site, {r: by_rank.get(r, Did()) for r in ranks})]
    return sorted(found, key=lambda each: (KINDS.index(each.kind), -_amount(each), each.site))


def _at(site: int, by_rank: Mapping[int, Did]) -> Iterator[Difference]:
    for kind in KINDS:
        values = Counter(getattr(did, kind) for did in by_rank.values())
        if len(values) == 1:
            continue
        usual, times = min(values.items(), key=lambda item: (kind == "elsewhere" and item[0] != (), -item[1], item[0]))
        if 2 * times < len(by_rank) or (times == 1 and len(by_rank) > 2):
            return  # each rank does as it likes
        rest = next(did for did in by_rank.values() if getattr(did, kind) == usual)
        for value in sorted(values.keys() - {usual}):
            odd = [rank for rank, did in by_rank.items() if getattr(did, kind) == value]
            yield Difference(site, kind, odd, by_rank[odd[0]], rest)
        return


def _amount(each: Difference) -> int:
    found, usual = (sum(count for _, count in did.elsewhere) or did.copies + did.waits or did.ops for did in each[3:])
    return abs(found - usual)


def sentences(found: list[Difference], sites: Mapping[int, str]) -> Iterator[str]:
    """Tell the gravest differences, and how many lines more there are."""
    for each in found[:MOST_LINES]:
        ranks = [str(rank) for rank in each.ranks]
        yield sentence(
            "ranks.line", site=sites[each.site], count=len(ranks), ranks=ranks,
            found=_worded(each.kind, each.found), usual=_worded(each.kind, each.usual),
        )  # fmt: skip
    if more := len({each.site for each in found[MOST_LINES:]} - {each.site for each in found[:MOST_LINES]}):
        yield sentence("ranks.more-lines", count=more)


def _worded(kind: str, did: Did) -> str:
    if kind == "elsewhere":
        devices = [sentence("report.ops-of-device", count=count, device=device) for device, count in did.elsewhere]
        return ", ".join(devices) or sentence("ranks.own-device")
    return sentence(_COUNTS[kind], count=getattr(did, kind))
