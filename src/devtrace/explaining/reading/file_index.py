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
def mentions(source: Source, name: str) -> NamedCode:
    """Return the calls of a name in a file, and the values that attributes, data and entries of that name get."""
    code = NamedCode()
    for node in ast.walk(ast.Module(source.mentioning(name), [])):
        if isinstance(node, ast.Call):
            _add_call(code, node, name)
        elif isinstance(node, ast.Assign):
            _add_assignment(code, node, name)
        elif getattr(node, "name", "") == name:  # `cls(...)` in a class's own methods
            code.calls.extend(call for call in calls_in(node) if called_name(call) == "cls")
        elif isinstance(node, ast.Dict):
            entries = zip(node.keys, node.values, strict=True)
            code.entries.extend(value for key, value in entries if isinstance(key, ast.Constant) and key.value == name)
    return code


def _add_call(code: NamedCode, call: ast.Call, name: str) -> None:
    called = called_name(call)
    wrapped = path_of(call.args[0]).rpartition(".")[2] if called == "partial" and call.args else ""
    if name in (called, wrapped):
        code.calls.append(call)
    swapped = zip(call.args, call.args[::-1], strict=True) if called == "swap_tensors" else ()
    code.contents.extend(other for argument, other in swapped if getattr(argument, "attr", "") == name)
    if called == "dict":
        code.entries.extend(word.value for word in call.keywords if word.arg == name)


def _add_assignment(code: NamedCode, node: ast.Assign, name: str) -> None:
    for target in node.targets:
        match target:
            case ast.Attribute(value=owner, attr=attr) if attr == name and match_code("None", node.value) is None:
                code.attributes.append(node.value)
                code.contents.extend([node.value] if name == "data" and variable(owner) else [])  # of any parameter
            case ast.Attribute(value=ast.Attribute(attr=attr), attr="data") if attr == name:
                code.contents.append(node.value)
            case ast.Subscript(slice=ast.Constant(value=key)) if str(key) == name:
                code.entries.append(node.value)


_Instructions = dict[Span | int, tuple[CodeType, int]]


def site_of(node: ast.AST, source: Source, caller: int) -> int:
    """Return the site of an expression, else of its line; NOWHERE where no instruction is of it."""
    written = source.node_at(source.span(node))  # the call for `Normal(a, b).scale`, made by the reader
    spots, span = _instructions_by_span(source, source.outermost(written)), source.span(node)
    is_first = source.span(source.statement(written)).line == span.line  # then the line will do
    spot = spots.get(span) or (None if is_first else spots.get(_span_of_method(node, span))) or spots.get(span.line)
    if spot is None:
        return sites.NOWHERE
    is_library = sites.files[source.file] == sites.LIBRARY
    return sites.intern(*spot, caller if is_library else sites.NOWHERE)


def _span_of_method(node: ast.AST, span: Span) -> Span:
    """Return the span of a method call's instruction: in a call over several lines it begins at the method's name."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name, end_lineno=int(end), end_col_offset=int(column))):
            line, shift = end + span.line - node.lineno, span.column - node.col_offset
            return span._replace(line=line, column=column + shift - len(name.encode()))
    return span


@kept_with_source
def _instructions_by_span(source: Source, statement: Any) -> _Instructions:
    """Return a statement's instructions by their span; and by the number of each line the first of it."""
    spots: _Instructions = {}
    try:
        whole = compile(
            ast.Module([statement], []), source.file, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
        )
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return spots
    for code in codes_in(whole):
        for index, (line, end_line, column, end_column) in enumerate(code.co_positions()):
            if line is None or end_line is None or column is None or end_column is None:
                continue
            spots[Span(line, column, end_line, end_column)] = code, index * 2
            spots.setdefault(line, (code, index * 2))
    return spots
