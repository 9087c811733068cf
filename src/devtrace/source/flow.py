"""Statements and their assignments to variables, attributes and parameters: read in source order, never run.

    x, self.w = f(), 3          # bindings(source, body, "self.w"): the value `f(), 3`, of which it is position (1,)

A target inside a tuple has a position: `b` of `a, (b, c) = f()` is (1, 0), `z` of `x, *y, z = f()` is (-1,).
"""

import ast
import builtins
from collections.abc import Container, Iterable, Iterator
from typing import Final, NamedTuple

from devtrace.source.branches import is_on_every_way
from devtrace.source.matching import (
    assigned_names,
    blocks_of,
    called_name,
    chain,
    listed,
    names_in,
    nodes_of,
    only,
    owner_of,
    same_code,
    star_at,
    variable,
)
from devtrace.source.parsing import FunctionNode, Source, kept_with_source
from devtrace.source.vocabulary import changes_itself, is_move

FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
DEFINED: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
ASSIGNMENTS: Final = (ast.Assign, ast.AnnAssign)
LOOPS: Final = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
Position = tuple[int, ...]
Round = ast.For | ast.AsyncFor | ast.comprehension


def statements(body: ast.AST) -> Iterator[ast.stmt]:
    """Yield a body's own statements, in the order of the source, not those of functions and classes in it."""
    for node in blocks_of(body):
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, DEFINED):
            yield from statements(node)


class Target(NamedTuple):
    """Target of an assignment. `loops`: the value is a loop's iterable. `is_inner`: `x` of `(x := 3)`."""

    node: ast.expr
    value: ast.expr
    loops: bool = False
    is_inner: bool = False


def targets(statement: ast.stmt) -> Iterator[Target]:
    """Yield the targets of a statement; `x += 1` and definitions have none."""
    match statement:
        case ast.Assign(targets=given, value=value):
            yield from (Target(each, value) for each in given)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield Target(target, value)
        case ast.With(items=items) | ast.AsyncWith(items=items):
            yield from (Target(each.optional_vars, each.context_expr) for each in items if each.optional_vars)
        case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
            yield Target(target, value, loops=True)
    for inner in nodes_of(ast.NamedExpr, *only(ast.expr, ast.iter_child_nodes(statement))):
        yield Target(inner.target, inner.value, is_inner=True)


def binds(statement: ast.stmt) -> set[str]:
    """Return the variables that a statement assigns, without those of statements inside it."""
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return {statement.name}
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return {(alias.asname or alias.name).partition(".")[0] for alias in names}
    found = {each.name for each in getattr(statement, "handlers", ())}
    parts = [each.pattern for each in getattr(statement, "cases", ())]
    parts += [part for part in ast.iter_child_nodes(statement) if not isinstance(part, ast.stmt | ast.match_case)]
    for inner in (inner for part in parts if not isinstance(part, ast.ExceptHandler) for inner in ast.walk(part)):
        match inner:
            case ast.Name(id=name, ctx=ast.Store()) | ast.MatchAs(name=name) | ast.MatchStar(name=name):
                found.add(name)
            case ast.MatchMapping(rest=name):
                found.add(name)
    return found - {None}


class Binding(NamedTuple):
    """A value that is assigned at a line of the file. `loops`: it is a loop's iterable."""

    value: ast.expr
    position: Position
    line: int
    statement: ast.stmt
    loops: bool = False
    is_inner: bool = False

    @property
    def own(self) -> ast.expr | None:
        """Return the target's own value, `f()` for `b` of `a, b = 1, f()`; None if a call or loop gives several."""
        value: ast.expr | None = None if self.loops else self.value
        for index in self.position:
            parts = value.elts if isinstance(value, ast.Tuple | ast.List) else []
            is_written = -len(parts) <= index < len(parts) == star_at(parts)
            value = parts[index] if is_written else None
        return value


def bindings(source: Source, body: ast.AST, path: str) -> list[Binding]:
    """Return the bindings of a variable or attribute (`self.w`) in a body, in source order."""
    return _bindings_by_path(source, body).get(path, [])


@kept_with_source
def _bindings_by_path(source: Source, body: ast.AST) -> dict[str, list[Binding]]:
    found: dict[str, list[Binding]] = {}
    for statement in statements(body):
        for path, binding in given_by(source, statement):
            found.setdefault(path, []).append(binding)
    return found


def given_by(source: Source, statement: ast.stmt) -> Iterator[tuple[str, Binding]]:
    """Yield the paths that a statement assigns, each with its value."""
    line = source.span(statement).line
    for node, value, loops, is_inner in targets(statement):
        for path, position in _paths(node, ()):
            yield path, Binding(value, position, line, statement, loops, is_inner)


