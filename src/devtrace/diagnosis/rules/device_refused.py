"""device-refused: torch was asked for a device that is not there, or that this process or tensor cannot have.

model.to("cuda:1")                          # bad where there is one device
torch.load("best.pt", map_location="cpu")   # good where there is none
"""

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from devtrace.diagnosis.evidence.asked_devices import asked_device, who_asked
from devtrace.diagnosis.evidence.failing_moment import FailingMoment
from devtrace.diagnosis.evidence.finding_parts import of_error
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.torchs_sentences import REFUSALS
from devtrace.diagnosis.evidence.trace_queries import HOST, TraceQueries
from devtrace.diagnosis.findings import Edit, Finding, Line
from devtrace.source.matching import called_name, calls_in, is_path
from devtrace.source.safe_values import plain
from devtrace.trace.ids import OpId
from devtrace.words.catalogue import family, sentence

_MESSAGES: Final = family(
    "device-refused.*", "device-refused.absent", "device-refused.absent-unknown", "device-refused.file",
    "device-refused.forked", "device-refused.misspelt", "device-refused.pinned-unknown", "device-refused.mixed",
    "device-refused.mixed-unknown", "device-refused.duplicate",
)  # fmt: skip
_HELPS: Final = family(
    "device-refused.*-help", "device-refused.absent-help", "device-refused.file-help", "device-refused.forked-help",
    "device-refused.misspelt-help", "device-refused.pinned-help", "device-refused.mixed-help",
    "device-refused.duplicate-help",
)  # fmt: skip


class _Answer(NamedTuple):
    """Device that code asks for (empty if not known), the line that names it, and the edits or words that help."""

    device: str = ""
    lines: tuple[Line, ...] = ()
    edits: tuple[Edit, ...] = ()
    help: str = ""


def device_refused(queries: TraceQueries, moment: FailingMoment, op: OpId, text: str) -> Finding | None:
    matches = ((key, re.search(pattern, text, re.IGNORECASE | re.MULTILINE)) for key, pattern in REFUSALS.items())
    key, match = next(((key, match) for key, match in matches if match), ("", None))
    if match is None:
        return None
    names = [name if key == "misspelt" else name.lower() for name in match.groups() if name]
    if key == "mixed":
        paths = [paths[0] for row in queries.inputs(op) if (paths := moment.names(row))]
        names = [f"`{path.text}`" for path in paths if type(path.last.value).__name__ != "DTensor"]
    present = [*queries.snapshot.objects.accelerators] or [HOST]
    frames = FailingFrame.all_of(moment, present[0]) if key in ("absent", "file") else []
    answer = _absent(frames, ":".join(names), present) if key in ("absent", "file") else _Answer()
    if key == "file":  # it is where the file was saved, if no line says so
        key, answer = ("absent", answer) if answer.device else (key, _mapped_to_the_cpu(frames))
    device = answer.device or ":".join(names)
    values: dict[str, Any] = {"device": device, "names": names, "there": present, "count": len(present)}
    return Finding(
        rule="device-refused",
        **of_error(queries, op),
        devices=queries.devices_of(*queries.inputs(op)),
        message=sentence(_MESSAGES[key if device else f"{key}-unknown"], plain=len(names), **values),
        help=answer.help or sentence(_HELPS[key]),
        edits=answer.edits,
        lines=answer.lines,
    )


def _absent(frames: Sequence[FailingFrame], kind: str, present: list[str]) -> _Answer:
    """Return the device that a line asks for and is not there, who says so, and which variable has it."""

    def is_refused(device: str) -> bool:
        is_meant = kind in (device, device.partition(":")[0]) if kind else ":" in device
        return is_meant and device not in present

    asked = asked_device(frames, is_refused)
    if asked is None:
        return _Answer()
    value = plain(asked.node, asked.frame.scope()) if is_path(asked.node) else None
    code = asked.frame.code.text(asked.node)  # `rank`, where another line or the command gave it a number
    help = sentence("device-refused.absent-named-help", code=code, value=value) if value is not None else ""
    return _Answer(asked.device, who_asked(asked, frames[0]), help=help)


def _mapped_to_the_cpu(frames: Sequence[FailingFrame]) -> _Answer:
    """Return an edit of `torch.load(f)` to `torch.load(f, map_location="cpu")`: `load_state_dict` copies from there."""
    for frame in frames:
        call = next(calls_in(frame.source_node.node), None)
        if call is None or called_name(call) != "load" or {None, "map_location"} & {word.arg for word in call.keywords}:
            continue
        edit = frame.code.replaced(call, frame.code.with_argument(call, "map_location", '"cpu"'))
        if edit is not None:
            return _Answer(edits=(edit,), help=sentence("device-refused.file-edit", code=edit.after.strip()))
    return _Answer()
