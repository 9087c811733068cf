"""Definitions and uses in a function, or in the cells of a notebook: read in the order of the source, never run.

    x, self.w = f(), 3          # bindings(source, body, "self.w"): the value `f(), 3`, of which it is position (1,)

It tells what gave a name its value, what a loop gives its variable, and which branch was passed by. It tells whether a
name has a value here, and what code reads first or writes into. A target inside a tuple has a position: `b` of
`a, (b, c) = f()` is (1, 0), `z` of `x, *y, z = f()` is (-1,).
"""

import ast
import builtins
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any, Final, NamedTuple

from devtrace.source.matching import (
    assigned_names,
    blocks_of,
    called_name,
    chain,
    is_given,
    names_in,
    nodes_of,
    only,
    owner_of,
    same_code,
    star_at,
    variable,
)
from devtrace.source.parsing import FunctionNode, Source, kept_with_source, parameters
from devtrace.source.safe_values import Scope, truth
from devtrace.source.vocabulary import changes_itself, is_move

DEFINED: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
ASSIGNMENTS: Final = (ast.Assign, ast.AnnAssign)
LOOPS: Final = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
Position = tuple[int, ...]
Loop = ast.For | ast.AsyncFor | ast.While
Round = ast.For | ast.AsyncFor | ast.comprehension
Block = ast.For | ast.AsyncFor | ast.With | ast.AsyncWith


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
        case ast.Assign(targets=nodes, value=value):
            yield from (Target(node, value) for node in nodes)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield Target(target, value)
        case ast.With(items=items) | ast.AsyncWith(items=items):
            yield from (Target(item.optional_vars, item.context_expr) for item in items if item.optional_vars)
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
    variables = {handler.name for handler in getattr(statement, "handlers", ())}
    parts = [case.pattern for case in getattr(statement, "cases", ())]
    parts += [part for part in ast.iter_child_nodes(statement) if not isinstance(part, ast.stmt | ast.match_case)]
    for node in (node for part in parts if not isinstance(part, ast.ExceptHandler) for node in ast.walk(part)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.MatchAs(name=name) | ast.MatchStar(name=name):
                variables.add(name)
            case ast.MatchMapping(rest=name):
                variables.add(name)
    return variables - {None}


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
            has_part = -len(parts) <= index < len(parts) == star_at(parts)  # none is starred
            value = parts[index] if has_part else None
        return value


def bindings(source: Source, body: ast.AST, path: str) -> list[Binding]:
    """Return the bindings of a variable or attribute (`self.w`) in a body, in source order."""
    return _bindings_by_path(source, body).get(path, [])


@kept_with_source
def _bindings_by_path(source: Source, body: ast.AST) -> dict[str, list[Binding]]:
    by_path: dict[str, list[Binding]] = {}
    for statement in statements(body):
        for path, binding in given_by(source, statement):
            by_path.setdefault(path, []).append(binding)
    return by_path


def given_by(source: Source, statement: ast.stmt) -> Iterator[tuple[str, Binding]]:
    """Yield `("self.w", <Binding of f()>)` for `self.w = f()`: each path that a statement assigns, with its binding."""
    line = source.span(statement).line
    for node, value, loops, is_inner in targets(statement):
        for path, position in _target_paths(node, ()):
            yield path, Binding(value, position, line, statement, loops, is_inner)


def values_given(source: Source, statement: ast.stmt) -> dict[str, ast.expr]:
    """Return the variables of an assignment, each with its code: `{"a": <1>, "b": <f()>}` for `a, b = 1, f()`."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) > 1:
        return {}
    assigned = [(path, binding.own) for path, binding in given_by(source, statement) if not binding.is_inner]
    return {path: value for path, value in assigned if value is not None and path.isidentifier()}


def _target_paths(target: ast.expr, position: Position) -> Iterator[tuple[str, Position]]:
    if isinstance(target, ast.Tuple | ast.List):
        star = star_at(target.elts)
        for index, part in enumerate(target.elts):
            yield from _target_paths(part, (*position, index if index <= star else index - len(target.elts)))
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
    return next((position for name, position in _target_paths(target, ()) if name == path), None)


def nearest_first(unsorted: list[Binding], line: int) -> list[Binding]:
    """Sort bindings: those above a line come first, the nearest at the head; then the others, the lowest first."""
    return sorted(unsorted, key=lambda binding: (binding.line < line, binding.line), reverse=True)


def is_above(source: Source, binding: Binding, line: int) -> bool:
    """Return whether a binding is complete above a line: a multi-line `x = (` is not, for lines inside it."""
    is_assignment = isinstance(binding.statement, ASSIGNMENTS)
    return (source.span(binding.statement).end_line if is_assignment else binding.line) < line


def loops_around(source: Source, node: ast.AST) -> list[Loop]:
    """Return the loops around a node in its function, innermost first."""
    around = source.up_to(node, source.function(node) or source.tree)
    return [outer for outer in around if isinstance(outer, Loop)]


def loops_round(source: Source, node: ast.AST, line: int) -> list[Loop]:
    """Return the loops around both a node and a line: in them, code below the line may have run before it."""
    spans = ((loop, source.span(loop)) for loop in loops_around(source, node))
    return [loop for loop, span in spans if span.line <= line <= span.end_line]


def rounds(source: Source, node: ast.AST) -> Iterator[Round]:
    """Yield the loops and comprehension parts around a node, innermost first."""
    for outer in source.ancestors(node):
        for part in (outer, *getattr(outer, "generators", ())):
            if isinstance(part, Round):
                yield part


def gone_through(source: Source, node: ast.AST, name: str, kind: Any = Round) -> Iterator[tuple[ast.expr, Position]]:
    """Yield `pairs` and (0,) for `a` of `for a, b in pairs`, for each loop around a node, innermost first."""
    ancestors = [*source.ancestors(node)]
    for loop in rounds(source, node):
        position = position_in(loop.target, name) if isinstance(loop, kind) and loop.iter not in ancestors else None
        if position is not None:
            yield unpacked(loop.iter, position)


def unpacked(iterated: ast.expr, position: Position) -> tuple[ast.expr, Position]:
    """Return what a part of a loop's target goes through: `y` for `b`, at (1,), of `for a, b in zip(x, y)`."""
    match iterated:
        case ast.Call(func=ast.Name(id="zip"), args=iterables) if position and position[0] < len(iterables):
            return unpacked(iterables[position[0]], position[1:])
        case ast.Call(func=ast.Name(id="enumerate"), args=[inner, *_]) if position[:1] == (1,):
            return unpacked(inner, position[1:])
    return iterated, position


def moves_itself(value: ast.AST, target: ast.AST) -> bool:
    """Return whether a value moves its own target: `x.to(device)` of `x = x.to(device)`."""
    owner = owner_of(value)
    return owner is not None and is_move(called_name(value)) and same_code(owner, target)


def is_written(node: ast.AST, variable: str) -> bool:
    """Return whether code writes into what a variable or an attribute holds: `m.mul_(0.9)`, `m += g`, `m[i] = g`."""
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr=method)) if changes_itself(method):
            return any(_begins_with(part, variable) for part in (owner, *node.args[:1]))
        case ast.AugAssign(target=target):
            return _begins_with(target, variable)
        case ast.Assign(targets=nodes):
            return any(_begins_with(item, variable) for item in only(ast.Subscript, nodes))
    return False


