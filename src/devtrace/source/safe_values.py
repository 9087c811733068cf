"""Values of names in source code, looked up without running any of it.

No property, `__getattr__`, `__getitem__`, `__class__` or `__repr__` of the user's runs here. Values come from
dictionaries and C descriptors alone. (Hence `issubclass(type(x), T)` throughout: `isinstance` would ask the object.)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import (
    CodeType,
    FrameType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
)
from typing import Any, Final, NamedTuple

from devtrace.source.matching import is_step, variable
from devtrace.source.parsing import Source, Span, read
from devtrace.source.stand_ins import Frame


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING: Final = _Missing()
FIELD: Final = type(Span.__dict__["line"])  # how a named tuple keeps its fields
class_dict: Final = type.__dict__["__dict__"].__get__
"""Reads a class's own attributes without asking its metaclass."""
classes_of: Final = type.__dict__["__mro__"].__get__
"""Reads a class's `__mro__` without asking its metaclass."""
bases_of: Final = type.__dict__["__bases__"].__get__
_module_of: Final = type.__dict__["__module__"].__get__
_qualified_name: Final = type.__dict__["__qualname__"].__get__


def full_name_of(kind: type) -> tuple[str, str]:
    """Return the module and the name of a class, without asking its metaclass."""
    module = _module_of(kind)
    return module if type(module) is str else "", _qualified_name(kind)


@dataclass(frozen=True, slots=True)
class Scope:
    """Names and their values: locals (closure variables among them) before globals."""

    locals: Mapping[str, Any]
    globals: Mapping[str, Any]

    @classmethod
    def of(cls, frame: FrameType | Frame) -> Scope:
        return cls(frame.f_locals, frame.f_globals)

    def having(self, variables: Mapping[str, Any]) -> Scope:
        """Return the scope with other values for some names, as in a comprehension's iteration."""
        return Scope({**self.locals, **variables}, self.globals)

    def lookup(self, name: str) -> Any:
        return self.locals.get(name, self.globals.get(name, MISSING))


def code_in(kind: type) -> CodeType | None:
    """Return the code of a class's first own method, which tells the class's file; None without one."""
    return next((member.__code__ for member in class_dict(kind).values() if type(member) is FunctionType), None)


def is_around(function: object, name: str, file: str, line: int) -> bool:
    """Return whether a line may be in a function that `file` defines as `name`; a variable may call it otherwise."""
    code = function.__code__ if type(function) is FunctionType else None
    return code is not None and (code.co_name, code.co_filename) == (name, file) and code.co_firstlineno <= line


def evaluate(node: ast.AST, scope: Scope) -> Any:
    """Look up a name, an attribute path or a constant subscript; MISSING when that takes more than look-ups."""
    match node:
        case ast.Name(id=name):
            return scope.lookup(name)
        case ast.Attribute(value=owner, attr=name):
            return attribute(evaluate(owner, scope), name)
        case ast.Subscript(value=owner, slice=index):
            return item(evaluate(owner, scope), index_of(index, scope))
        case ast.NamedExpr(target=target):
            return evaluate(target, scope)
    return MISSING


def index_of(node: ast.AST, scope: Scope) -> Any:
    """Evaluate a subscript's index: a literal, or a name that holds a plain int or str."""
    try:
        value = ast.literal_eval(node)
    except (TypeError, ValueError):
        value = evaluate(node, scope)
    return value if type(value) in (int, str) else MISSING


def attribute(owner: Any, name: str) -> Any:
    """Look up `owner.name` where that is a stored value.

    It may be in the instance, a module's tables, a slot, the class, or behind a property that only returns such a
    value. The property's source is read; the property does not run.
    """
    if owner is MISSING:
        return MISSING
    stored = instance_dict(owner)
    member = _class_attribute(owner, name)
    if issubclass(type(member), property):
        returned = _sole_return(owner, member.fget)
        return evaluate(*returned) if returned is not None and isinstance(returned[0], ast.Attribute) else MISSING
    if name in stored:
        return stored[name]
    for table in ("_parameters", "_buffers", "_modules"):
        entries = stored.get(table)
        if isinstance(entries, dict) and name in entries:
            return dict.get(entries, name)
    if type(member) in (MemberDescriptorType, FIELD):
        try:
            return member.__get__(owner, type(owner))
        except AttributeError:
            return MISSING
    getter = _class_attribute(member, "__get__") if member is not MISSING else None
    return member if getter is MISSING else MISSING  # a descriptor's `__get__` would run code


