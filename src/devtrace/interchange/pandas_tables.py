"""The trace as pandas tables, with the dtypes that one computes with."""

from typing import Any, Final

import numpy as np
import pandas as pd

from devtrace.trace.columns import TABLES, Column
from devtrace.trace.tables import Ints, Table, TraceData
from devtrace.trace.views import modules_of_ops

_YES_NO: Final = {"simulated", "ran", "training", "grad", "pinned", "non_blocking"}
_TIMES: Final = {"start", "duration"}
_FINDING_FIELDS: Final = (
    "rule", "severity", "cause", "devices", "site", "op", "culprit", "count", "bytes", "message", "help",
)  # fmt: skip


def to_pandas(trace: TraceData) -> dict[str, pd.DataFrame]:
    """One DataFrame a table, by its name, and one of the findings.

    The index is the row id. A reference to another table is its id (<NA>: none), a device is its name, a time is a
    timedelta (NaT: it never ended). `ops` also has `module`, `ledger` a column of ops for each device.
    """
    frames = {name: _frame(trace, trace.table(name)) for name in TABLES}
    paths = [*(module.path for module in trace.modules), None]
    frames["ops"]["module"] = pd.Categorical([paths[module] for module in modules_of_ops(trace).tolist()])
    frames["ledger"] = _ledger_frame(trace, frames["ledger"])
    frames["findings"] = _findings_frame(trace)
    return frames


def _frame(trace: TraceData, table: Table[Any]) -> pd.DataFrame:
    index = pd.RangeIndex(len(table), name="id")
    return pd.DataFrame({column.name: _series(trace, table, column) for column in table.columns}, index=index)


def _series(trace: TraceData, table: Table[Any], column: Column) -> Any:
    if column.is_list:
        lists = table.lists(column.name)
        return [tuple(lists[row].tolist()) for row in range(len(table))]
    values = table.ints(column.name)
    if column.kind == "text":
        return _categories(values, trace.strings)
    if column.table == "devices":
        return _categories(values, [device.name for device in trace.devices])
    if column.table == "shapes":
        shapes = [shape.dims for shape in trace.shapes]
        return [shapes[id] if id >= 0 else None for id in values.tolist()]
    if column.name in _TIMES:
        return pd.to_timedelta(np.where(values < 0, np.iinfo(np.int64).min, values), unit="ns")
    if column.name in _YES_NO:
        return pd.array(values > 0, dtype="boolean")
    if column.kind == "row" or column.name in ("cell", "line", "rank", "op"):
        return pd.arrays.IntegerArray(values.astype(np.int32), values < 0)
    return values.astype(np.int64)


def _categories(values: Ints, names: Any) -> Any:
    """Text as a categorical of those strings that occur, -1 as missing."""
    used, codes = np.unique(values, return_inverse=True)
    present = [id for id in used.tolist() if id >= 0]
    words = pd.Series([names[id] for id in present], dtype="str" if present else "object")
    return pd.Categorical.from_codes(codes - (len(used) - len(present)), categories=pd.Index(words))


def _ledger_frame(trace: TraceData, frame: pd.DataFrame) -> pd.DataFrame:
    by_device = frame.pop("ops")
    for id, device in enumerate(trace.devices):
        frame[f"ops {device.name}"] = np.array([row[id] if id < len(row) else 0 for row in by_device], dtype=np.int64)
    return frame


def _findings_frame(trace: TraceData) -> pd.DataFrame:
    rows = [{**finding, "culprit": (finding.get("culprit") or {}).get("name")} for finding in trace.findings or ()]
    frame = pd.DataFrame(rows, columns=list(_FINDING_FIELDS))
    words = dict.fromkeys(("rule", "severity", "cause", "culprit", "message", "help"), "category")
    frame = frame.astype({**words, "count": "int64", "bytes": "int64"})
    for name in ("site", "op"):
        ids = frame[name].to_numpy(np.int32)
        frame[name] = pd.arrays.IntegerArray(ids, ids < 0)
    frame.index.name = "id"
    return frame