def _begins_with(node: ast.AST, variable: str) -> bool:
    """Return whether code is a variable `m`, or begins with it: `m.data[0]`, `m.mul(2)`."""
    return any(ast.unparse(link) == variable for link in chain(node))


# Branches.


def was_passed_by(statement: ast.stmt, source: Source, at: ast.AST, ran: Container[int], scope: Scope) -> bool:
    """Return whether a statement is in a branch that did not run on the way to the node `at`. `ran`: lines that ran."""
    around: set[ast.AST] = set(source.ancestors(at))
    inner: ast.AST = source.tree
    for outer in source.ancestors(statement):
        if outer in around and outer is not at:
            return False  # from here outwards both are in the same branches
        if not _ran([statement], source, ran) and any(_did_return(earlier, scope) for earlier in _above(inner, source)):
            return True
        if outer is at:
            return False
        match outer:
            case ast.If(body=body, orelse=orelse) if inner in body or inner in orelse:
                block, other = (body, orelse) if inner in body else (orelse, body)
                is_against = truth(outer.test, scope) is (block is orelse)  # the test chose the other branch
                if not _ran(block, source, ran) and (is_against or _ran(other, source, ran)):
                    return True
            case ast.ExceptHandler(body=body) if not _ran(body, source, ran):
                return True
        inner = outer
    return False


def _above(statement: ast.AST, source: Source) -> Iterator[ast.stmt]:
    """Yield the statements above one in its block."""
    return takewhile(lambda earlier: earlier is not statement, source.block(statement))


def _did_return(statement: ast.stmt, scope: Scope) -> bool:
    """Return whether a statement is an `if` whose branch, as far as look-ups tell, ended the function."""
    match statement:
        case ast.If(test=test, body=body, orelse=orelse):
            is_true = truth(test, scope)
            match (body if is_true else orelse)[-1:]:
                case [ast.Return() | ast.Raise()]:
                    return is_true is not None
    return False


