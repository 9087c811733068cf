"""Sentences on a notebook's simulated devices: what a cell left on its own, that it used none, that there are none."""

import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from devtrace.notebook.inventory.inventory import drain, listing
from devtrace.trace.tables import TraceData
from devtrace.words import catalogue

_MOST: Final = 3


def sentence_on_none(trace: TraceData, spec: str) -> str:
    """Say that a cell with devices of its own used none of them, and how its notebook would; "" where it used one."""
    if not len(trace.ops) or any(device.simulated for device in trace.devices):
        return ""
    return catalogue.sentence("report.nothing-on-devices", spec=spec)


def hint_without_cuda(error: BaseException) -> str:
    """Return how a notebook gets devices, for an error that torch raises where there are none; "" for any other."""
    if "torch" not in sys.modules:
        return ""
    from devtrace.diagnosis.evidence.error_origins import is_lack_of_cuda

    return catalogue.sentence("report.no-cuda") if is_lack_of_cuda(error) else ""


def sentence_on_ended(names_of_user: Callable[[], Mapping[str, Any]], spec: str) -> str:
    """Say which names are on devices that have ended, and how to get them back; "" where none is."""
    expired: Any = sys.modules.get("devtrace.simulation.expired_tensors")
    if expired is None or not expired.any_expired():
        return ""
    inventory = drain(listing(names_of_user()))
    ended = {row["device"] for row in inventory["devices"] if row["simulated"]}
    names = [row["name"] for row in inventory["holdings"] if any(share["device"] in ended for share in row["devices"])]
    if not names:
        return ""
    return catalogue.sentence(
        "report.left-on-devices", names=_shortened(names), count=len(names), devices=sorted(ended), spec=spec
    )


def _shortened(names: list[str]) -> list[str]:
    if len(names) <= _MOST:
        return names
    return [*names[: _MOST - 1], catalogue.sentence("report.more-names", count=len(names) - _MOST + 1)]