def instance_dict(owner: Any) -> Mapping[str, Any]:
    """Return the attributes that an object itself stores, without asking it: its nearest class reads them."""
    readers = (class_dict(klass).get("__dict__") for klass in classes_of(type(owner)))
    reader: Any = next((reader for reader in readers if reader is not None), None)
    if type(reader) not in (GetSetDescriptorType, MemberDescriptorType):
        return {}  # it has slots only, or a `__dict__` of the user's own
    stored = reader.__get__(owner, type(owner))
    if type(stored) is dict or type(stored) is MappingProxyType:
        return stored
    return dict(dict.items(stored)) if issubclass(type(stored), dict) else {}


def _class_attribute(owner: Any, name: str) -> Any:
    for base in classes_of(owner if issubclass(type(owner), type) else type(owner)):
        members = class_dict(base)
        if name in members:
            return members[name]
    return MISSING


def returned_by_property(owner: Any, name: str) -> tuple[ast.expr, Scope] | None:
    """Return the expression that a property returns, with its scope; None if the property does more than that."""
    member = _class_attribute(owner, name)
    return _sole_return(owner, member.fget) if issubclass(type(member), property) else None


def returned_by_call(call: ast.Call, scope: Scope) -> Any:
    """Return the value of `self.scale` for `net.scale_now()` or `net()` whose body only returns that; else MISSING."""
    owner = evaluate(call.func, scope)
    function: Any = next(run_by(owner), None) if type(owner) is not FunctionType else None  # which has no self
    if owner is MISSING and isinstance(call.func, ast.Attribute):
        owner = evaluate(call.func.value, scope)
        function = _class_attribute(owner, call.func.attr)
    returned = _sole_return(owner, function)
    return evaluate(*returned) if returned is not None else MISSING


def _sole_return(owner: Any, function: Any) -> tuple[ast.expr, Scope] | None:
    """Return the expression of `def f(self): return self.scale` with its scope; None for a function that does more."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType) or code.co_argcount != 1:
        return None
    node = read(code.co_filename).function_at(code.co_firstlineno)
    body = node.body[ast.get_docstring(node) is not None :] if node is not None else []
    match body:
        case [ast.Return(value=ast.expr() as value)]:
            return value, Scope({code.co_varnames[0]: owner}, {})
    return None


def with_wrapped(value: Any) -> Iterator[FunctionType]:
    """Yield a function and its wrapped functions, each once: a function may wrap itself."""
    seen: list[FunctionType] = []
    while type(value) is FunctionType and not any(value is earlier for earlier in seen):
        yield value
        seen.append(value)
        value = value.__dict__.get("__wrapped__")


def run_by(value: Any) -> Iterator[FunctionType]:
    """Yield the functions that a call of an object runs: a function, a method, a `functools.partial`, a `__call__`."""
    value = value.func if type(value) is partial else value
    yield from with_wrapped(value.__func__ if type(value) is MethodType else value)
    yield from with_wrapped(_class_attribute(type(value), "__call__"))


def kept_defaults(code: CodeType, namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Return the default values, by parameter, of the function that has a code, if its qualified name leads to it."""
    outermost, *inner = code.co_qualname.split(".")
    value: Any = namespace.get(outermost)
    for name in inner:
        value = class_dict(value).get(name) if issubclass(type(value), type) else None
    value = value.__func__ if type(value) in (staticmethod, classmethod) else value
    function = next((inner for inner in with_wrapped(value) if inner.__code__ is code), None)
    if function is None:
        return {}
    values = reversed(function.__defaults__ or ())
    positional = zip(reversed(code.co_varnames[: code.co_argcount]), values, strict=False)
    return {**dict(positional), **(function.__kwdefaults__ or {})}


def constructor_fields(kind: type) -> list[str]:
    """Return the fields of a dataclass or a named tuple, in the order of its constructor."""
    members = class_dict(kind)
    fields = members.get("__dataclass_fields__", members.get("_fields"))
    return list(fields) if type(fields) in (dict, tuple) else []


