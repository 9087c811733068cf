"""Every table of a trace, its columns, and what each column means.

`tables.py` reads tables by it, `builder.py` fills them, `format.py` writes them; tests compare `devtrace.schema.json`
and the TypeScript model with it. A row's id is its index; -1 means none.
"""

from dataclasses import dataclass
from typing import Final, Literal, cast

Kind = Literal["int", "text", "row", "ints", "rows"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `int`: a number. `text`: an index into `strings`. `row`: an index into `table`.
    `ints` and `rows`: a list a row, kept as offsets and a flat column."""

    name: str
    kind: Kind = "int"
    table: str = ""
    wide: bool = False

    @property
    def is_list(self) -> bool:
        return self.kind in ("ints", "rows")


def _table(**columns: str) -> tuple[Column, ...]:
    """Make columns of their kinds: `name="text"`, `bytes="wide"` (a wide int), `site="row sites"`."""
    made = []
    for name, written in columns.items():
        kind, _, table = written.partition(" ")
        made.append(Column(name.rstrip("_"), cast(Kind, "int" if kind == "wide" else kind), table, kind == "wide"))
    return tuple(made)


OP_KINDS: Final = ("compute", "view", "create", "copy", "sync")
"""compute: work on data. view: no data touched. create: a tensor from nothing or from the host's values (factories,
lift_fresh). copy: between tensors (rows of `copies` say which cross devices). sync: the host waits to read a value
(.item(), bool, nonzero)."""

PHASES: Final = ("forward", "backward", "optimizer", "other")

SEVERITIES: Final = ("error", "warning", "note")

COPY_DIRECTIONS: Final = ("h2d", "d2h", "d2d")

LEDGER_COUNTS: Final = (*COPY_DIRECTIONS, "syncs", "cpu_compute", "bytes")

OP_POSITIONS: Final = {
    ("calls", "begin"), ("calls", "end"), ("moves", "op"), ("modules", "op"),
    ("autocasts", "begin"), ("autocasts", "end"),
}  # fmt: skip
"""Columns that say how many ops came before, and so are renumbered otherwise than references to an op."""

OPTIONAL_TABLES: Final = ("autocasts",)
"""Tables that a file leaves out where they have no rows: they came after others wrote files without them."""

OPTIONAL_COLUMNS: Final = {("copies", "source")}
"""Columns that a file may lack: they came after others wrote files without them."""

TABLES: Final[dict[str, tuple[Column, ...]]] = {
    "devices": _table(name="text", simulated="int"),
    # A site is a span of source. `text` is the source of the span; `cell` is the execution count, -1 in a file;
    # `caller` is the nearest site in the user's own code when this one lies in an installed package, -1 when it is
    # the user's own.
    "sites": _table(
        file="text", line="int", column="int", end_line="int", end_column="int",
        function="text", text="text", cell="int", cell_id="text", package="text", caller="row sites",
    ),
    # Blocks of source that the sites lie in: the whole of a cell or a user's file, the touched functions of a
    # package's file.
    "sources": _table(file="text", text="text", line="int", cell="int", cell_id="text"),
    "shapes": _table(dims="ints"),
    # `path` as the user would write it (model.encoder.0). `site` and `op`: where, and before which op, it was
    # attached to its parent; site -1: not seen; op negative: before this trace began (-1 the last happening, lower ones
    # earlier). `ran` is 0 for a module of the tree that no call reached.
    "modules": _table(path="text", type="text", parent="row modules", site="row sites", op="int", ran="int"),
    # begin and end count ops: the call's ops are those of its thread with begin <= id < end. Calls of one thread
    # nest.
    "calls": _table(
        module="row modules", parent="row calls", begin="int", end="int", thread="row threads", training="int"
    ),
    # A row per tensor that an op saw or made. `producer` is the op that made it (-1: before the trace, or not by an
    # op), `site` where it was born (-1: at its producer's site), `source` the tensor it was copied, cast or taken as
    # a view from.
    "tensors": _table(
        device="row devices", dtype="text", shape="row shapes", bytes="wide",
        producer="row ops", site="row sites", role="text", name="text", source="row tensors",
    ),
    "threads": _table(name="text", rank="int"),
    # start and duration in ns from the start of the recording; duration -1: it raised or never ended. `forward` is,
    # for a backward op, the forward op that it differentiates. `grad`: grad mode was on.
    "ops": _table(
        name="text", start="wide", duration="wide", device="row devices", kind="text", phase="text",
        call="row calls", site="row sites", thread="row threads", inputs="rows tensors", outputs="rows tensors",
        forward="row ops", grad="int",
    ),
    # Every op that carried data from one tensor to another across devices (or that could have: same-device copies are
    # not rows). `source` is the tensor that was copied, -1 for a list of Python's.
    "copies": _table(
        op="row ops", from_="row devices", to="row devices", bytes="wide", pinned="int", non_blocking="int",
        source="row tensors",
    ),
    # Each Module.to, .cuda(), .half() ... of a root module: before which op, from where, to which device (-1: no
    # device change).
    "moves": _table(module="row modules", site="row sites", op="int", device="row devices", tensors="int"),
    "errors": _table(op="row ops", type="text", message="text"),
    # Exact counts per site in user code, folded ops included. `ops` is indexed by device.
    "ledger": _table(
        site="row sites", ops="ints", **{name: "wide" if name == "bytes" else "int" for name in LEDGER_COUNTS}
    ),
    # Regions of torch.autocast, in the order in which they were entered; within another the inner one counts. begin and
    # end as those of calls. `site`: where it was entered (-1: before the recording), `left`: where it was left (-1: not
    # seen). `device`: the kind of devices that it is for ("cuda").
    "autocasts": _table(
        thread="row threads", begin="int", end="int", device="text", dtype="text", enabled="int",
        site="row sites", left="row sites",
    ),
}  # fmt: skip
