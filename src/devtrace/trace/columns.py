"""Every table of a trace, its columns, and what each column means.

`tables.py` reads tables by it, `builder.py` fills them, `format.py` writes them; tests compare `devtrace.schema.json`
and the TypeScript model with it. A row's id is its index; -1 means none.
"""

from dataclasses import dataclass
from typing import Final, Literal

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


def _text(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, "text") for name in names)


def _int(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name) for name in names)


def _row(**tables: str) -> tuple[Column, ...]:
    return tuple(Column(name.rstrip("_"), "row", table) for name, table in tables.items())


OP_KINDS: Final = ("compute", "view", "create", "copy", "sync")
"""compute: work on data. view: no data touched. create: a tensor from nothing or from the host's values (factories,
lift_fresh). copy: between tensors (rows of `copies` say which cross devices). sync: the host waits to read a value
(.item(), bool, nonzero)."""

PHASES: Final = ("forward", "backward", "optimizer", "other")

SEVERITIES: Final = ("error", "warning", "note")

COPY_DIRECTIONS: Final = ("h2d", "d2h", "d2d")

LEDGER_COUNTS: Final = (*COPY_DIRECTIONS, "syncs", "cpu_compute", "bytes")

OP_POSITIONS: Final = {("calls", "begin"), ("calls", "end"), ("moves", "op"), ("modules", "op")}
"""Columns that say how many ops came before, and so are renumbered otherwise than references to an op."""

TABLES: Final[dict[str, tuple[Column, ...]]] = {
    "devices": (*_text("name"), *_int("simulated")),
    # A site is a span of source. `text` is the source of the span; `cell` is the execution count, -1 in a file;
    # `caller` is the nearest site in the user's own code when this one lies in an installed package, -1 when it is
    # the user's own.
    "sites": (
        *_text("file"),
        *_int("line", "column", "end_line", "end_column"),
        *_text("function", "text"),
        *_int("cell"),
        *_text("cell_id", "package"),
        *_row(caller="sites"),
    ),
    # Blocks of source that the sites lie in: the whole of a cell or a user's file, the touched functions of a
    # package's file.
    "sources": (*_text("file", "text"), *_int("line", "cell"), *_text("cell_id")),
    "shapes": (Column("dims", "ints"),),
    # `path` as the user would write it (model.encoder.0). `site` and `op`: where, and before which op, it was
    # attached to its parent; site -1: not seen; op negative: before this trace began (-1 the last happening, lower ones
    # earlier). `ran` is 0 for a module of the tree that no call reached.
    "modules": (*_text("path", "type"), *_row(parent="modules", site="sites"), *_int("op", "ran")),
    # begin and end count ops: the call's ops are those of its thread with begin <= id < end. Calls of one thread
    # nest.
    "calls": (
        *_row(module="modules", parent="calls"),
        *_int("begin", "end"),
        *_row(thread="threads"),
        *_int("training"),
    ),
    # A row per tensor that an op saw or made. `producer` is the op that made it (-1: before the trace, or not by an
    # op), `site` where it was born (-1: at its producer's site), `source` the tensor it was copied, cast or taken as
    # a view from.
    "tensors": (
        *_row(device="devices"),
        *_text("dtype"),
        *_row(shape="shapes"),
        Column("bytes", wide=True),
        *_row(producer="ops", site="sites"),
        *_text("role", "name"),
        *_row(source="tensors"),
    ),
    "threads": (*_text("name"), *_int("rank")),
    # start and duration in ns from the start of the recording; duration -1: it raised or never ended. `forward` is,
    # for a backward op, the forward op that it differentiates. `grad`: grad mode was on.
    "ops": (
        *_text("name"),
        Column("start", wide=True),
        Column("duration", wide=True),
        *_row(device="devices"),
        *_text("kind", "phase"),
        *_row(call="calls", site="sites", thread="threads"),
        Column("inputs", "rows", "tensors"),
        Column("outputs", "rows", "tensors"),
        *_row(forward="ops"),
        *_int("grad"),
    ),
    # Every op that carried data from one tensor to another across devices (or that could have: same-device copies are
    # not rows).
    "copies": (
        *_row(op="ops", from_="devices", to="devices"),
        Column("bytes", wide=True),
        *_int("pinned", "non_blocking"),
    ),
    # Each Module.to, .cuda(), .half() ... of a root module: before which op, from where, to which device (-1: no
    # device change).
    "moves": (*_row(module="modules", site="sites"), *_int("op"), *_row(device="devices"), *_int("tensors")),
    "errors": (*_row(op="ops"), *_text("type", "message")),
    # Exact counts per site in user code, folded ops included. `ops` is indexed by device.
    "ledger": (
        *_row(site="sites"),
        Column("ops", "ints"),
        *(Column(name, wide=name == "bytes") for name in LEDGER_COUNTS),
    ),
}
