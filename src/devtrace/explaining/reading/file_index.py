"""Occurrences of a name in a file, and the instructions of a statement's expressions."""

import ast
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from devtrace.recording.columns import sites
from devtrace.runtime.tracebacks import codes_in
from devtrace.source.defuse import path_of
from devtrace.source.matching import called_name, calls_in, match_code, variable
from devtrace.source.parsing import Source, Span, kept_with_source


@dataclass(frozen=True)
class NamedCode:
    """Occurrences of one name in a file."""

    calls: list[ast.Call] = field(default_factory=list)
    attributes: list[ast.expr] = field(default_factory=list)
    entries: list[ast.expr] = field(default_factory=list)
    contents: list[ast.expr] = field(default_factory=list)


@kept_with_source
def named(source: Source, name: str) -> NamedCode:
    """Return the calls of a name in a file, and what that gives it as an attribute, its data or an entry."""
    found = NamedCode()
    for node in ast.walk(ast.Module(source.mentioning(name), [])):
        if isinstance(node, ast.Call):
            _add_call(found, node, name)
        elif isinstance(node, ast.Assign):
            _add_assignment(found, node, name)
        elif getattr(node, "name", "") == name:  # `cls(...)` in a class's own methods
            found.calls.extend(call for call in calls_in(node) if called_name(call) == "cls")
        elif isinstance(node, ast.Dict):
            given = zip(node.keys, node.values, strict=True)
            found.entries.extend(value for key, value in given if isinstance(key, ast.Constant) and key.value == name)
    return found


def _add_call(found: NamedCode, call: ast.Call, name: str) -> None:
    called = called_name(call)
    wrapped = path_of(call.args[0]).rpartition(".")[2] if called == "partial" and call.args else ""
    if name in (called, wrapped):
        found.calls.append(call)
    swapped = zip(call.args, call.args[::-1], strict=True) if called == "swap_tensors" else ()
    found.contents.extend(other for each, other in swapped if getattr(each, "attr", "") == name)
    if called == "dict":
        found.entries.extend(word.value for word in call.keywords if word.arg == name)


def _add_assignment(found: NamedCode, node: ast.Assign, name: str) -> None:
    for target in node.targets:
        match target:
            case ast.Attribute(value=owner, attr=each) if each == name and match_code("None", node.value) is None:
                found.attributes.append(node.value)
                found.contents.extend([node.value] if name == "data" and variable(owner) else [])  # of any parameter
            case ast.Attribute(value=ast.Attribute(attr=each), attr="data") if each == name:
                found.contents.append(node.value)
            case ast.Subscript(slice=ast.Constant(value=key)) if str(key) == name:
                found.entries.append(node.value)


_Spots = dict[Span | int, tuple[CodeType, int]]


def site_of(node: ast.AST, source: Source, caller: int) -> int:
    """Return the site of an expression, else of its line; NOWHERE where no instruction is of it."""
    written = source.node_at(source.span(node))  # of `Normal(a, b).scale`, which nobody wrote, the call
    spots, span = _spots(source, source.outermost(written)), source.span(node)
    is_first = source.span(source.statement(written)).line == span.line  # the line stands for it all
    found = spots.get(span) or (None if is_first else spots.get(_of_method(node, span))) or spots.get(span.line)
    if found is None:
        return sites.NOWHERE
    is_library = sites.files[source.file] == sites.LIBRARY
    return sites.intern(*found, caller if is_library else sites.NOWHERE)


def _of_method(node: ast.AST, span: Span) -> Span:
    """Return where the instruction of a call is that spreads over lines: it begins at the method's name."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name, end_lineno=int(end), end_col_offset=int(column))):
            line, shift = end + span.line - node.lineno, span.column - node.col_offset
            return span._replace(line=line, column=column + shift - len(name.encode()))
    return span


@kept_with_source
def _spots(source: Source, statement: Any) -> _Spots:
    """Return the instructions of a statement of a file by their span; of a line, by its number, the first."""
    found: _Spots = {}
    try:
        whole = compile(
            ast.Module([statement], []), source.file, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
        )
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return found
    for code in codes_in(whole):
        for index, (line, end_line, column, end_column) in enumerate(code.co_positions()):
            if line is None or end_line is None or column is None or end_column is None:
                continue
            found[Span(line, column, end_line, end_column)] = code, index * 2
            found.setdefault(line, (code, index * 2))
    return found
