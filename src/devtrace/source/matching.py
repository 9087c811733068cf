"""Patterns of syntax, written as the code that they match.

match_code("$x.to($device)", node)        # {"x": <Name>, "device": <Attribute>}, None if the node is something else
"""

import ast
import re
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Final, TypeGuard, TypeVar

N = TypeVar("N", bound=ast.AST)
_HOLE: Final = "HOLE_"
_IGNORED: Final = ("ctx", "kind", "type_comment")


def match_code(pattern: str, node: ast.AST | None) -> dict[str, Any] | None:
    """Match a node against code with holes, and return what fills each hole; None if it does not match.

    `$x` takes any expression, and as an attribute any name; a hole that occurs twice needs the same code twice.
    `...` for the arguments of a call fits any.
    """
    fills: dict[str, Any] = {}
    return fills if node is not None and _fits(_parsed_pattern(pattern), node, fills) else None


@cache
def _parsed_pattern(pattern: str) -> ast.AST:
    statement = ast.parse(pattern.replace("$", _HOLE)).body[0]
    return alone(statement) or statement


def _fits(pattern: Any, node: Any, fills: dict[str, Any]) -> bool:
    """Return whether code, or a field of it, is that of a pattern; `fills` gets the code for each hole."""
    if variable(pattern).startswith(_HOLE):
        return isinstance(node, ast.expr) and _fill(variable(pattern), node, fills)
    if isinstance(pattern, str) and pattern.startswith(_HOLE):
        return _fill(pattern, node, fills)
    if isinstance(pattern, list):
        return len(pattern) == len(node) and all(_fits(*pair, fills) for pair in zip(pattern, node, strict=True))
    if not isinstance(pattern, ast.AST):
        return bool(pattern == node)
    fields = ("func",) if _takes_any_arguments(pattern) else pattern._fields
    return type(pattern) is type(node) and all(
        _fits(getattr(pattern, name, None), getattr(node, name, None), fills) for name in fields if name not in _IGNORED
    )


def _fill(hole: str, code: Any, fills: dict[str, Any]) -> bool:
    former = fills.setdefault(hole.removeprefix(_HOLE), code)
    return former is code or same_code(former, code)


def _takes_any_arguments(pattern: ast.AST) -> bool:
    match pattern:
        case ast.Call(args=[ast.Constant(value=value)]):
            return value is ...
    return False


def same_code(one: Any, other: Any) -> bool:
    """Return whether two expressions are written alike, one being read and the other perhaps assigned."""
    return _fits(one, other, {})


def called_name(call: ast.AST) -> str:
    """Return `c` of `a.b.c(...)` and of `c(...)`."""
    function = getattr(call, "func", None)
    return getattr(function, "attr", "") or variable(function)


def may_be_text(node: ast.expr, text: str) -> bool:
    """Return whether code can give a text: `"mean"`, `f"{name}_mean"`, or a variable; False for another constant."""
    match node:
        case ast.Constant(value=constant):
            return bool(constant == text)
        case ast.JoinedStr(values=parts):
            texts = (getattr(part, "value", None) for part in parts)
            pattern = (re.escape(literal) if type(literal) is str else ".*" for literal in texts)
            return re.fullmatch("".join(pattern), text, re.DOTALL) is not None
    return True


def owner_of(call: ast.AST | None) -> ast.expr | None:
    """Return `a.b` of `a.b.c(...)`; None for what is no call of a method."""
    match call:
        case ast.Call(func=ast.Attribute(value=owner)):
            return owner
    return None


def variable(node: object) -> str:
    """Return the name of code that is a variable; empty for any other."""
    return node.id if isinstance(node, ast.Name) else ""


def is_read(node: object) -> bool:
    """Return whether code, `x` or `x.y` or `x[0]`, is read where it stands, and not given a value or deleted."""
    return isinstance(getattr(node, "ctx", None), ast.Load)


def is_given(node: object) -> bool:
    """Return whether code is assigned where it stands: `x` of `x = 1`, `y.w` of `y.w += 1`."""
    return isinstance(getattr(node, "ctx", None), ast.Store)


def alone(statement: object) -> ast.expr | None:
    """Return the expression of an expression statement, whose result is dropped."""
    return statement.value if isinstance(statement, ast.Expr) else None


def listed(node: ast.expr) -> list[ast.expr]:
    """Return the items of a tuple or list display; of other code itself."""
    return node.elts if isinstance(node, ast.Tuple | ast.List) else [node]


def star_at(parts: Sequence[ast.expr]) -> int:
    """Return the index of the first starred item; the number of items if none is starred."""
    return next((index for index, part in enumerate(parts) if isinstance(part, ast.Starred)), len(parts))


def is_step(node: object) -> TypeGuard[ast.Attribute | ast.Subscript]:
    """Return whether code is a part of something else: `x.y`, `x[0]`."""
    return isinstance(node, ast.Attribute | ast.Subscript)


def is_literal(node: object) -> TypeGuard[ast.Constant]:
    """Return whether code is a number, a text, None or the like."""
    return isinstance(node, ast.Constant)


def written_out(node: ast.AST) -> list[ast.expr]:
    """Return the items of a container display, of a dictionary its values, of a comprehension its element."""
    match node:
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items) | ast.Dict(values=items):
            return items
        case ast.ListComp(elt=item) | ast.SetComp(elt=item) | ast.GeneratorExp(elt=item) | ast.DictComp(value=item):
            return [item]
    return []


