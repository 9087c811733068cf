"""What an edit of a cost needs to be right: where a value is used, and what a line may say in its place.

An edit is a template of the table. These functions check that its names have values there, and that nothing looks at,
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
    place = cost.place
    append = match_code("$list.append($value)", alone(place.statement))
    name = variable(append["list"]) if append is not None and append["value"] is place.node else ""
    _, code, _ = (_number_read(cost) if name and _has_torch(place) else None) or ("", "", "")
    loop, start = _loop_that_fills(place, name) if code else (None, None)
    if loop is None or place.source.segment(start) not in ("[]", "list()"):  # type: ignore[arg-type]
        return None
    outer_loops = [outer for outer in place.loops if outer is not loop and outer in place.source.ancestors(loop)]
    # In an outer loop the next round would append tensors to numbers.
    is_new_in_each = all(outer in place.source.ancestors(start) for outer in outer_loops)
    return {"kept": code, "list": name, "loop": loop} if is_new_in_each else None


def is_summed(cost: Cost) -> Names | None:
    """`total += loss.item() * n` becomes a sum on the device, in the precision of Python's numbers."""
    place, update = cost.place, updated(cost.place.statement)
    target, operator, addend = update or (None, None, None)
    name = variable(target) if isinstance(operator, ast.Add) else ""
    dtype, _, code = (_number_read(cost) if name else None) or ("", "", "")
    loop, start = _loop_that_fills(place, name) if code else (None, None)
    kind = type(getattr(start, "value", None))
    if loop is None or kind not in (int, float):
        return None
    if dtype in _FLOATS:
        return {"kept": f"{code}.double()", "total": name, "number": "float", "loop": loop}
    is_whole = kind is int and addend is place.node  # `int` below the loop would cut off a fraction
    return {"kept": code, "total": name, "number": "int", "loop": loop} if is_whole else None


def _number_read(cost: Cost) -> tuple[str, str, str] | None:
    """Return `("float32", "x.detach().clone()", "x.detach()")` for `x.item()`: dtype, code for a list, code for a sum.

    A list gets a copy if the memory of `x` is written to or used again. `mps` has no float64 for a sum.
    """
    queries, ops = cost.queries, cost.ops
    item = match_code("$x.item()", cost.node)
    read = item or match_code("float($x)", cost.node)
    tensors = [queries.inputs(op)[0] for op in ops if queries.inputs(op)]
    dtypes = (str(queries.trace.tensors.raw("dtype", tensor)) for tensor in tensors)
    kinds = set(zip(dtypes, map(queries.device, tensors), queries.dims[tensors].tolist(), strict=True))
    dtype, device, dims = next(iter(kinds), ("", "", -1))
    is_one_kind_of_number = len(kinds) == 1 and dims == 0 and len(tensors) == len(ops) and not device.startswith("mps")
    if read is None or cost.code is None or not is_one_kind_of_number or (item is None and dtype not in _FLOATS):
        return None
    bases = [queries.base(tensor) for tensor in tensors]
    has_memory_of_its_own = len(set(bases)) == len(bases) and not are_written(queries, bases, ops[0])
    inner = match_code("$x.detach()", read["x"]) or read
    detached = cost.code.called_on(inner["x"], "detach()")
    return dtype, detached if has_memory_of_its_own else f"{detached}.clone()", detached


def _loop_that_fills(place: SourceNode, name: str) -> tuple[ast.stmt | None, ast.expr | None]:
    """Return the outermost loop in which only one statement uses a variable, and the variable's value above it."""
    source, uses = place.source, uses_of(place, name) or []
    is_of_one_function = all(source.function(use) is source.function(place.node) for use in uses)
    for loop in reversed(place.loops) if is_of_one_function else ():
        uses_above = [use for use in uses if source.span(use).line < source.span(loop).line]
        uses_inside = [use for use in uses if loop in source.ancestors(use)]
        start = values_given(source, source.statement(uses_above[-1])).get(name) if uses_above else None
        if start is not None and uses_inside and all(place.statement in source.ancestors(use) for use in uses_inside):
            return loop, start
    return None, None


def _has_torch(place: SourceNode) -> bool:
    """Return whether code imports torch, or uses the name `torch` without assigning it: another cell imported it."""
    tree = place.source.tree
    return "torch" in place.source.imports or "torch" in names_in(tree) - set(assigned_names(tree))


# A move is made once.


