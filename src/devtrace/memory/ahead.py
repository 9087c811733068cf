"""Batches that are moved long before they are used are collected as they come, and each is moved where it is used.

ahead.append(x.to(device))                  # bad: all of them are there at once
ahead.append(x)                             # good, with `x = x.to(device)` below `for x in ahead:`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from devtrace.diagnosis.findings import Edit
from devtrace.memory.holdings import Group, Memory
from devtrace.memory.retaining_line import Keeper, parts_of
from devtrace.source.flow import path_of
from devtrace.source.matching import called_name, is_read, listed, nodes_of, owner_of, variable
from devtrace.source.vocabulary import ADDS, TAKES_OUT, is_move
from devtrace.words.catalogue import sentence

_ASKS: Final = ADDS | {"empty", "full", "qsize"}
_GIVES: Final = TAKES_OUT | {"get", "get_nowait"}


def moved_ahead(memory: Memory, group: Group) -> tuple[str, tuple[Edit, ...]] | None:
    keeps = memory.keeper(group)
    if keeps is None or not keeps.adds or not memory.is_from_the_host(group):
        return None
    moves = {at: part for at, part in enumerate(parts_of(keeps.value)) if is_move(called_name(part)) and owner_of(part)}
    changes = [(part, keeps.code.text(owner_of(part) or part)) for part in moves.values()]
    edit = keeps.code.all_replaced(changes) if changes else None
    if edit is None:
        return sentence("out-of-memory.help-ahead", name=group.name, device=memory.shortage.device), ()
    uses = list(_where_used(keeps, group.name, {at: keeps.code.method_call(part) for at, part in moves.items()}))
    edits = (edit, *(each for each in uses if each is not None)) if uses and None not in uses else ()
    code = edit.after.strip()
    return sentence("out-of-memory.help-ahead-edit", name=group.name, device=memory.shortage.device, code=code), edits


def _where_used(keeps: Keeper, name: str, moves: dict[int, str]) -> Iterator[Edit | None]:
    """Yield the edits that move what a variable's container gives, None for a use that is not understood."""
    source = keeps.source
    known = set(nodes_of(ast.expr, keeps.statement))
    for read in nodes_of(ast.expr, source.function(keeps.statement) or source.tree):
        if path_of(read) != name or not is_read(read) or read in known:
            continue
        _, parent, *around = source.ancestors(read)
        match parent:
            case ast.Attribute() if called_name(around[0]) in _ASKS:
                continue
            case ast.Attribute() if called_name(around[0]) in _GIVES:
                yield _moved_there(keeps, around[0], moves)
            case ast.Subscript():
                yield _moved_there(keeps, parent, moves)
            case ast.For(target=target, iter=iterated) if iterated is read:
                text = _moved(target, moves)
                yield keeps.code.into(parent, text) if text else None
            case _ if called_name(parent) != "len" and not isinstance(parent, ast.While | ast.If | ast.UnaryOp):
                yield None


def _moved_there(keeps: Keeper, taken: ast.AST, moves: dict[int, str]) -> Edit | None:
    """Move what one expression takes out: the tensor itself, or the parts that a statement names."""
    if list(parts_of(keeps.value)) == [keeps.value]:
        return keeps.code.replaced(taken, f"{keeps.code.text(taken)}.{moves[0]}")
    match keeps.source.statement(taken):
        case ast.Assign(targets=[target], value=value) as statement if value is taken:
            text = _moved(target, moves)
            return keeps.code.below(statement, text) if text else None
    return None


def _moved(target: ast.expr, moves: dict[int, str]) -> str:
    """Return `x, y = x.to(device), y.to(device)` for what is given to `x, y, names`."""
    names = list(map(variable, listed(target)))
    if not all(names) or max(moves) >= len(names):
        return ""
    given = [names[at] for at in moves]
    return f"{', '.join(given)} = {', '.join(f'{names[at]}.{method}' for at, method in moves.items())}"
