"""The findings of the ranks of one job: what several ranks share is one finding, with the ranks in its message."""

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Final

from devtrace.words.catalogue import sentence

_DEVICE: Final = re.compile(r"\b([a-z]+):\d+\b")
"""Ranks that do the same do it each on a device of its own."""
_FIGURE: Final = re.compile(r"\d[\d.,]*(?: ?[KMGT]?i?B\b)?")
"""Ranks that do the same need not do it equally often."""
MOST_NAMED: Final = 4
"""Of more ranks than these their number is named, and which are left out."""


def shared_findings(found: Mapping[int, Sequence[Mapping[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Join findings of several ranks that differ only in the rank's device; never two findings of one rank."""
    by_key: dict[Hashable, dict[int, Mapping[str, Any]]] = {}
    for rank, findings in found.items():
        occurrences: dict[Hashable, int] = {}
        for finding in findings:
            key = _what_ranks_share(finding)
            occurrences[key] = occurrences.get(key, 0) + 1
            by_key.setdefault((key, occurrences[key]), {})[rank] = finding
    for of_ranks in by_key.values():
        yield _joined_finding(of_ranks, sorted(found))


def _what_ranks_share(finding: Mapping[str, Any]) -> Hashable:
    """Return what is the same in a finding on every rank: no device's index, and no figure."""
    message = _FIGURE.sub("#", _DEVICE.sub(r"\1", finding.get("message", "")))
    return finding["rule"], finding["severity"], finding.get("cause", ""), finding["site"], message


def _joined_finding(of_ranks: Mapping[int, Mapping[str, Any]], all_ranks: list[int]) -> dict[str, Any]:
    earliest = min(of_ranks.values(), key=lambda finding: (finding["op"] < 0, finding["op"]))
    if len(of_ranks) == 1:
        return {**earliest, "message": on_ranks(list(of_ranks), all_ranks, earliest.get("message", ""))}
    ops = {op for finding in of_ranks.values() for op in (finding["op"], *finding["ops"]) if op >= 0}
    devices = dict.fromkeys(device for finding in of_ranks.values() for device in finding.get("devices", ()))
    lowest = min(of_ranks)
    shown = of_ranks[lowest]
    wordings = {_DEVICE.sub(r"\1", finding.get("message", "")) for finding in of_ranks.values()}
    figures = sentence("ranks.figures", rank=lowest) if len(wordings) > 1 else ""
    message = on_ranks(list(of_ranks), all_ranks, f"{shown.get('message', '')}{figures}")
    return {**shown, "op": earliest["op"], "ops": sorted(ops), "devices": list(devices), "message": message}


def on_ranks(ranks: list[int], all_ranks: list[int], what: str) -> str:
    """Return what some of the ranks share, with their numbers before it."""
    return sentence("ranks.share", ranks=_ranks_in_words(ranks, all_ranks), what=what)


def _ranks_in_words(ranks: list[int], all_ranks: list[int]) -> str:
    total = len(all_ranks)
    if len(ranks) == total and total > 1:
        return sentence("ranks.all", total=total)
    if len(ranks) == 1:
        return sentence("ranks.one", rank=ranks[0])
    others = [str(rank) for rank in all_ranks if rank not in ranks]
    if len(others) <= MOST_NAMED:
        return sentence("ranks.all-but", count=len(ranks), total=total, others=others)
    if len(ranks) <= MOST_NAMED:
        return sentence("ranks.some", count=len(ranks), total=total, ranks=[str(rank) for rank in ranks])
    return sentence("ranks.many", count=len(ranks), total=total)
