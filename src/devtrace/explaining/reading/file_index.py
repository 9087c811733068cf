"""An index of one file, made in one walk: calls by name, assignments by attribute, entries of dictionaries by key."""

import ast
from collections import defaultdict
from dataclasses import dataclass, field

from devtrace.source.matching import called_name, match_code
from devtrace.source.parsing import Source, kept_with_source


@dataclass(frozen=True)
class FileIndex:
    """All that a file has of one name, in whatever function."""

    calls: dict[str, list[ast.Call]] = field(default_factory=lambda: defaultdict(list))
    attributes: dict[str, list[ast.expr]] = field(default_factory=lambda: defaultdict(list))
    entries: dict[str, list[ast.expr]] = field(default_factory=lambda: defaultdict(list))


@kept_with_source
def index_of(source: Source) -> FileIndex:
    found = FileIndex()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call):
            _add_call(found, node)
        elif isinstance(node, ast.Assign):
            _add_assignment(found, node)
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    found.entries[key.value].append(value)
    return found


def _add_call(index: FileIndex, call: ast.Call) -> None:
    name = called_name(call)
    index.calls[name].append(call)
    first = call.args[0] if name == "partial" and call.args else None
    if isinstance(first, ast.Name):
        index.calls[first.id].append(call)
    if name == "dict":
        for word in call.keywords:
            index.entries[word.arg or ""].append(word.value)


def _add_assignment(index: FileIndex, node: ast.Assign) -> None:
    for target in node.targets:
        if isinstance(target, ast.Attribute) and match_code("None", node.value) is None:
            index.attributes[target.attr].append(node.value)
        elif isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
            index.entries[str(target.slice.value)].append(node.value)
