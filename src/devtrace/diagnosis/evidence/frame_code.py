"""Code that can be written at a line: the expected device as an expression, the statement that binds a variable."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Any

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.failing_moment import FailingMoment
from devtrace.diagnosis.evidence.source_text import stays_there
from devtrace.diagnosis.evidence.trace_queries import NOWHERE, SourceNode
from devtrace.diagnosis.evidence.trait import Trait
from devtrace.source import defuse, kinds
from devtrace.source.defuse import moves_itself, was_passed_by
from devtrace.source.kinds import names_trait
from devtrace.source.matching import (
    called_name,
    calls_in,
    given_trait,
    is_literal,
    is_read,
    listed,
    match_code,
    names_in,
    nodes_of,
    only,
    operands,
)
from devtrace.source.multi_value_expr import means_several
from devtrace.source.object_walk import is_tensor, registered
from devtrace.source.parsing import Source, own_name
from devtrace.source.safe_values import MISSING, Scope, evaluate, is_around, returned_by_call, values, worth
from devtrace.trace.ids import CallId, TensorId


@dataclass(frozen=True)
class FailingFrame:
    """A frame of the error, at the line that it runs."""

    moment: FailingMoment
    number: int
    expected_trait: str
    source_node: SourceNode

    @classmethod
    def of(cls, moment: FailingMoment, number: int, expected_trait: str) -> FailingFrame:
        """Return a frame of the user's own code, which a fix may change; one of no code for any other."""
        frame = cls.reading(moment, number, expected_trait)
        is_the_users = frame.is_there and not moment.queries.package(moment.queries.frame_sites[number])
        return frame if is_the_users else cls(moment, -1, expected_trait, NOWHERE)

    @classmethod
    def reading(cls, moment: FailingMoment, number: int, expected_trait: str) -> FailingFrame:
        """Return a frame of anybody's code, to be read but not changed; one of no code without a source."""
        has_frame = 0 <= number < len(moment.frames)
        node = moment.queries.source_node(moment.queries.frame_sites[number]) if has_frame else NOWHERE
        return cls(moment, number if node is not NOWHERE else -1, expected_trait, node)

    @classmethod
    def all_of(cls, moment: FailingMoment, expected_trait: str, *, to_read: bool = False) -> list[FailingFrame]:
        """Return the frames of the user's own code, innermost first; `to_read`: of packages, too."""
        make = cls.reading if to_read else cls.of
        frames = (make(moment, number, expected_trait) for number in range(len(moment.frames)))
        return [frame for frame in frames if frame.is_there]

    @property
    def is_there(self) -> bool:
        """False for a frame of no code, which has no statements and no variables."""
        return self.source_node is not NOWHERE

    @property
    def variables(self) -> dict[str, Any]:
        return self.moment.variables(self.number)

    @property
    def code(self) -> Code:
        return self.source_node.code

    @property
    def source(self) -> Source:
        return self.code.source

    @property
    def function(self) -> ast.AST | None:
        """Return the function that the frame runs; None for a cell or a file."""
        return self.source_node.function

    @property
    def body(self) -> ast.AST:
        """Return the function that the frame runs, else the whole cell or file."""
        return self.function or self.source.tree

    @property
    def expression(self) -> ast.AST:
        """Return the outermost expression around what the frame runs."""
        return [self.source_node.node, *only(ast.expr, self.source.ancestors(self.source_node.node))][-1]

    @property
    def computed(self) -> ast.AST:
        """Return what the frame runs; of `out[i] = f(x)` the value `f(x)`, also if the assignment itself failed."""
        node, statement = self.source_node.node, self.source_node.statement
        return statement.value if isinstance(statement, ast.Assign) and node in statement.targets else node

    @property
    def line(self) -> int:
        return self.source.span(self.source_node.node).line

    def scope(self) -> Scope:
        return self.moment.scope(self.number)

    # Bindings.

    def statements(self) -> Iterator[ast.stmt]:
        """Yield the body's own statements, not those of functions in it."""
        return defuse.statements(self.body)

    def bindings(self, variable: str, unmoved: bool = False) -> list[ast.stmt]:
        """Return the statements up to the frame's line that give a variable a value; `unmoved`: no `x = x.to(d)`."""
        if any(defuse.gone_through(self.source, self.source_node.node, variable, ast.comprehension)):
            return []  # a comprehension's own variable
        assigned = defuse.bindings(self.source, self.body, variable)
        if unmoved:
            assigned = [each for each in assigned if each.own is None or not moves_itself(each.own, ast.Name(variable))]
        above = [each.statement for each in assigned if not each.is_inner and each.line <= self.line]
        queries, node, scope = self.moment.queries, self.source_node.node, self.scope()
        lines_that_ran = set(queries.trace.sites.ints("line")[queries.sites_beside(self.code.site)].tolist())
        return [stmt for stmt in above if not was_passed_by(stmt, self.source, node, lines_that_ran, scope)]

    def bound(self, before: int) -> list[str]:
        """Return the variables that have a value above a line: parameters first."""
        code = self.moment.frames[self.number].f_code
        parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        assigned = [pair for each in defuse.statements(self.body) for pair in defuse.given_by(self.source, each)]
        above = [path for path, binding in assigned if binding.line < before and path.isidentifier()]
        return list(dict.fromkeys((*parameters, *above, *code.co_freevars)))

    @property
    def own(self) -> str:
        """Return the name by which the frame's method knows its object: `self`; empty for no method."""
        return own_name(self.source, self.source_node.node)

    # Devices.

    def device_code(self, before: int, near: ast.AST | None = None) -> str:
        """Return the expected device as code for a place above a line: `device`, `self.device`, `x.device`, `"cuda:0"`.

        Code that computes with something `near` asks a tensor before it writes a literal: `x.device`, not `"cuda:0"`.
        """
        if not self.is_there:
            return ""
        if near is not None and not self._by.goes_through_modules(self.expected_trait):  # an op demands it: an index
            return self._literal
        unchanged, arguments = self._unchanged(before), list(self._given_to_calls(before, near))
        names_near = names_in(near) if near is not None else set[str]()
        named = (
            self._device_of_any((name for name in unchanged if name in names_near), is_tensor)
            or self._device_attribute(self.own)
            or next((self.code.text(argument) for argument in arguments if not is_literal(argument)), "")
            or next((name for name in unchanged if names_trait(self.variables.get(name), self.expected_trait)), "")
            or next(filter(None, map(self._device_attribute, unchanged)), "")
            or self._device_global()
        )
        others = (name for name in unchanged if name != self.own)
        asked = named or self._device_of_any(unchanged, is_tensor)  # code that asks an object
        asked = asked or self.device_of(self.own, self.variables.get(self.own))
        asked = asked or self._device_of_any(others, kinds.is_module)
        default = self._literal if self._by.is_plain(self.expected_trait) else ""
        literal = next(map(self.code.text, arguments), default)  # as another call has it
        if near is None:
            return named or literal or asked or self._literal
        return asked or self._device_of_called(near, before) or literal

    @property
    def _by(self) -> Trait:
        return self.moment.queries.by

    @property
    def _literal(self) -> str:
        return self._by.literal(self.source, self.expected_trait)

    def _device_of_any(self, names: Iterable[str], is_wanted: Callable[[object], bool]) -> str:
        """Return `x.device` of the first variable that is a tensor, or a module, on the expected device."""
        variables = ((name, self.variables.get(name)) for name in names)
        return next(filter(None, (self.device_of(name, value) for name, value in variables if is_wanted(value))), "")

    def _has_expected_trait(self, value: object) -> bool:
        return is_tensor(value) and self.moment.trait_of(value) == self.expected_trait

    def device_of(self, code: str, value: object) -> str:
        """Return `x.device` for a live tensor or module on the expected device; empty for any other."""
        if self._has_expected_trait(value):
            return f"{code}.{self._by.name}"
        hook = self.moment.hooks.get(id(value)) if code != self.own else None
        if hook is not None and not hook.stay:  # its parameters say where they wait
            return f"{code}{hook.code}" if hook.code and hook.device == self.expected_trait else ""
        fits = kinds.is_module(value) and self.moment.trait_of(value) == self.expected_trait
        return f"next({code}.parameters()).{self._by.name}" if fits and not self._may_lack_parameters(code) else ""

    def _may_lack_parameters(self, variable: str) -> bool:
        """Return whether another module of a loop has no parameters: an activation in `for layer in net`."""
        loops = defuse.gone_through(self.source, self.source_node.node, variable)
        iterated_value = next((evaluate(iterated, self.scope()) for iterated, _ in loops), None)
        return any(not any(registered(module)) for module in kinds.modules_in(iterated_value))

    def _device_of_called(self, near: ast.AST, before: int) -> str:
        """Return `next(self.net.parameters()).device` for an argument of `self.net(zeros(2))`."""
        later = self._not_yet_bound(before)
        calls = (match_code("$module(...)", outer) for outer in self.source.ancestors(near))
        modules = (call["module"] for call in calls if call and later.isdisjoint(names_in(call["module"])))
        values = ((self.code.text(module), evaluate(module, self.scope())) for module in modules)
        return next(filter(None, (self.device_of(code, value) for code, value in values)), "")

    def _not_yet_bound(self, before: int) -> set[str]:
        """Return the names that get their first value at a line or below."""
        return {name for each in self.statements() for name in defuse.binds(each)}.difference(self.bound(before))

    def _unchanged(self, before: int) -> list[str]:
        """Return the variables that have the same value above a line as now, or one on the same device."""
        runs_again = any(self.source.span(loop).line >= before for loop in self.source_node.loops)
        failed = None if runs_again else self.source_node.statement  # it raised before it gave a variable a value
        setters = {name: [stmt for stmt in self.bindings(name) if stmt is not failed] for name in self.bound(before)}
        later = {name: [stmt for stmt in setters[name] if self.source.span(stmt).line >= before] for name in setters}
        return [name for name in later if all(stays_there(name, stmt, self._by) for stmt in later[name])]

    def _device_global(self) -> str:
        """Return a global that names the expected device: one that the function reads, or a cell's `device`."""
        local = {name for each in defuse.statements(self.body) for name in defuse.binds(each)} | set(self.bound(0))
        read = (name.id for name in nodes_of(ast.Name, self.body) if is_read(name))
        namespace = self.moment.frames[self.number].f_globals
        of_notebook = (self._by.name, self._by.name.upper()) if self.code.site.cell is not None else ()
        global_names = (name for name in (*read, *of_notebook) if name not in local)
        return next((name for name in global_names if names_trait(namespace.get(name), self.expected_trait)), "")

    def _device_attribute(self, variable: str) -> str:
        """Return `self.device`, if the attribute of a variable's object names the expected device."""
        attributes = kinds.attributes_that_name(self.expected_trait, self.variables.get(variable))
        paths = ((f"{variable}.{key}", is_private) for key, is_private in attributes)
        used = defuse.paths_in(self.source.tree)
        return next((path for path, is_private in paths if not is_private or path in used), "")

    def names_expected_trait(self, node: ast.expr) -> bool:
        """Return whether an expression, as far as look-ups and literals tell, names the expected device."""
        name = (match_code("torch.device($name)", node) or {"name": node})["name"]
        return names_trait(worth(name, self.scope()), self.expected_trait)

    def _given_to_calls(self, before: int, near: ast.AST | None) -> Iterator[ast.expr]:
        """Yield `d` of the function's calls `f(x, device=d)`, if it is the expected device and known above a line."""
        later = self._not_yet_bound(before)
        devices = (given_trait(call, self._by.name) for call in calls_in(self.body) if call is not near)
        known = (device for device in devices if device is not None and later.isdisjoint(names_in(device)))
        return filter(self.names_expected_trait, known)

    def device_of_other_operand(self, node: ast.AST) -> str:
        """Return `deep.device` for `stem` of `deep + stem`, else the expected device as the function can write it."""
        own_nodes = {id(inner) for inner in ast.walk(node)}
        if not self._by.goes_through_modules(self.expected_trait):
            return self._literal
        for value in values(self.source_node.node, self.source, self.scope()):
            calls = [*calls_in(value.node), *nodes_of(ast.NamedExpr, value.node)]  # the edit would run these twice
            if id(value.node) not in own_nodes and self._has_expected_trait(value.value) and not calls:
                return f"{value.text}.{self._by.name}"
        return self.device_code(self.line, self.source_node.statement) or self._device_of_called(node, self.line)

    # The failing expression.

    def node_of(self, row: TensorId) -> ast.expr | None:
        """Return the line's expression for a tensor: a path to it, else the only operand that may be it."""
        path = self._path_to(row)
        has_none = self.moment.is_registered(row) or self.moment.is_of_backward or self._made_within(row)
        if path is not None or has_none or self.moment.queries.is_undated(row):  # made between operand and op
            return path
        node = self._made_here(row) or self._called_here(row) or self._operand(row)
        is_one_tensor = node is not None and not means_several(node, self.source, self.scope())
        return node.elt if isinstance(node, ast.ListComp | ast.GeneratorExp) else node if is_one_tensor else None

    def _path_to(self, row: TensorId) -> ast.expr | None:
        """Return the path whose value is the tensor, else one whose value shares its storage."""
        base_of = self.moment.queries.base
        scope = self.scope()
        nodes = self.source_node.node, self.expression, self.computed
        read = [value for node in nodes for value in values(node, self.source, scope)]
        tensors = [(value.node, self.moment.row(value.value)) for value in read if is_tensor(value.value)]
        exact = next((node for node, other in tensors if other == row), None)
        sharing = (node for node, other in tensors if other is not None and base_of(other) == base_of(row))
        return exact or next(sharing, None)

    def _made_here(self, row: TensorId) -> ast.expr | None:
        """Return the expression of the failing statement that made the tensor."""
        queries = self.moment.queries
        maker = queries.op_node(queries.producer(row))
        if maker.statement is not self.source_node.statement or maker.node is self.source_node.node:
            return None  # a call within which the op failed, too
        return next(only(ast.expr, [maker.node]), None)

    def _made_within(self, row: TensorId) -> bool:
        """Return whether a module within the failing call made it, or a hook: the line does not pass it."""
        queries = self.moment.queries
        op = queries.producer(queries.base(row))
        return op >= 0 and not self._unfinished_calls.isdisjoint(queries.calls_around(op))

    @cached_property
    def _unfinished_calls(self) -> set[CallId]:
        """Return the unfinished calls that the line began: those inside the call of the module that runs the line."""
        calls = self.moment.queries.trace.calls
        outer = (frame for frame in FailingFrame.all_of(self.moment, "", to_read=True) if frame.number >= self.number)
        owners = (frame.variables.get(frame.own) for frame in outer)
        running_type = next((type(owner).__name__ for owner in owners if kinds.is_module(owner)), "")
        innermost_first = self.moment.queries.calls_around(self.moment.queries.failed)
        return set(takewhile(lambda call: calls[call].module.type != running_type, innermost_first))

    def _called_here(self, row: TensorId) -> ast.expr | None:
        """Return the line's only call of the function that made the tensor, or returns it."""
        queries = self.moment.queries
        site = queries.site(queries.op_site(queries.producer(row)))
        if site is None or not site.function:
            return None
        maker, calls, scope = site.function.rpartition(".")[2], list(calls_in(self.computed)), self.scope()
        makers = [call for call in calls if called_name(call) == maker] or [
            call for call in calls if is_around(evaluate(call.func, scope), maker, site.file, site.line)
        ]
        makers = makers or [call for call in calls if self.moment.row(returned_by_call(call, scope)) == row]
        return makers[0] if len(makers) == 1 else None

    def _operand(self, row: TensorId) -> ast.expr | None:
        """Return `a` or `b` of `a + b` by the op's inputs, else the only operand whose value look-ups do not tell."""
        queries = self.moment.queries
        match self.source_node.node, queries.inputs(queries.failed):
            case ast.BinOp(left=left, right=right), [one, other] if one != other:
                return {one: left, other: right}.get(row)
        looked_up = [(node, self._value_of_operand(node)) for node in self._operands()]
        is_part = any(self.moment.is_in(value, row) for _, value in looked_up)
        unknown = [x for x, value in looked_up if value is MISSING and not is_literal(getattr(x, "operand", x))]  # `-1`
        is_other = is_part or len(unknown) != 1 or self._by.excludes(unknown[0], self.scope(), queries.trait(row))
        return None if is_other else unknown[0]

    def _value_of_operand(self, node: ast.expr) -> Any:
        """Look up an operand; for a slice of a list or tuple, which is no tensor, the whole list."""
        is_slice = type(getattr(node, "slice", None)) is ast.Slice
        whole = evaluate(getattr(node, "value", node), self.scope()) if is_slice else MISSING
        return whole if issubclass(type(whole), list | tuple) else evaluate(node, self.scope())

    def _operands(self) -> list[ast.expr]:
        """Return the operands of the line's operation; for a tuple or list its items, as it has no `.to()`."""
        node = self.source_node.node
        whole = [node.value] if isinstance(node, ast.AugAssign) else operands(node)
        return [item for operand in whole for item in listed(operand) or [operand]]

    def loads(self, path: ast.AST) -> list[ast.expr]:
        """Return the expressions of the function that read the same path, from the frame's statement on."""
        span, code, first = self.source.span, ast.dump(path), self.source.span(self.source_node.statement).line
        return [node for node in nodes_of(ast.expr, self.body) if ast.dump(node) == code and span(node).line >= first]
