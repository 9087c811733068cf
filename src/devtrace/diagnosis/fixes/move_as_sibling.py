"""`self.bias = nn.Embedding(n, 1).to(device)`, as a line beside it moves what it makes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devtrace.diagnosis.evidence.access_paths import is_module
from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.fixes.fix import Fix, Moved, names_its_device, suggested, tensors_below
from devtrace.diagnosis.fixes.register_on_module import assignments
from devtrace.source.matching import match_code, same_code
from devtrace.source.object_walk import is_tensor
from devtrace.source.parsing import Source
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line


def move_as_sibling(case: Case, verdict: Verdict) -> Iterator[Fix]:
    """Move an attribute in the only line that gives it its value, where a line of the same block moves another so."""
    lengths = range(2, len(verdict.name.references) + 1) if verdict.name is not None else ()
    for part in (verdict.name.prefix(length) for length in lengths if verdict.name is not None):
        owner, key = part.last.owner, part.last.key
        can_be_moved = isinstance(key, str) and (is_module(part.last.value) or is_tensor(part.last.value))
        given = list(assignments(case.queries, owner, key)) if can_be_moved else []
        for code, statement in given if len(given) == 1 else ():
            made = match_code("$self.$name = $value", statement)
            sibling = _moved_beside(code.source, statement, made["self"]) if made is not None else None
            if made is None or sibling is None or names_its_device(made["value"]):
                continue
            new = code.moved_to(made["value"], code.text(sibling["device"]))
            other = f"{code.text(sibling['self'])}.{sibling['name']}"
            help = sentence(
                "fixed.as-sibling", sibling=other, code=f"{code.text(made['self'])}.{key} = {one_line(new)}"
            )
            moved = [Moved(row, case.queries.producer(case.queries.base(row))) for row in tensors_below(case, part)]
            yield from suggested(help, code.replaced(made["value"], new), moved=moved)


def _moved_beside(source: Source, statement: ast.stmt, owner: ast.expr) -> dict[str, ast.expr] | None:
    """Return the parts of the nearest `self.other = value.to(device)` of the same block."""

    def distance(other: ast.stmt) -> int:
        return abs(source.span(other).line - source.span(statement).line)

    block = source.parent(statement)
    beside = [each for each in getattr(block, "body", ()) if each is not statement]
    for each in sorted(beside, key=distance):
        found = match_code("$self.$name = $value.to($device)", each)
        if (
            found is not None
            and same_code(found["self"], owner)
            and isinstance(found["device"], ast.Name | ast.Attribute)
        ):
            return found
    return None
