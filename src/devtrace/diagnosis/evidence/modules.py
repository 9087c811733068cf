"""What a rule asks of modules: which line moved `model.head`, where are its tensors?

    head = modules.named(queries, "model.head")
    modules.moves(queries, head)[0].site                # `model.to(device)`, the last one
    modules.tensors(queries, below="model.head")        # its weight and bias, before and after each move

A path is what the program's variables say. A move has the `module` that it was of, its `site`, the `op` that it came
before, and its `device`: None where nothing went to another.
"""

from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.trace.ids import NO_MODULE, ModuleId, TensorId
from devtrace.trace.rows import Move


def named(queries: TraceQueries, path: str) -> ModuleId:
    """Return the module of a path, the last of several that had it one after the other; -1 for none."""
    modules = queries.trace.modules
    ids = (id for id in reversed(range(len(modules))) if path and modules.raw("path", id) == path)
    return ModuleId(next(ids, NO_MODULE))


def around(queries: TraceQueries, module: ModuleId) -> list[ModuleId]:
    """Return a module and those around it, outermost last: of `model.head` also `model`; none for -1."""
    modules = list[ModuleId]()
    while module >= 0:
        modules.append(module)
        module = ModuleId(queries.trace.modules.number("parent", module))
    return modules


def moves(queries: TraceQueries, module: ModuleId) -> list[Move]:
    """Return the calls of `.to()` and its kin on a module, or on one around it, the last one first."""
    movable = around(queries, module)
    return [move for move in reversed(queries.trace.moves) if move.module.id in movable]


def tensors(queries: TraceQueries, *roles: str, below: str = "") -> list[tuple[str, TensorId]]:
    """Return parameters, buffers and attributes of modules, or only some `roles`, by their recorded names.

    One that moved is there once for each device, in order. `below` is the path of a module around them.
    """
    wanted = {queries.strings.get(role, -2) for role in roles or ("parameter", "buffer", "attribute")}
    rows = (TensorId(row) for row, role in enumerate(queries.trace.tensors.ints("role").tolist()) if role in wanted)
    named = ((str(queries.trace.tensors.raw("name", row)), row) for row in rows)
    return [(name, row) for name, row in named if f"{name}.".startswith(f"{below}." if below else "")]
