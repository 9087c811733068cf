"""A case: all that a report is made of, and the part of a saved trace's file that has it.

    case = Case(trace, snapshot)        # what ran, what was there; of a file `files`, what was written
    of_json(to_json(case))              # the same findings, on a machine without torch

{"version": 1, "data": "<base64>"}: `data` is zlib over {"value": ..., "rows": [...], "files": {...}, "kinds": [...],
"trace": {...}}. Value and rows are a Snapshot, as `source/stand_in_rows.py` says; `trace` is as before its report.
"""

import base64
import json
import zlib
from collections.abc import Collection
from dataclasses import dataclass, field, fields
from typing import Any, Final

from devtrace.features import offered
from devtrace.source.live_objects import CellText, Evidence
from devtrace.source.parsing import text_of
from devtrace.source.saved_files import File, SavedFiles, reading
from devtrace.source.snapshot import Objects, Snapshot
from devtrace.source.stand_in_rows import of_rows, to_rows
from devtrace.source.user_code import is_torch_or_ours, owner_of
from devtrace.source.vocabulary import kinds
from devtrace.trace.format import decode, encode
from devtrace.trace.subset import without_source
from devtrace.trace.tables import TraceData
from devtrace.words.catalogue import sentence
from devtrace.words.errors import FormatError, named

VERSION: Final = 1
MOST_BYTES: Final = 1 << 28
"""Of what `data` may expand to: 60,000 stand-ins take some 10 MB, the texts of files some more."""
_KEPT: Final = tuple(each.name for each in fields(Snapshot) if each.name != "freeze")


@dataclass(frozen=True)
class Case:
    """A trace with its snapshot; of a file with its source, which is else where the program ran."""

    trace: TraceData
    snapshot: Snapshot = field(default_factory=Snapshot)
    files: SavedFiles | None = None


def to_json(case: Case) -> dict[str, Any]:
    with reading(case.files):
        snapshot = {name: getattr(case.snapshot, name) for name in _KEPT}
        data = to_rows(snapshot | {"objects": case.snapshot.objects}, _records())
        ran = {str(site.file) for site in case.trace.sites}
        of_objects = {parts[0][2] for kind, *parts in data["rows"] if kind in ("code", "class")}
        files = {file: _saved_file(file, ran) for file in sorted(ran | of_objects)}
        data |= {"files": files, "kinds": kinds(), "trace": encode(case.trace)}
    packed = zlib.compress(json.dumps(data, separators=(",", ":")).encode())
    return {"version": VERSION, "data": base64.b64encode(packed).decode("ascii")}


def of_json(data: Any) -> Case | None:
    """Return the case of a saved trace; None where it has none."""
    try:
        return None if data is None else _case_of(data)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, zlib.error) as fault:
        raise FormatError.of("trace-damaged", found=sentence("damage.case", fault=named(fault))) from None


def _case_of(data: dict[str, Any]) -> Case:
    if data["version"] > VERSION:
        raise FormatError.of("trace-newer", version=data["version"], newest=VERSION)
    unpacked = zlib.decompressobj().decompress(base64.b64decode(data["data"]), MOST_BYTES)
    saved = json.loads(unpacked)
    snapshot = of_rows(saved, _records())
    objects = snapshot["objects"]
    kept = {name: value for name, value in snapshot.items() if name in _KEPT}  # a file may have more
    files = {file: File(*parts) for file, parts in saved["files"].items()}
    return Case(decode(saved["trace"]), Snapshot(lambda: objects, **kept), SavedFiles(files, tuple(saved["kinds"])))


def without_names(case: Case) -> Case:
    """Return a case without the program's source and the names of its objects."""
    snapshot = Snapshot(evidence=case.snapshot.evidence, went_on=case.snapshot.went_on)
    return Case(without_source(case.trace), snapshot, SavedFiles(kinds=kinds()))


def _records() -> dict[str, type]:
    return {record.__name__: record for record in (Objects, CellText, Evidence)} | offered("fact")


def _saved_file(file: str, ran: Collection[str]) -> File:
    """Return a file: the user's, and a package's that ran, with the text."""
    owner = owner_of(file)
    has_text = owner == "user" or (owner == "package" and file in ran)
    return File(owner, is_torch_or_ours(file), text_of(file) if has_text else "")
