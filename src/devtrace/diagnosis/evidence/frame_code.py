"""What can be written at a line: which expression there names the home device, where a variable gets its value."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence import access_paths
from devtrace.diagnosis.evidence.failure_snapshot import FailureSnapshot, registered
from devtrace.diagnosis.evidence.trace_queries import SourceNode
from devtrace.source.reading import MISSING, Scope, evaluate, instance_dict, values

_BODIES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True)
class FailingFrame:
    """A frame of the error, at the line where it stands."""

    snapshot: FailureSnapshot
    number: int
    expected_device: str
    code: Code
    place: SourceNode

    @classmethod
    def of(cls, snapshot: FailureSnapshot, number: int, expected_device: str) -> FailingFrame | None:
        """In the user's own code, where something can be changed."""
        stand = cls.reading(snapshot, number, expected_device)
        return None if stand is None or snapshot.queries.package(snapshot.queries.frames[number][0]) else stand

    @classmethod
    def reading(cls, snapshot: FailureSnapshot, number: int, expected_device: str) -> FailingFrame | None:
        """In anybody's code, to say what is there."""
        if not 0 <= number < len(snapshot.frames):
            return None
        site = snapshot.queries.frames[number][0]
        place, row = snapshot.queries.source_node(site), snapshot.queries.site(site)
        return cls(snapshot, number, expected_device, Code(place.source, row), place) if place and row else None

    @property
    def op(self) -> int:
        """The op that failed in this line, or below it."""
        return self.snapshot.queries.failed

    @property
    def held(self) -> dict[str, Any]:
        return self.snapshot.variables(self.number)

    @property
    def body(self) -> ast.AST:
        """The function that the frame runs, else the whole cell or file."""
        function = self.place.source.function(self.place.node)
        return function if function is not None else self.place.source.tree

    @property
    def line(self) -> int:
        return self.place.source.span(self.place.node).line

    def scope(self) -> Scope:
        return Scope.of(self.snapshot.frames[self.number])

    # What is bound where.

    def statements(self) -> Iterator[ast.stmt]:
        """The body's own statements, not those of functions in it."""
        source = self.place.source
        function = self.body if isinstance(self.body, _BODIES) else None
        for node in ast.walk(self.body):
            if isinstance(node, ast.stmt) and node is not function and source.function(node) is function:
                yield node

    def bindings(self, variable: str) -> list[ast.stmt]:
        """The statements up to the frame's line that give a variable its value, in order."""
        span = self.place.source.span
        found = [s for s in self.statements() if variable in _bound_by(s) and span(s).line <= self.line]
        return sorted(found, key=lambda statement: span(statement).line)

    def bound(self, before: int) -> list[str]:
        """The variables that have a value above a line: parameters first."""
        code = self.snapshot.frames[self.number].f_code
        given = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
        span = self.place.source.span
        above = sorted(
            (span(s).line, name) for s in self.statements() for name in _bound_by(s) if span(s).line < before
        )
        return list(dict.fromkeys((*given, *(name for _, name in above), *code.co_freevars)))

    # Devices.

    def device(self, before: int, near: ast.AST | None = None) -> str:
        """The home device in code that computes: from a tensor at hand, from `self`, from a variable."""
        return self._first(
            lambda: self._of_tensor(before, near),
            self._of_self,
            lambda: self._of_variable(before),
            lambda: self._of_module(before),
        )

    def set_up_device(self, before: int) -> str:
        """The home device in code that sets things up: the variable that says it comes first."""
        return self._first(
            lambda: self._of_variable(before),
            lambda: self._of_module(before),
            self._of_self,
            lambda: self._of_tensor(before, None),
        )

    @staticmethod
    def _first(*ways: Callable[[], str]) -> str:
        return next((said for way in ways if (said := way())), "")

    def _of_tensor(self, before: int, near: ast.AST | None) -> str:
        held = self.held
        mentioned = {node.id for node in ast.walk(near) if isinstance(node, ast.Name)} if near is not None else set()
        fitting = [name for name in self.bound(before) if self._at_home(held.get(name))]
        fitting.sort(key=lambda name: name not in mentioned)
        return f"{fitting[0]}.device" if fitting else ""

    def _at_home(self, value: object) -> bool:
        return access_paths.is_tensor(value) and self.snapshot.device_of(value) == self.expected_device

    def _of_self(self) -> str:
        module = self.held.get("self")
        if not access_paths.is_module(module):
            return ""
        for path, tensor in registered(module):
            if "." not in path and self._at_home(tensor):
                return f"self.{path}.device"
        return "next(self.parameters()).device" if self._at_home(_first_parameter(module)) else ""

    def _of_variable(self, before: int) -> str:
        held, bound = self.held, self.bound(before)
        for name in bound:
            if self._says_home(held.get(name)):
                return name
        for name in bound:
            for attribute, value in instance_dict(held.get(name)).items():
                if self._says_home(value) and str(attribute).isidentifier():
                    return f"{name}.{attribute}"
        return ""

    def _says_home(self, value: object) -> bool:
        return says(value, self.expected_device)

    def says_home(self, node: ast.expr) -> bool:
        """Whether an expression, as far as look-ups tell, names the home device."""
        return self._says_home(evaluate(node, self.scope()))

    def told_beside(self, call: ast.AST) -> str:
        """What another call of the function is told as its device, where that is home: `device`, `self.device`."""
        for node in ast.walk(self.body):
            for word in node.keywords if isinstance(node, ast.Call) and node is not call else ():
                if word.arg == "device" and self.says_home(word.value):
                    return self.code.text(word.value)
        return ""

    def _of_module(self, before: int) -> str:
        held = self.held
        for name in self.bound(before):
            if (
                name != "self"
                and access_paths.is_module(held.get(name))
                and self._at_home(_first_parameter(held[name]))
            ):
                return f"next({name}.parameters()).device"
        return ""

    # The failing expression.

    def node_of(self, row: int) -> ast.expr | None:
        """The expression of the line that stands for a tensor: a path that leads to it, else the operand left over."""
        queries, at = self.snapshot.queries, self.place.node
        found = values(at, self.place.source, self.scope())
        rows = {id(value.node): self._row(value.value) for value in found}
        for same in (lambda one: one == row, lambda one: one is not None and queries.base(one) == queries.base(row)):
            for value in found:
                if access_paths.is_tensor(value.value) and same(rows[id(value.node)]):
                    return value.node
        if any(name.last.kind in ("parameter", "buffer") for name in self.snapshot.names(row)):
            return None
        made = queries.source_node(queries.trace.ops.number("site", op)) if (op := queries.producer(row)) >= 0 else None
        if made is not None and made.statement is self.place.statement and isinstance(made.node, ast.expr):
            return made.node
        if isinstance(at, ast.BinOp) and len(inputs := queries.inputs(self.op)) == 2 and inputs[0] != inputs[1]:
            return at.left if inputs[0] == row else at.right if inputs[1] == row else None
        left = [node for node in _operands(at) if evaluate(node, self.scope()) is MISSING and not _is_constant(node)]
        return left[0] if len(left) == 1 else None

    def loads(self, path: ast.AST) -> list[ast.AST]:
        """Where the function reads the same path, from the frame's statement on."""
        span, said = self.place.source.span, ast.dump(path)
        first = span(self.place.statement).line
        return [node for node in ast.walk(self.body) if ast.dump(node) == said and span(node).line >= first]

    def _row(self, value: object) -> int | None:
        return self.snapshot.row(value) if access_paths.is_tensor(value) else None

    def home_beside(self, node: ast.AST) -> str:
        """`deep.device`: the device of another tensor in the frame's line, else in its scope."""
        taken = {id(inner) for inner in ast.walk(node)}
        for value in values(self.place.node, self.place.source, self.scope()):
            if id(value.node) not in taken and self._at_home(value.value) and _is_pure(value.node):
                return f"{value.text}.device"
        return self.device(self.line, self.place.statement)


