"""`torch.zeros(n)` becomes `torch.zeros(n, device=x.device)`; in a package's code that is said."""

import ast
from collections.abc import Iterator

from devtrace.diagnosis.evidence import origins
from devtrace.diagnosis.evidence.mismatch_case import MismatchCase, Verdict
from devtrace.diagnosis.evidence.trace_queries import NOWHERE, SourceNode
from devtrace.diagnosis.evidence.trait import Trait
from devtrace.diagnosis.fixes import devices
from devtrace.diagnosis.fixes.changes import rewritten
from devtrace.diagnosis.fixes.fix import Fix, Moved, made_at
from devtrace.source.matching import called_name, calls_in, keyword, same_code
from devtrace.source.parsing import Source
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line


def pass_device_to_factory(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Pass the expected device to the factory's call; in a package's code, say so."""
    site, by = case.queries.op_site(case.origin.op), case.queries.by
    birth = case.queries.source_node(site)
    call = _factory_call(birth, by)
    if call is None:
        return
    device = devices.at(case, site, call)
    if not device and case.expected_trait and by.is_plain(case.expected_trait):
        device = by.literal(birth.source, case.expected_trait)
    if not device:
        return
    code, package = birth.code, case.queries.package(site)
    by_keyword = keyword(call, by.name)
    argument = by_keyword or origins.trait_argument(birth, by)
    # Of `torch.zeros(n).to(device)` the argument is that of a move behind the call.
    move = code.source.nearest(ast.Call, argument) if by_keyword is None and argument is not None else None
    if _cannot_help(case, call) or (move is None and case.origin.arrival == "copied"):
        return
    new_move = code.text_with(move, (argument, device)) if move is not None and argument is not None else ""
    new = one_line(new_move or code.with_argument(call, by.name, device))
    are_mixed = argument is None and case.mismatch.of == "inputs"  # else this tensor alone is refused
    calls = _calls_without_device(by, birth.statement, call, code.source) if are_mixed else [call]
    moved = made_at(case, lambda found: _factory_call(found, by) in calls)
    if package:
        yield Fix(sentence("fixed.package-factory", package=package, site=case.queries.site(site), code=new))
        return
    changes: dict[ast.AST, str] = {call: code.with_argument(call, by.name, device) for call in calls}
    key, shown = ("fixed.create-with", f"{by.name}={device}") if by_keyword else ("fixed.give-device", new)
    yield from rewritten(code, {argument: device} if argument is not None else changes, key, moved, shown=shown)


def _factory_call(found: SourceNode, by: Trait) -> ast.Call | None:
    """Return the call of a factory: `torch.zeros(n)`; `zeros_like(p, dtype=...)` too, if it asks for the trait."""
    alike = (call for call in calls_in(found.node) if called_name(call).endswith("_like") and keyword(call, by.name))
    return origins.factory_call(found) or next(alike, None)


def _cannot_help(case: MismatchCase, call: ast.Call) -> bool:
    """Return whether an argument cannot help: the result can have no other dtype, or `**options` may have it too.

    Nor does it help an op that refuses a dtype as such, `1 - mask`, if the factory's result is only a source.
    """
    is_a_source = case.mismatch.of != "inputs" and case.queries.base(case.odd_tensor) != case.base
    has_options = any(word.arg is None for word in call.keywords) and keyword(call, case.queries.by.name) is None
    return is_a_source or has_options or not case.queries.by.may_be_made_by(called_name(call), case.expected_trait)


def _calls_without_device(by: Trait, statement: ast.stmt, call: ast.Call, source: Source) -> list[ast.Call]:
    """Return a factory's call, and the others of its statement that have no device either.

    For a dtype also its twins: the same words in the same function, `k = zeros(n, d)` and `v = zeros(n, d)` of a cache.
    """
    calls, function = [call], source.function(call) if by.takes_twins else None
    twins = (node for node in calls_in(function or statement) if same_code(node, call))
    for node in (*calls_in(statement), *twins):
        if node is not call and called_name(node) not in by.left_alone and origins.is_factory_without(by, node, source):
            inside = any(node in ast.walk(other) or other in ast.walk(node) for other in calls)
            calls += [] if inside else [node]
    return calls


def ask_the_hook(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Turn `device=encoder.device` into `device=encoder._hf_hook.execution_device` where the tensor was made."""
    if verdict.asked is None or case.queries.package(case.queries.op_site(case.origin.op)):
        return
    birth, argument, frame, *_, hook = verdict.asked
    paths = case.moment.whole_walk.names(verdict.module.last.value) if frame.is_there else []
    names = [name for name in paths if name.frame == frame.number or name.references[0].kind == "global"]
    fallback = frame.device_code(birth.source.span(argument).line, birth.node)
    device = next((f"{name.code}{hook.code}" for name in names if name.code and hook.code), fallback)
    moved = [*made_at(case, lambda found: found.statement is birth.statement)] or [Moved(case.row, case.op)]
    code = device or case.queries.by.literal(birth.source, hook.device)
    yield from rewritten(birth.code, {argument: code}, "fixed.ask-hook", moved, shown=code)


def move_in_package(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Name the line of a package's code that makes the tensor, and what it lacks: `.to(self.device)`."""
    queries = case.queries
    for site in dict.fromkeys((verdict.born, *(queries.born(row) for row in case.origin.path))):
        found, package = queries.source_node(site), queries.package(site)
        device = devices.at(case, site, found.node) if found is not NOWHERE and package else ""
        if device:
            yield Fix(sentence("fixed.in-package", package=package, site=queries.site(site), device=device))
