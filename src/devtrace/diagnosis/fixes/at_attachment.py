"""Moves a part of a module or an object where it was attached: `model.head = head`, `register_buffer`, `self.x = x`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from devtrace.diagnosis.evidence.access_paths import AccessPath
from devtrace.diagnosis.evidence.execution_order import maker_at
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.mismatch_case import MismatchCase, Verdict
from devtrace.diagnosis.evidence.source_text import only_assignment
from devtrace.diagnosis.evidence.trace_queries import SourceNode
from devtrace.diagnosis.findings import Site
from devtrace.diagnosis.fixes.changes import Anchor, OwnLines, Proposal, Within
from devtrace.diagnosis.fixes.devices import of_earlier_cell, of_move, of_owner
from devtrace.diagnosis.fixes.fix import Fix, frame_at, names_its_device, odd_rows
from devtrace.source import kinds
from devtrace.source.flow import targets
from devtrace.source.matching import assigned_names, called_names, match_code, names_in, run_names, same_code
from devtrace.source.object_walk import is_tensor, members
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line


def move_below_attachment(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Below `model.head = nn.Linear(8, 2)` add `model.to(device)`, in the frame that holds the model, not its own."""
    frame = case.frame_of(verdict.name)
    if frame is None or verdict.name is None or verdict.module is None or verdict.move is None:
        return
    statement = _Attaching(case, verdict, frame, verdict.name).statement()
    if statement is None or verdict.module.code in (None, frame.own):
        return
    anchor = Anchor(frame.code, statement, "below", frame)
    proposal = Proposal(anchor, OwnLines.of(verdict.module), of_move(case, verdict, frame) or anchor.device)
    help = sentence("fixed.attached", code=proposal.code, line=anchor.line)
    yield from proposal.fixes(help, anchor.moved(case, verdict.module))


@dataclass(frozen=True)
class _Attaching:
    """Statement that attached a part to a module, in the frame that holds that: by itself, or by what it calls."""

    case: MismatchCase
    verdict: Verdict
    frame: FailingFrame
    name: AccessPath

    @cached_property
    def _above(self) -> list[ast.stmt]:
        """Statements above the failing one that may attach something."""
        simple = (each for each in self.frame.statements() if isinstance(each, ast.Assign | ast.Expr | ast.AugAssign))
        return [each for each in simple if self.frame.source.span(each).end_line < self.frame.line]

    @property
    def _model(self) -> str:
        return self.name.references[0].text

    def statement(self) -> ast.stmt | None:
        born = self.case.queries.site(self.verdict.born)
        return (self._assigning() or self._making(born) or self._calling(born)) if born is not None else None

    def _assigning(self) -> ast.stmt | None:
        """Return the last `model.bank = ...`, if the odd tensor is in `model.bank` or beside it."""
        assert self.verdict.module is not None
        below = range(len(self.verdict.module.references) + 1, len(self.name.references) + 1)
        parts = [self.name.prefix(length) for length in below]
        beside = ((part, other) for part in parts for other in members(part.last.owner))
        paths = {part.code for part in parts}
        paths |= {part.beside(other).code for part, other in beside if odd_rows(self.case, other.value)}
        given = ((each, target) for each in reversed(self._above) for target in getattr(each, "targets", ()))
        return next((statement for statement, target in given if self.frame.code.text(target) in paths), None)

    def _making(self, born: Site) -> ast.stmt | None:
        """Return the statement that made the part, or the one that attached it."""
        here, span = self.frame.code.site, self.frame.source.span
        is_here = (here.file, here.cell_id) == (born.file, born.cell_id)
        around = (each for each in self._above if span(each).line <= born.line <= span(each).end_line)
        made = next(around, None) if is_here else None
        names = set(assigned_names(made)) if made is not None else set()
        if made is None or not names or self._model in names_in(made):
            return made
        later = (each for each in self._above if span(made).end_line < span(each).line < self.frame.line)
        return next((each for each in later if self._model in names_in(each) and names & names_in(each)), made)

    def _calling(self, born: Site) -> ast.stmt | None:
        """Return the first statement below the move that passes the model to a function that may attach the part."""
        moved, span = self.case.queries.site(self.verdict.moved), self.frame.source.span
        first = moved.line + 1 if moved is not None and moved.file == self.frame.code.site.file else 0
        makers = set(born.function.split("."))  # `Builder.<locals>.attach`
        below = (each for each in self._above if span(each).line >= first and not self._was_kept_first())
        handing = (each for each in below if self._model in names_in(each))
        return next((each for each in handing if makers & run_names(each) or self._passes_module(each)), None)

    def running(self, born: Site) -> ast.stmt | None:
        """Return the last call, above the failing statement, of the function that made the part."""
        maker = maker_at(born)
        return next((each for each in reversed(self._above) if maker in run_names(each)), None)

    def _was_kept_first(self) -> bool:
        """Return whether a parameter's replacement came from another object's attribute: `self.shadow = {...}`."""
        owner = self.case.ownership
        found = self.case.queries.own_node(self.verdict.born) if owner is not None and owner.was_replaced else None
        given = targets(found.statement) if found is not None else ()
        return any(isinstance(target.node, ast.Attribute) for target in given)

    def _passes_module(self, statement: ast.stmt) -> bool:
        """Return whether a statement calls a function of the user's with a module as a plain argument."""
        match statement.value if isinstance(statement, ast.Assign | ast.Expr) else None:
            case ast.Call(func=ast.Name(), args=given):
                values = (self.frame.variables.get(getattr(each, "id", "")) for each in given)
                return any(map(kinds.is_module, values))
        return False


