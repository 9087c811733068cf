"""What an edit of a cost needs to be right: where a value is used, and what a line may say in its place.

An edit is a template of the table. What is asked here is that its names have values there, and that nothing looks at,
or changes, what it replaces. Whether it pays is for a run to say: `devtrace fix --costs`.
"""

from __future__ import annotations

import ast
from typing import Final

from devtrace.costs.repeated_costs import Cost, Names
from devtrace.costs.uses import updated, uses_of
from devtrace.costs.values import are_written
from devtrace.diagnosis.evidence.trace_queries import SourceNode
from devtrace.source.defuse import path_of, values_given
from devtrace.source.matching import (
    alone,
    assigned_names,
    calls_in,
    keyword,
    match_code,
    names_in,
    nodes_of,
    same_code,
    variable,
)
from devtrace.source.parsing import own_name, parameters
from devtrace.source.vocabulary import MAKES, full_name, is_of_tensors_alone

_APART: Final = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.NamedExpr, ast.IfExp)
_FLOATS: Final = ("float64", "float32", "float16", "bfloat16")
_NEVER_OF_TEXT: Final = (ast.Mult, ast.MatMult, ast.Sub, ast.Div, ast.Pow)
_TABLE: Final = 1 << 20
"""Bytes of a table that is moved as a whole."""

# What each step reads stays on the device, and is read below the loop at once: the values are the very same.


def is_kept_in_list(cost: Cost) -> Names | None:
    """`history.append(loss.item())` becomes a list of tensors, which the line below the loop makes one of numbers."""
    found = cost.found
    append = match_code("$list.append($value)", alone(found.statement))
    name = variable(append["list"]) if append is not None and append["value"] is found.node else ""
    read = _read(cost) if name and _has_torch(found) else None
    loop, start = _filled(found, name) if read is not None else (None, None)
    if read is None or loop is None or found.source.segment(start) not in ("[]", "list()"):  # type: ignore[arg-type]
        return None
    outer = [each for each in found.loops if each is not loop and each in found.source.ancestors(loop)]
    # In an outer loop the next round would append tensors to numbers.
    is_new = all(each in found.source.ancestors(start) for each in outer)
    return {"kept": read[1], "list": name, "loop": loop} if is_new else None


def is_summed(cost: Cost) -> Names | None:
    """`total += loss.item() * n` becomes a sum on the device, in the precision of Python's numbers."""
    found, summed = cost.found, updated(cost.found.statement)
    name = variable(summed[0]) if summed is not None and isinstance(summed[1], ast.Add) else ""
    read = _read(cost) if name else None
    loop, given = _filled(found, name) if read is not None else (None, None)
    start = type(getattr(given, "value", None))
    if read is None or summed is None or loop is None or start not in (int, float):
        return None
    if read[0] in _FLOATS:
        return {"kept": f"{read[2]}.double()", "total": name, "number": "float", "loop": loop}
    is_whole = start is int and summed[2] is found.node  # `int` below the loop would cut off a fraction
    return {"kept": read[2], "total": name, "number": "int", "loop": loop} if is_whole else None


def _read(cost: Cost) -> tuple[str, str, str] | None:
    """Return the dtype of the number that `x.item()` reads, the code of `x` as it may be kept, and without its graph.

    What is kept is a copy, if its memory is written to or is the same each time.
    """
    queries, ops = cost.queries, cost.ops
    item = match_code("$x.item()", cost.node)
    read = item or match_code("float($x)", cost.node)
    rows = [queries.inputs(op)[0] for op in ops if queries.inputs(op)]
    traits = {
        (str(queries.trace.tensors.raw("dtype", row)), queries.device(row), int(queries.dims[row])) for row in rows
    }
    dtype, device, dims = next(iter(traits), ("", "", -1))
    is_plain = len(traits) == 1 and dims == 0 and len(rows) == len(ops) and not device.startswith("mps")
    if read is None or cost.code is None or not is_plain or (item is None and dtype not in _FLOATS):
        return None
    bases = [queries.base(row) for row in rows]
    is_kept_alone = len(set(bases)) == len(bases) and not are_written(queries, bases, ops[0])
    inner = match_code("$x.detach()", read["x"]) or read
    detached = cost.code.called_on(inner["x"], "detach()")
    return dtype, detached if is_kept_alone else f"{detached}.clone()", detached


def _filled(found: SourceNode, name: str) -> tuple[ast.stmt | None, ast.expr | None]:
    """Return the outermost loop that fills a variable, and the value of that above the loop.

    Only one statement fills it, and nothing looks at it before the loop ends.
    """
    source, uses = found.source, uses_of(found, name) or []
    is_own = all(source.function(use) is source.function(found.node) for use in uses)
    for loop in reversed(found.loops) if is_own else ():
        above = [use for use in uses if source.span(use).line < source.span(loop).line]
        inside = [use for use in uses if loop in source.ancestors(use)]
        start = values_given(source, source.statement(above[-1])).get(name) if above else None
        if start is not None and inside and all(found.statement in source.ancestors(use) for use in inside):
            return loop, start
    return None, None