def _ran(block: Sequence[ast.stmt], source: Source, ran: Container[int]) -> bool:
    spans = map(source.span, block)
    return any(line in ran for span in spans for line in range(span.line, span.end_line + 1))


_MAY_NOT_RUN: Final = (*LOOPS, ast.If, ast.Try, ast.Match)


def is_on_every_way(binders: Sequence[ast.stmt], source: Source, at: ast.AST, *, ran: bool = False) -> bool:
    """Return whether one of `binders` binds a name on every way to a node; `ran`: the loops above it did run."""
    enclosing, line = [*only(ast.stmt, source.ancestors(at))], source.span(at).line
    heads = (outer for outer in enclosing if outer in binders and isinstance(outer, Block))
    if any(not set(head.body).isdisjoint(enclosing) for head in heads):
        return True  # a loop or `with` binds its names for its own body
    blocks = ([part for part in source.block(outer) if source.span(part).end_line < line] for outer in enclosing)
    return any(_block_surely_binds(block, binders, ran=ran) for block in blocks)


def _block_surely_binds(block: Sequence[ast.stmt], binders: Sequence[ast.stmt], *, ran: bool) -> bool:
    return any(_surely_binds(statement, binders, ran=ran) for statement in block)


def _surely_binds(statement: ast.stmt, binders: Sequence[ast.stmt], *, ran: bool) -> bool:
    if statement in binders and (ran or not isinstance(statement, _MAY_NOT_RUN)):
        return True
    match statement:
        case ast.If(body=body, orelse=orelse):
            return _block_surely_binds(body, binders, ran=ran) and _block_surely_binds(orelse, binders, ran=ran)
        case ast.For(body=body) | ast.While(body=body):
            return ran and _block_surely_binds(body, binders, ran=ran)
        case ast.With(body=body) | ast.AsyncWith(body=body):
            return _block_surely_binds(body, binders, ran=ran)
        case ast.Try(body=body, finalbody=final):  # a handler may not run
            return _block_surely_binds([*body, *final], binders, ran=ran)
    return False


# Names that have a value.


def is_bound(name: str, source: Source, at: ast.AST, running: Container[str], namespace: Container[str]) -> bool:
    """Return whether a name has a value where a node begins.

    `running`: the variables of the frame that runs the node's function; empty if none does.
    """
    function = source.function(at)
    while function is not None:
        if name in parameters(function, starred=True):
            return not any(name in names_in(node) for node in nodes_of(ast.Delete, function))
        binders = [statement for statement in statements(function) if name in binds(statement)]
        if binders and name not in shared_names(function):
            return is_on_every_way(binders, source, at, ran=name in running)
        running, at = (), function  # no frame of an outer function is known
        function = source.function(function)
    binders = [statement for statement in statements(source.tree) if name in binds(statement)]
    if binders and not isinstance(at, FunctionNode) and source.function(at) is None:
        above = all(source.span(statement).end_line < source.span(at).line for statement in binders)
        was_there = above or name in read_in(binders[0])  # `x += 1` of a cell's former value
        return is_on_every_way(binders, source, at) or (name in namespace and was_there)
    return name in namespace or hasattr(builtins, name)


def shared_names(*trees: ast.AST) -> set[str]:
    """Return the variables that pieces of code declare `global` or `nonlocal`."""
    kinds: list[ast.Global | ast.Nonlocal] = [*nodes_of(ast.Global, *trees), *nodes_of(ast.Nonlocal, *trees)]
    return {name for node in kinds for name in node.names}


# Names that code reads.


def read_in(*trees: ast.AST) -> set[str]:
    """Return the variables that code takes from outside, now or when its functions are called."""
    names = {name.id for name in nodes_of(ast.Name, *trees) if not is_given(name)}
    names |= {variable([*chain(change.target)][-1]) for change in nodes_of(ast.AugAssign, *trees)}
    definitions = [node for kind in DEFINED for node in nodes_of(kind, *trees)]
    loop_targets = [loop.target for loop in nodes_of(ast.For, *trees)]  # a loop gives them values first
    loop_targets += [part.target for part in nodes_of(ast.comprehension, *trees)]
    return names - {*assigned_names(*definitions, *loop_targets)} - {arg.arg for arg in nodes_of(ast.arg, *trees)}


def read_first(body: Sequence[ast.stmt], later: Iterable[str] = ()) -> set[str]:
    """Return the variables that statements, or what comes `later`, read before they give them another value."""
    names = set(later)
    for statement in reversed(body):
        names = names - binds(statement) | read_in(statement)
    return names