def values_given(source: Source, statement: ast.stmt) -> dict[str, ast.expr]:
    """Return the variables of an assignment, each with the code of its own value."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) > 1:
        return {}
    given = [(path, each.own) for path, each in given_by(source, statement) if not each.is_inner]
    return {path: value for path, value in given if value is not None and path.isidentifier()}


def _paths(target: ast.expr, position: Position) -> Iterator[tuple[str, Position]]:
    if isinstance(target, ast.Tuple | ast.List):
        star = star_at(target.elts)
        for index, part in enumerate(target.elts):
            yield from _paths(part, (*position, index if index <= star else index - len(target.elts)))
    elif path := path_of(target):
        yield path, position


def path_of(node: ast.AST) -> str:
    """Return `self.net.w` for code that is a name, or attributes of one; empty for other code."""
    match node:
        case ast.Attribute(value=inner, attr=name):
            return f"{owner}.{name}" if (owner := path_of(inner)) else ""
    return variable(node)


def paths_in(*trees: ast.AST) -> set[str]:
    """Return the names and attribute paths in pieces of code."""
    return {path_of(each) for each in nodes_of(ast.expr, *trees)} - {""}


def position_in(target: ast.expr, path: str) -> Position | None:
    """Return where a target names a variable or an attribute; None if it does not."""
    return next((position for name, position in _paths(target, ()) if name == path), None)


def nearest_first(found: list[Binding], line: int) -> list[Binding]:
    """Sort bindings: those above a line come first, the last of them at the head."""
    return sorted(found, key=lambda each: (each.line < line, each.line), reverse=True)


def is_above(source: Source, found: Binding, line: int) -> bool:
    """Return whether a binding is complete above a line: a multi-line `x = (` is not, for lines inside it."""
    spans = isinstance(found.statement, ASSIGNMENTS)
    return (source.span(found.statement).end_line if spans else found.line) < line


def comes_round(source: Source, found: Binding, line: int) -> bool:
    """Return whether one loop is around a binding and a line: a binding below may have run before."""
    around = map(source.span, only(LOOPS, source.ancestors(found.statement)))
    return any(span.line <= line <= span.end_line for span in around)


def rounds(source: Source, node: ast.AST) -> Iterator[Round]:
    """Yield the loops and comprehension parts around a node, innermost first."""
    for outer in source.ancestors(node):
        for each in (outer, *getattr(outer, "generators", ())):
            if isinstance(each, Round):
                yield each


def element_names(source: Source, node: ast.AST) -> list[str]:
    """Return the variables of the comprehensions around a node, which its elements have in turn."""
    return assigned_names(*(each.target for each in only(ast.comprehension, rounds(source, node))))


def unpacked(iterated: ast.expr, position: Position) -> tuple[ast.expr, Position]:
    """Return the iterable of a loop's target: y for `b` of `for a, b in zip(x, y)`."""
    match iterated:
        case ast.Call(func=ast.Name(id="zip"), args=given) if position and position[0] < len(given):
            return unpacked(given[position[0]], position[1:])
        case ast.Call(func=ast.Name(id="enumerate"), args=[given, *_]) if position[:1] == (1,):
            return unpacked(given, position[1:])
    return iterated, position


# Functions.


def parameters(body: ast.AST, *, starred: bool = False) -> list[str]:
    """Return the names of a function's parameters, positional ones first; `starred`: that of `*args` too."""
    if not isinstance(body, FUNCTIONS):
        return []
    given = body.args
    rest = [each for each in (given.vararg, given.kwarg) if each is not None] if starred else []
    return [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs, *rest)]


def defaults(function: ast.AST | None) -> Iterator[tuple[str, ast.expr]]:
    """Yield the parameters of a function that have a default, each with that."""
    if isinstance(function, FUNCTIONS):
        given = function.args
        positional = zip(reversed([*given.posonlyargs, *given.args]), reversed(given.defaults), strict=False)
        words = zip(given.kwonlyargs, given.kw_defaults, strict=True)
        yield from ((each.arg, value) for each, value in (*positional, *words) if value is not None)


def own_name(source: Source, node: ast.AST) -> str:
    """Return the name by which the method around a node knows its object: `self`, or whatever it is called.

    Of a package's file only the function is kept; one that is indented is taken for a method.
    """
    classes = (ast.ClassDef, ast.Module) if source.indent else (ast.ClassDef,)
    methods = (each for each in source.ancestors(node) if isinstance(source.parent(each), classes))
    method = next((each for each in methods if isinstance(each, FUNCTIONS)), None)
    is_static = any(path_of(each) == "staticmethod" for each in getattr(method, "decorator_list", ()))
    return "" if method is None or is_static else next(iter(parameters(method)), "")