def _has_torch(found: SourceNode) -> bool:
    """Return whether code imports torch by its name, or uses that: what a cell uses, another has imported."""
    tree = found.source.tree
    return "torch" in found.source.imports or "torch" in names_in(tree) - set(assigned_names(tree))


# A move is made once.


def is_moved_in_loop(cost: Cost, name_of_all: str = "") -> Names | None:
    """`weights.to(device)` in a loop becomes `weights = weights.to(device)` above it, if it has its value there.

    Of `table[i].to(device)` all of a small table is moved: a schedule, not a data set.
    """
    found, code = cost.found, cost.code
    moved = match_code("$x.$move(...)", cost.node)
    if code is None or moved is None or moved["move"] not in cost.queries.move_methods:
        return None
    loops, name = found.loops, variable(cost.whole_of(moved["x"]))
    bases = {cost.queries.base(row) for row in cost.carried}
    is_small = len(bases) == 1 and cost.queries.trace.tensors[min(bases)].bytes <= _TABLE
    if not loops or not name or not (variable(moved["x"]) or is_small):
        return None
    function = found.function
    is_own = function is None or name in (*parameters(function, starred=True), *assigned_names(function))
    if name in assigned_names(loops[-1]) or not is_own:
        return None  # a function may move no variable of another; a cell may one of an earlier cell's
    given = names_in(*found.node.args, *found.node.keywords)  # type: ignore[attr-defined]
    call = code.method_call(found.node) if given.isdisjoint(assigned_names(loops[-1])) else ""
    named = {"name": name_of_all} if name_of_all else {}
    return {"moved": name, "call": call, "loop": loops[-1], **named} if call else None


def is_attribute(cost: Cost) -> Names | None:
    """Find a line that moves `self.table`, a part of it or `self.all["table"]`, and how a module would register it."""
    found, moved = cost.found, match_code("$x.to(...)", cost.node)
    whole = cost.whole_of(moved["x"]) if moved is not None else None
    of = whole.value if isinstance(whole, ast.Subscript) else whole
    owner, _, name = path_of(of).partition(".") if of is not None else ("", "", "")
    key = getattr(whole.slice, "value", None) if isinstance(whole, ast.Subscript) else name
    if whole is None or not name.isidentifier() or owner != own_name(found.source, found.node) or type(key) is not str:
        return None  # an item of a list has no name
    registered = f'{owner}.register_buffer("{key}", ..., persistent=False)'
    return {"attribute": found.source.segment(whole), "buffer": registered, "is_whole": of is whole}


def is_registered(cost: Cost) -> Names | None:
    """Find an attribute of a module's own class, by the module whose call the line runs in."""
    site, call = cost.queries.site(cost.line), cost.queries.trace.ops[cost.ops[0]].call
    is_of_module = site is not None and call is not None and site.function.rpartition(".")[0] == str(call.module.type)
    return is_attribute(cost) if is_of_module else None


def is_kept(cost: Cost) -> Names | None:
    """Find an attribute that has its value above the statement that moves it: nothing of a comprehension does."""
    names, statement = is_attribute(cost), cost.found.statement
    is_apart = any(isinstance(outer, _APART) for outer in cost.found.source.ancestors(cost.node))
    if names is None or cost.code is None or not names["is_whole"] or is_apart:
        return None
    is_simple = isinstance(statement, ast.Assign | ast.Return | ast.Expr | ast.AnnAssign)
    return names | {"call": cost.code.method_call(cost.node)} if is_simple else None


# What a factory makes is made on the device.


def made_there(cost: Cost) -> str:
    """Return `torch.ones(n, device=d)` for `torch.ones(n).to(d)`, with one factory; `.to(other)` gives a dtype too."""
    found, code = cost.found, cost.code
    moved = match_code("$x.to($device)", found.node)
    calls = list(calls_in(moved["x"])) if moved is not None else []
    names = {call: full_name(call.func, found.source).partition(".")[::2] for call in calls}
    made = [call for call, (root, name) in names.items() if root == "torch" and name in MAKES]
    if code is None or moved is None or len(made) != 1 or keyword(made[0], "device") is not None:
        return ""
    asked = code.text(moved["device"])
    if _is_tensor(found, moved["device"]):
        if keyword(made[0], "dtype") is not None:
            return ""
        asked = f"{asked}.device, dtype={asked}.dtype"
    return code.text_with(moved["x"], (made[0], code.with_argument(made[0], "device", asked)))


def _is_tensor(found: SourceNode, given: ast.expr) -> bool:
    """Return whether the line's function uses code as only a tensor can be used."""
    body = found.function or found.source.tree
    read = (each.value for each in nodes_of(ast.Attribute, body) if is_of_tensors_alone(each.attr))
    mixed = (each for each in nodes_of(ast.BinOp, body) if type(each.op) in _NEVER_OF_TEXT)
    sides = (side for each in mixed for side in (each.left, each.right))
    return any(same_code(each, given) for each in (*read, *sides))