def is_moved_in_loop(cost: Cost, name_of_all: str = "") -> Names | None:
    """`weights.to(device)` in a loop becomes `weights = weights.to(device)` above it, if `weights` has its value there.

    Of `table[i].to(device)` all of a small table is moved: a schedule, not a data set.
    """
    place, code = cost.place, cost.code
    move = match_code("$x.$move(...)", cost.node)
    if code is None or move is None or move["move"] not in cost.queries.move_methods:
        return None
    loops, name = place.loops, variable(cost.whole_of(move["x"]))
    bases = {cost.queries.base(tensor) for tensor in cost.carried}
    is_small = len(bases) == 1 and cost.queries.trace.tensors[min(bases)].bytes <= _TABLE
    if not loops or not name or not (variable(move["x"]) or is_small):
        return None
    function = place.function
    is_local = function is None or name in (*parameters(function, starred=True), *assigned_names(function))
    if name in assigned_names(loops[-1]) or not is_local:
        return None  # a function may move no variable of another; a cell may one of an earlier cell's
    names_in_arguments = names_in(*place.node.args, *place.node.keywords)  # type: ignore[attr-defined]
    call = code.method_call(place.node) if names_in_arguments.isdisjoint(assigned_names(loops[-1])) else ""
    name_of_cost = {"name": name_of_all} if name_of_all else {}
    return {"moved": name, "call": call, "loop": loops[-1], **name_of_cost} if call else None


def is_attribute(cost: Cost) -> Names | None:
    """Find a line that moves `self.table`, a part of it or `self.all["table"]`, and how a module would register it."""
    place, move = cost.place, match_code("$x.to(...)", cost.node)
    whole = cost.whole_of(move["x"]) if move is not None else None
    attribute = whole.value if isinstance(whole, ast.Subscript) else whole
    owner, _, name = path_of(attribute).partition(".") if attribute is not None else ("", "", "")
    key = getattr(whole.slice, "value", None) if isinstance(whole, ast.Subscript) else name
    if whole is None or not name.isidentifier() or owner != own_name(place.source, place.node) or type(key) is not str:
        return None  # an item of a list has no name
    buffer = f'{owner}.register_buffer("{key}", ..., persistent=False)'
    return {"attribute": place.source.segment(whole), "buffer": buffer, "is_whole": attribute is whole}


def is_registered(cost: Cost) -> Names | None:
    """Find `self.table` of a line in a method of the class of the module whose call runs the line."""
    site, call = cost.queries.site(cost.line), cost.queries.trace.ops[cost.ops[0]].call
    is_of_module = site is not None and call is not None and site.function.rpartition(".")[0] == str(call.module.type)
    return is_attribute(cost) if is_of_module else None


def is_kept(cost: Cost) -> Names | None:
    """Find `self.table` that has its value above the statement that moves it: in a comprehension it may have none."""
    names, statement = is_attribute(cost), cost.place.statement
    is_in_expression_apart = any(isinstance(outer, _APART) for outer in cost.place.source.ancestors(cost.node))
    if names is None or cost.code is None or not names["is_whole"] or is_in_expression_apart:
        return None
    is_simple = isinstance(statement, ast.Assign | ast.Return | ast.Expr | ast.AnnAssign)
    return names | {"call": cost.code.method_call(cost.node)} if is_simple else None


# What a factory makes is made on the device.


def made_there(cost: Cost) -> str:
    """Return `torch.ones(n, device=d)` for `torch.ones(n).to(d)`, with one factory; `.to(other)` gives a dtype too."""
    place, code = cost.place, cost.code
    move = match_code("$x.to($device)", place.node)
    calls = list(calls_in(move["x"])) if move is not None else []
    names = {call: full_name(call.func, place.source).partition(".")[::2] for call in calls}
    factories = [call for call, (root, name) in names.items() if root == "torch" and name in MAKES]
    if code is None or move is None or len(factories) != 1 or keyword(factories[0], "device") is not None:
        return ""
    device = code.text(move["device"])
    if _is_used_as_tensor(place, move["device"]):
        if keyword(factories[0], "dtype") is not None:
            return ""
        device = f"{device}.device, dtype={device}.dtype"
    return code.text_with(move["x"], (factories[0], code.with_argument(factories[0], "device", device)))


def _is_used_as_tensor(place: SourceNode, code: ast.expr) -> bool:
    """Return whether the line's function uses `other` as only a tensor is used: `other.grad`, `2 * other`."""
    body = place.function or place.source.tree
    owners = (node.value for node in nodes_of(ast.Attribute, body) if is_of_tensors_alone(node.attr))
    operations = (node for node in nodes_of(ast.BinOp, body) if type(node.op) in _NEVER_OF_TEXT)
    operands = (side for operation in operations for side in (operation.left, operation.right))
    return any(same_code(other, code) for other in (*owners, *operands))