def says(value: object, expected_device: str) -> bool:
    """Whether a value names the home device."""
    said = access_paths.place_of(value)
    return said == expected_device or (said == "cuda" and expected_device == "cuda:0")


def _is_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or (isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant))


def _is_pure(node: ast.AST) -> bool:
    return not any(isinstance(inner, ast.NamedExpr | ast.Call) for inner in ast.walk(node))


def _operands(node: ast.AST) -> list[ast.expr]:
    """What an expression works on."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.AugAssign):
        return [node.value]
    if isinstance(node, ast.Call):
        owner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        first = node.args[0] if node.args else None
        listed = list(first.elts) if isinstance(first, ast.List | ast.Tuple) else []
        arguments = [*node.args, *(word.value for word in node.keywords)]
        return [*owner, *(listed or arguments)]
    return []


def _first_parameter(module: Any) -> Any:
    return next((tensor for _, tensor in registered(module) if access_paths.is_parameter(tensor)), None)


def _bound_by(statement: ast.stmt) -> list[str]:
    """The variables that a statement itself binds."""
    if isinstance(statement, ast.Assign):
        targets: list[ast.expr] = list(statement.targets)
    elif isinstance(statement, ast.For | ast.AsyncFor | ast.AnnAssign):
        targets = [statement.target]
    elif isinstance(statement, ast.With | ast.AsyncWith):
        targets = [item.optional_vars for item in statement.items if item.optional_vars is not None]
    else:
        return []
    return [
        node.id
        for target in targets
        for node in ast.walk(target)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
