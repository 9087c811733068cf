"""Kinds of expressions, each with what reads it: the whole of the language that is understood."""

import ast
from collections.abc import Mapping
from typing import Final

from devtrace.explaining.reading import attributes, calls, expressions, names
from devtrace.explaining.reading.reader import Definer, Handler

HANDLERS: Final[Mapping[type[ast.AST], Handler]] = {
    ast.Constant: expressions.read_constant,
    ast.Name: names.read_name,
    ast.Attribute: attributes.read_attribute,
    ast.Subscript: expressions.read_subscript,
    ast.Call: calls.read_call,
    ast.BinOp: expressions.read_binary,
    ast.UnaryOp: expressions.read_operation,
    ast.Compare: expressions.read_operation,
    ast.IfExp: expressions.read_either,
    ast.BoolOp: expressions.read_either,
    ast.NamedExpr: expressions.read_inner,
    ast.Starred: expressions.read_inner,
    ast.Await: expressions.read_inner,
    ast.Tuple: expressions.read_sequence,
    ast.List: expressions.read_sequence,
    ast.Dict: expressions.read_dict,
    ast.ListComp: expressions.read_comprehension,
    ast.GeneratorExp: expressions.read_comprehension,
    ast.SetComp: expressions.read_comprehension,
    ast.JoinedStr: expressions.read_text,
}
DEFINERS: Final[Mapping[type[ast.AST], Definer]] = {
    ast.Name: names.definitions_of_name,
    ast.Attribute: attributes.definitions_of_attribute,
    ast.Subscript: expressions.definitions_of_item,
    ast.Call: calls.definitions_of_call,
}
