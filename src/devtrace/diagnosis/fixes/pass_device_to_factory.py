"""`torch.zeros(n)` becomes `torch.zeros(n, device=x.device)`; in a package's code that is said."""

import ast
from collections.abc import Iterator

from devtrace.diagnosis.evidence import origins
from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.fixes import devices
from devtrace.diagnosis.fixes.fix import Fix, made_at, suggested, text_at
from devtrace.source.matching import calls_in, keyword
from devtrace.source.parsing import Source
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line


def pass_device_to_factory(case: Case, verdict: Verdict) -> Iterator[Fix]:
    """Pass the expected device to the factory's call; in a package's code, say so."""
    site = case.queries.trace.ops.number("site", case.origin.op) if case.origin.op >= 0 else -1
    found, node = text_at(case, site), case.queries.source_node(site)
    call = origins.factory_call(node) if node is not None else None
    device = devices.at(case, site, call) if call is not None else ""
    if found is None or call is None or not device:
        return
    code, package, argument = found.code, case.queries.package(site), f"device={device}"
    given = keyword(call, "device")
    new = one_line(code.with_argument(call, argument) if given is None else code.text_with(call, given, device))
    calls = [call] if given is not None else _without_device(found.statement, call, code.source)
    moved = made_at(case, lambda made: origins.factory_call(made) in calls)
    if package:
        yield Fix(sentence("fixed.package-factory", package=package, site=case.queries.site(site), code=new))
    elif given is not None:
        yield from suggested(sentence("fixed.create-with", code=argument), code.replaced(given, device), moved=moved)
    else:
        edit = code.all_replaced([(one, code.with_argument(one, argument)) for one in calls])
        yield from suggested(sentence("fixed.give-device", code=new), edit, moved=moved)


def _without_device(statement: ast.stmt, call: ast.Call, source: Source) -> list[ast.Call]:
    """Return a factory's call, and the others of its statement that have no device either."""
    found = [call]
    for node in calls_in(statement):
        if node is not call and origins.is_factory_without_device(node, source):
            inside = any(node in ast.walk(other) or other in ast.walk(node) for other in found)
            found += [] if inside else [node]
    return found


def move_in_package(case: Case, verdict: Verdict) -> Iterator[Fix]:
    """Name the line of a package's code that makes the tensor, and what it lacks: `.to(self.device)`."""
    queries = case.queries
    for site in dict.fromkeys((verdict.born, *(queries.born(row) for row in case.origin.path))):
        found, package = queries.source_node(site), queries.package(site)
        device = devices.at(case, site, found.node) if found is not None and package else ""
        if device:
            yield Fix(sentence("fixed.in-package", package=package, site=queries.site(site), device=device))