def item(owner: Any, index: Any) -> Any:
    """Look up `owner[index]` of a dict, list, tuple or module container of torch's that indexes as usual."""
    if owner is MISSING or index is MISSING:
        return MISSING
    getter = _class_attribute(owner, "__getitem__")
    if getter is dict.__dict__["__getitem__"]:
        return dict.get(owner, index, MISSING)
    if getter is list.__dict__["__getitem__"] or getter is tuple.__dict__["__getitem__"]:
        try:
            return getter(owner, index)
        except (IndexError, TypeError):
            return MISSING
    if type(getter) is FunctionType and getter.__module__ == "torch.nn.modules.container":
        return _item_of_container(instance_dict(owner), index)
    return MISSING


def _item_of_container(stored: Mapping[str, Any], index: int | str) -> Any:
    for table in ("_modules", "_parameters"):
        entries = stored.get(table)
        if isinstance(entries, dict) and entries:
            key = str(index + len(entries)) if isinstance(index, int) and index < 0 else str(index)
            if key in entries:
                return dict.get(entries, key)
    return MISSING


class Value(NamedTuple):
    """A path expression of the source, with its value."""

    node: ast.expr
    text: str
    value: Any


def values(node: ast.AST, source: Source, scope: Scope) -> list[Value]:
    """Return the paths (`x`, `self.table`, `batch["mask"]`) that code reads, in its order, with their values.

    Of `self.table[: n].to(d)` it is `self.table`: a path ends before a call, a slice or a property.
    Functions and classes defined inside are left out.
    """
    return [value for path in _maximal_paths(node) if (value := _longest_with_value(path, source, scope)) is not None]


def _maximal_paths(node: ast.AST) -> Iterator[ast.expr]:
    """Yield maximal chains of names, attributes and subscripts below a node, and those inside their indexes."""
    if isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.NamedExpr):
        yield node
    inner = _chain_parts(node) if is_step(node) else ast.iter_child_nodes(node)
    for child in inner:
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield from _maximal_paths(child)


def _chain_parts(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a chain's indexes, and its first link if that is no name: `i` and `f(x)` of `f(x).y[i]`."""
    match node:
        case ast.Attribute(value=owner):
            yield from _chain_parts(owner)
        case ast.Subscript(value=owner, slice=index):
            yield index
            yield from _chain_parts(owner)
        case _ if not variable(node):
            yield node


def _longest_with_value(path: ast.expr, source: Source, scope: Scope) -> Value | None:
    while (value := evaluate(path, scope)) is MISSING:
        if not is_step(path):
            return None
        path = path.value
    return Value(path, source.segment(path), value)


# Texts computed from values: `f"cuda:{rank}"`.


def plain(node: ast.AST, scope: Scope) -> str | int | None:
    """Return the value of code that is a text or a number, or computes a text from such."""
    try:
        value = _constant_or_text(node, scope)
    except LookupError:
        return None
    return value if type(value) in (str, int) else None


def worth(node: ast.AST, scope: Scope) -> Any:
    """Return the value of code that is a literal, a look-up, or computes a text; else MISSING."""
    computed = plain(node, scope)
    return evaluate(node, scope) if computed is None else computed


def _constant_or_text(node: ast.AST, scope: Scope) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.JoinedStr(values=parts):
            return "".join(str(_plain_or_raise(part, scope)) for part in parts)
        case ast.FormattedValue(value=inner, format_spec=None):
            return _plain_or_raise(inner, scope)
    return evaluate(node, scope)


def _plain_or_raise(node: ast.AST, scope: Scope) -> str | int:
    value = plain(node, scope)
    if value is None:
        raise LookupError
    return value


_PLAIN: Final = (bool, int, float, str, type(None), list, tuple, dict)


def truth(test: ast.expr, scope: Scope) -> bool | None:
    """Return whether a condition holds now, as look-ups tell; None if they do not."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = truth(operand, scope)
            return None if inner is None else not inner
        case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot() as op], comparators=[ast.Constant(value=None)]):
            value = evaluate(left, scope)
            return None if value is MISSING else (value is None) is (type(op) is ast.Is)
        case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq() as op], comparators=[ast.Constant(value=constant)]):
            value = evaluate(left, scope)
            return (value == constant) is (type(op) is ast.Eq) if type(value) in (bool, int, str) else None
        case ast.Constant(value=constant):
            return bool(constant)
    value = evaluate(test, scope)
    return bool(value) if type(value) in _PLAIN else None