def operands(node: ast.AST) -> list[ast.expr]:
    """Return the operands of an operation: of a call its owner, arguments and keywords."""
    match node:
        case ast.Call(args=given, keywords=words):
            parts = [each.value if isinstance(each, ast.Starred) else each for each in given]
            return [*filter(None, [owner_of(node)]), *parts, *(word.value for word in words)]
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
        case ast.Assign(targets=given, value=value):
            return [*(each.value for each in only(ast.Attribute, given)), value]
    return []


def _indexes(index: ast.expr) -> list[ast.expr]:
    return [part for part in listed(index) if not isinstance(part, ast.Slice)]


def moves_itself(value: ast.AST, target: ast.AST) -> bool:
    """Return whether a value is `x.to(device)` for a target x, which was made before."""
    owner = owner_of(value)
    return owner is not None and is_move(called_name(value)) and same_code(owner, target)


def is_written(node: ast.AST, variable: str) -> bool:
    """Return whether code writes into what a variable or an attribute holds: `m.mul_(0.9)`, `m += g`, `m[i] = g`."""
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr=method)) if changes_itself(method):
            return any(_is_of(each, variable) for each in (owner, *node.args[:1]))
        case ast.AugAssign(target=target):
            return _is_of(target, variable)
        case ast.Assign(targets=given):
            return any(_is_of(each, variable) for each in only(ast.Subscript, given))
    return False


def is_written_in(body: Iterable[ast.stmt], variable: str) -> bool:
    return any(is_written(node, variable) for statement in body for node in ast.walk(statement))


def _is_of(node: ast.AST, variable: str) -> bool:
    """Return whether it is `m`, `m.data[0]` or `m.mul(2)` of a variable m."""
    return any(ast.unparse(each) == variable for each in chain(node))


# Names that have a value.


def is_bound(name: str, source: Source, at: ast.AST, running: Container[str], namespace: Container[str]) -> bool:
    """Return whether a name has a value where a node begins.

    `running`: the variables of the frame that runs the node's function; empty if none does.
    """
    function = _running(source, at)
    while function is not None:
        if name in parameters(function, starred=True):
            return not any(name in names_in(node) for node in nodes_of(ast.Delete, function))
        bound = [each for each in statements(function) if name in binds(each)]
        if bound and name not in shared_names(function):
            was_there = name in running and _are_above(bound, source, at) and is_on_every_way(bound, source, at)
            return _reaches(bound, source, at) or was_there
        running, at = (), function
        function = _running(source, function)
    bound = [each for each in statements(source.tree) if name in binds(each)]
    if bound and not isinstance(at, FunctionNode) and source.function(at) is None:
        reads_former = any(name in names_in(each.value) for each in only(ast.Assign, bound[:1]))
        reads_former = reads_former or isinstance(bound[0], ast.AugAssign)
        was_there = _are_above(bound, source, at) or reads_former  # `x += 1` of a cell's former value
        return _reaches(bound, source, at) or (name in namespace and was_there)
    return name in namespace or hasattr(builtins, name)


def _running(source: Source, at: ast.AST) -> FunctionNode | None:
    """Return the function whose body has a node; its defaults and decorators are of the code around it."""
    function, inner = source.function(at), list(source.ancestors(at))
    while function is not None:
        parts = function.body if isinstance(function.body, list) else [function.body]
        if any(part in inner for part in parts):
            break
        function = source.function(function)
    return function


def _reaches(bound: list[ast.stmt], source: Source, at: ast.AST) -> bool:
    """Return whether one of these statements lies on every way to a node."""
    around = list(source.ancestors(at))
    return any(_precedes(each, source, at, around) for each in bound)


def _precedes(statement: ast.stmt, source: Source, at: ast.AST, around: list[ast.AST]) -> bool:
    if statement in around:  # a loop or `with` binds its names for its own body
        inside = isinstance(statement, ast.For | ast.AsyncFor | ast.With | ast.AsyncWith)
        return inside and any(part in around for part in getattr(statement, "body", ()))
    if isinstance(statement, (*LOOPS, ast.If, ast.Try, ast.Match)):
        return False  # its body may not have run
    block = source.block(statement)
    return source.span(statement).end_line < source.span(at).line and any(part in around for part in block)


def _are_above(bound: list[ast.stmt], source: Source, at: ast.AST) -> bool:
    return all(source.span(each).end_line < source.span(at).line for each in bound)


def shared_names(*trees: ast.AST) -> set[str]:
    """Return the variables that pieces of code declare `global` or `nonlocal`."""
    kinds: list[ast.Global | ast.Nonlocal] = [*nodes_of(ast.Global, *trees), *nodes_of(ast.Nonlocal, *trees)]
    return {name for node in kinds for name in node.names}