def move_as_attached(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Write `owner.head = nn.Linear(...).to(device)`, with the device of an earlier cell or of the owner."""
    found = case.queries.own_node(verdict.born)
    if found is None or verdict.name is None or getattr(found.function, "name", "") == "__init__":
        return
    statement, is_registered = found.statement, verdict.name.last.kind in ("parameter", "buffer")
    if verdict.kind == "never-moved" and not is_registered:
        return
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Attribute | ast.Subscript):
        return
    target = statement.targets[0]
    frame = frame_at(case, verdict.born)
    here = frame.device_code(found.code.source.span(statement).line, statement.value) if frame is not None else ""
    device = of_earlier_cell(case, verdict, found) or of_owner(case, target.value, found.code) or here
    is_parameter = verdict.name.last.kind == "parameter" and len(verdict.name.references) >= 2
    inner = _parameter_data(statement.value) if is_parameter else None
    anchor = Anchor(found.code, inner or statement.value, "at")
    proposal = Proposal(anchor, Within((inner or statement.value,)), device)
    shown = one_line(proposal.code)
    if inner is not None:
        help = sentence("fixed.on-models-device", code=shown)
    else:
        help = sentence("fixed.as-attached", code=f"{found.code.text(target)} = {shown}")
    yield from proposal.fixes(help, anchor.moved(case, *_parts_attached(case, found.code.text(target))))


def move_where_it_is_built(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Below `self._build(x.shape[-1])`, which made a layer in a call, add `self.layer.to(x.device)`."""
    born, found = case.queries.site(verdict.born), case.queries.own_node(verdict.born)
    made = match_code("$self.$name = $value", found.statement) if found is not None else None
    if born is None or made is None:
        return
    for name in case.names:
        frame, part = case.frame_of(name), _part_attached(name, str(made["name"]))
        if frame is None or part is None or not part.code or not kinds.is_module(part.last.value):
            continue
        statement = _Attaching(case, verdict, frame, name).running(born)
        if statement is not None:
            anchor = Anchor(frame.code, statement, "below", frame)
            device = frame.device_code(anchor.line + 1, statement)
            proposal = Proposal(anchor, OwnLines.of(part), device)
            help = sentence("fixed.below-line", code=proposal.code, line=anchor.line)
            yield from proposal.fixes(help, anchor.moved(case, part))


def _parts_attached(case: MismatchCase, target: str) -> Iterator[AccessPath]:
    """Yield the attached parts of the case's names, else the named objects."""
    step = target.rpartition(".")[2]
    for name in case.names:
        yield _part_attached(name, step) or name


def _part_attached(name: AccessPath, step: str) -> AccessPath | None:
    parts = (name.prefix(length) for length in range(1, len(name.references) + 1))
    return next((part for part in parts if part.texts[-1].lstrip(".") == step), None)


def _parameter_data(node: ast.expr) -> ast.expr | None:
    """Return `x` of `nn.Parameter(x)`, the call alone or within other calls."""
    return node.args[0] if isinstance(node, ast.Call) and node.args and "Parameter" in called_names(node) else None


def move_as_registered(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Write `layer.register_buffer("mask", keep(layer).to(device))`, which holds in each round of a loop."""
    frame = case.frame_of(verdict.name)
    if frame is None or verdict.name is None or verdict.name.last.kind != "buffer":
        return
    for statement in frame.statements():
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="register_buffer"), args=[name, tensor, *_]) as call):
                line = frame.source.span(statement).line
                if line > frame.line or getattr(name, "value", None) != verdict.name.last.key:
                    continue
                anchor = Anchor(frame.code, tensor, "at", frame)
                device = of_move(case, verdict, frame) or frame.setup_device_code(line)
                proposal = Proposal(anchor, Within((tensor,)), device)
                new = one_line(frame.code.text_with(call, (tensor, proposal.code)))
                moved = anchor.moved(case, verdict.name)
                yield from proposal.fixes(sentence("fixed.as-registered", code=new), moved)


def move_as_sibling(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Beside `self.x = nn.Embedding(n, 1).to(device)` write `self.y = nn.Embedding(n, 1).to(device)`."""
    lengths = range(2, len(verdict.name.references) + 1) if verdict.name is not None else ()
    for part in (verdict.name.prefix(length) for length in lengths if verdict.name is not None):
        owner, key = part.last.owner, part.last.key
        can_be_moved = isinstance(key, str) and (kinds.is_module(part.last.value) or is_tensor(part.last.value))
        given = only_assignment(case.queries, owner, key) if can_be_moved else None
        made = match_code("$self.$name = $value", given.statement) if given is not None else None
        sibling = _moved_beside(given, made["self"]) if given is not None and made is not None else None
        if given is None or made is None or sibling is None or names_its_device(made["value"]):
            continue
        code, anchor = given.code, Anchor(given.code, made["value"], "at")
        proposal = Proposal(anchor, Within((made["value"],)), code.text(sibling["device"]))
        other = f"{code.text(sibling['self'])}.{sibling['name']}"
        new = f"{code.text(made['self'])}.{key} = {one_line(proposal.code)}"
        yield from proposal.fixes(sentence("fixed.as-sibling", sibling=other, code=new), anchor.moved(case, part))


def _moved_beside(given: SourceNode, owner: ast.expr) -> dict[str, ast.expr] | None:
    """Return the parts of the nearest `self.other = value.to(device)` of the same block."""
    line, block = given.statement.lineno, getattr(given.source.parent(given.statement), "body", ())
    for each in sorted(block, key=lambda other: abs(other.lineno - line)):
        found = match_code("$self.$name = $value.to($device)", each) if each is not given.statement else None
        is_beside = found is not None and same_code(found["self"], owner)
        if found is not None and is_beside and isinstance(found["device"], ast.Name | ast.Attribute):
            return found
    return None