def chain(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a chain from its end inwards: of `x.sum(0)[1]` that itself, `x.sum(0)`, `x.sum`, `x`."""
    yield node
    match node:
        case ast.Call(func=inner) | ast.Attribute(value=inner) | ast.Subscript(value=inner):
            yield from chain(inner)


def only(kind: type[N] | tuple[type[N], ...], nodes: Iterable[object]) -> Iterator[N]:
    """Yield the nodes that are of a kind, or of one of several."""
    return (node for node in nodes if isinstance(node, kind))


def nodes_of(kind: type[N], *trees: ast.AST) -> Iterator[N]:
    """Yield the nodes of one kind in pieces of code, these themselves among them."""
    find = _with_statements if issubclass(kind, ast.stmt) else ast.walk
    return only(kind, (node for tree in trees for node in nodes_in(tree, find)))


def blocks_of(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the direct statements of a piece of code, and the parts that hold further ones: cases, handlers."""
    blocks = (getattr(node, name, None) for name in ("body", "cases", "handlers", "orelse", "finalbody"))
    return (part for block in blocks if isinstance(block, list) for part in block)


def _with_statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield a piece of code and the statements in it, in the order of `ast.walk`, which finds expressions too."""
    waiting = deque([tree])
    while waiting:
        yield (node := waiting.popleft())
        waiting.extend(blocks_of(node))


def nodes_in(tree: ast.AST, find: Callable[[ast.AST], Iterator[ast.AST]] = ast.walk) -> Iterable[ast.AST]:
    """Return what `find` yields for a tree: by default all nodes. Those of a whole file are found once and cached."""
    if not isinstance(tree, ast.Module):
        return find(tree)
    cache: dict[Any, list[ast.AST]] = vars(tree).setdefault("found", {})
    return cache.get(find) or cache.setdefault(find, list(find(tree)))


def calls_in(node: ast.AST) -> Iterator[ast.Call]:
    return nodes_of(ast.Call, node)


def called_names(node: ast.AST) -> set[str]:
    return {called_name(call) for call in calls_in(node)} - {""}


def run_names(node: ast.AST) -> set[str]:
    """Return the names of functions that code calls, or passes to a call: `net.apply(start)`."""
    arguments = (value for call in calls_in(node) for value in (*call.args, *(word.value for word in call.keywords)))
    names = {variable(value) or getattr(value, "attr", "") for value in arguments}
    return called_names(node) | names - {""}


def keyword(call: ast.Call | None, name: str) -> ast.expr | None:
    return next((word.value for word in call.keywords if word.arg == name), None) if call is not None else None


def given_trait(call: ast.Call | None, trait: str = "device") -> ast.expr | None:
    """Return the device or dtype argument of a call: by keyword, or first in `.to()`."""
    value = keyword(call, trait)
    return call.args[0] if call is not None and value is None and called_name(call) == "to" and call.args else value


def hands_on(node: ast.AST | None, variables: Container[str]) -> TypeGuard[ast.Call]:
    """Return whether code passes on all arguments of the function with these variables: `fn(*args, **kwargs)`."""
    match node:
        case ast.Call(
            func=function,
            args=[*leading, ast.Starred(value=ast.Name())],
            keywords=[ast.keyword(arg=None, value=ast.Name())],
        ):
            is_looked_up = called_name(function) == "getattr" or isinstance(function, ast.Subscript)
            return (variable(function) in variables or is_looked_up) and all(map(variable, leading))
    return False


def names_in(*trees: ast.AST) -> set[str]:
    """Return the variables that pieces of code mention."""
    return {name.id for name in nodes_of(ast.Name, *trees)}


def assigned_names(*trees: ast.AST) -> list[str]:
    """Return the variables that pieces of code assign or delete."""
    return [name.id for name in nodes_of(ast.Name, *trees) if not is_read(name)]


def is_path(node: ast.AST) -> bool:
    """Return whether code is a name, or attributes and constant items of one: `self.layers[0].weight`."""
    *steps, root = chain(node)
    are_constant = (isinstance(step, ast.Attribute) or is_literal(getattr(step, "slice", 0)) for step in steps)
    return bool(variable(root)) and all(are_constant)


def operands(node: ast.AST) -> list[ast.expr]:
    """Return the operands of an operation; for a call `x.add(y, alpha=z)` its owner and arguments: `x`, `y`, `z`."""
    match node:
        case ast.Call(args=args, keywords=words):
            values = [arg.value if isinstance(arg, ast.Starred) else arg for arg in args]
            return [*filter(None, [owner_of(node)]), *values, *(word.value for word in words)]
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.AugAssign(target=target, value=value):
            return [target, value]
        case ast.Compare(left=left, comparators=others):
            return [left, *others]
        case ast.UnaryOp(operand=operand) | ast.Attribute(value=operand):
            return [operand]
        case ast.Subscript(value=owner, slice=index):
            return [owner, *_indexes(index)]
        case ast.Assign(targets=[ast.Subscript(value=owner, slice=index)], value=value):
            return [owner, *_indexes(index), value]
        case ast.Assign(targets=targets, value=value):
            return [*(target.value for target in only(ast.Attribute, targets)), value]  # `x.data = y`
    return []


def _indexes(index: ast.expr) -> list[ast.expr]:
    return [part for part in listed(index) if not isinstance(part, ast.Slice)]
