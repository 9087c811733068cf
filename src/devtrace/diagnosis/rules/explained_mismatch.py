"""The finding of a mismatch: the odd tensor by name, where it came from, why it is odd, and a fix."""

import ast
from dataclasses import replace
from functools import partial
from typing import Final

from devtrace.diagnosis.causes.ordered import find_verdict
from devtrace.diagnosis.evidence.access_paths import AccessPath
from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.evidence.finding_parts import as_culprit, of_error
from devtrace.diagnosis.evidence.source_text import assigned_names, birth, statement_site
from devtrace.diagnosis.findings import Culprit, Finding, Site
from devtrace.diagnosis.fixes.fix import failing_frame, frame_at
from devtrace.diagnosis.fixes.search import Search
from devtrace.diagnosis.messages import message, package_line_with_the_owner
from devtrace.diagnosis.read_evidence import birth_by_name, changes_a_guess, is_only_read
from devtrace.diagnosis.slugs import RuleSlug
from devtrace.source.matching import called_name, calls_in, names_in
from devtrace.words.catalogue import unnamed
from devtrace.words.text_format import one_line

LONGEST_CHAIN: Final = 8


def explained(case: Case, rule: RuleSlug) -> Finding:
    queries, mismatch = case.queries, case.mismatch
    verdict = find_verdict(case)
    expressions = list(map(one_line, _expressions(case)))
    names = candidate_names(case, verdict, expressions)
    guessed = (_birth_in_an_untraced_cell(case, names) or birth_by_name(case)) if verdict.born < 0 else None
    if guessed is not None or is_only_read(case, verdict):
        verdict = replace(verdict, certainty="inferred")
    is_a_guess = partial(changes_a_guess, case, verdict)
    fix = Search(case, verdict, find_verdict, is_a_guess).fix()
    fix = replace(fix, edits=()) if is_a_guess(fix) else fix
    return Finding(
        rule=rule,
        **of_error(queries, case.op),
        cause=verdict.cause,
        devices=_devices(case),
        culprit=_culprit(case, verdict, names, guessed),
        bytes=queries.trace.tensors.number("bytes", mismatch.odd_tensor),
        message=message(case, verdict, names[0] if names else "", _operand_name(case, verdict, expressions)),
        help=fix.help,
        edits=fix.edits,
        others=fix.others if fix.edits else (),
    )


def _devices(case: Case) -> tuple[str, ...]:
    """Return the devices that the op mixed; of dtypes those of its inputs."""
    if case.queries.of == "device":
        return tuple(filter(None, (case.expected_device, case.odd_device)))
    rows = (case.odd_tensor, *case.queries.inputs(case.op))
    return tuple(dict.fromkeys(case.queries.device(row) for row in rows))


def candidate_names(case: Case, verdict: Verdict, expressions: list[str]) -> list[str]:
    """Return all possible names, best first: of the cause's tensor, of the odd one, of its sources."""
    tensors = case.queries.trace.tensors
    found = [verdict.name.text] if verdict.name is not None and not _is_an_operand(case, verdict.name) else []
    named = [name.text for name in case.names if not _is_an_operand(case, name)]
    operands = [name.text for name in case.names if _is_an_operand(case, name)]
    roots = [name.text for _, name in case.roots]
    recorded = [str(tensors.raw("name", row)) for row in (case.odd_tensor, case.queries.base(case.odd_tensor))]
    names = [*_library_paths(case), *found, *named, *expressions, *operands, *roots, *recorded, *_made_as(case)]
    return list(dict.fromkeys(name for name in names if name))


def _is_an_operand(case: Case, name: AccessPath) -> bool:
    """Return whether a name is only an item of what the failing function was handed: `tensors[1]`."""
    given = [each.f_code.co_varnames[: each.f_code.co_argcount] for each in case.snapshot.frames[:1]]
    return name.listed and name.frame == 0 and any(name.references[0].key in names for names in given)


def _made_as(case: Case) -> list[str]:
    """Return the tensor's name on the line that cast it, if the failing line, as of a hook, has none."""
    made = case.queries.op_node(case.origin.op) if case.queries.of == "dtype" else None
    match made.statement if made is not None else None:
        case ast.Return(value=ast.expr() as value) if made is not None:
            return [one_line(made.source.segment(value))]
    return assigned_names(made) if made is not None else []


def _library_paths(case: Case) -> list[str]:
    """Return the name that a library of layers gave a tensor, as Keras does: `sequential/dense/kernel`."""
    texts = [name.last.text.lstrip(".") for name in case.names]
    return [path for text in texts if "/" in text for path in (text, text.partition("/")[2])][:2]


def _operand_name(case: Case, verdict: Verdict, expressions: list[str]) -> str | None:
    """Return a name of the odd tensor if the cause is about another, its source; "" if it has none."""
    if verdict.name is None or verdict.name in case.names:
        return None
    return next(iter([*(name.text for name in case.names), *expressions]), "")


def _expressions(case: Case) -> list[str]:
    """Return the source's names for the odd tensor: its expression on the failing line, its variable."""
    queries, tensor = case.queries, case.odd_tensor
    frame = failing_frame(case)
    made_of = (tensor, case.origin.row) if case.begins_so else (tensor,)
    nodes = (frame.node_of(row) for row in made_of) if frame is not None else iter(())
    node = next(filter(None, nodes), None)
    texts = [frame.code.text(node)] if frame is not None and node is not None else []
    op = queries.producer(tensor)
    made = queries.op_node(op)
    if made is None:
        return texts
    failing = queries.op_node(case.op)
    if failing is None or not queries.are_of_one_statement(op, case.op):
        outputs = queries.outputs(op)
        index = outputs.index(tensor) if tensor in outputs else 0
        is_call = bool(called_name(made.node)) and made.source.parent(made.node) is not made.statement
        return [*texts, *(assigned_names(made, index) or ([made.source.segment(made.node)] if is_call else []))]
    is_part = failing.node is not made.node and isinstance(made.node, ast.expr)
    return [*texts, made.source.segment(made.node)] if is_part else texts


def _birth_in_an_untraced_cell(case: Case, names: list[str]) -> Site | None:
    """Return the statement of an earlier, untraced cell that makes the named tensor."""
    live, frames = case.queries.live, case.snapshot.frames
    if live is None or not frames or not names or case.origin.arrival != "given":
        return None
    owner = names[0].rpartition(".")[0]
    kind = next((module.type for module in case.queries.trace.modules if module.path == owner), "")
    plain = (name.last for name in case.names if name.text == names[0] and name.last.kind == "attribute")
    kind = kind or next((type(reference.owner).__name__ for reference in plain), "")  # that of no module
    return birth(live.cells, frames[-1].f_code.co_filename, names[0], kind)


def _culprit(case: Case, verdict: Verdict, names: list[str], guessed: Site | None) -> Culprit:
    queries = case.queries
    row = case.snapshot.row(verdict.name.last.value) if verdict.name is not None else None
    return as_culprit(
        queries,
        case.odd_tensor if row is None else row,
        names or [unnamed()],
        statement_site(queries, verdict.born) or guessed,
        moved=statement_site(queries, verdict.moved),
        chain=_chain(case),
        certainty=verdict.certainty,
        **{queries.of: case.odd_device},
    )


def _chain(case: Case) -> tuple[Site, ...]:
    """Return the lines that the tensor came by, from birth to use."""
    queries = case.queries
    sites = [queries.born(row) for row in reversed(case.origin.path)]
    if sites and queries.package(sites[0]):
        sites.insert(0, queries.user(sites[0]))  # the user's line that led there
    sites += [package_line_with_the_owner(case), queries.op_site(case.op)]
    found = [_loaded_from(case), *(statement_site(queries, id) for id in sites)]
    lines = {(site.file, site.line): site for site in found if site is not None}
    return tuple(lines.values())[-LONGEST_CHAIN:]


def _loaded_from(case: Case) -> Site | None:
    """Return the line that loaded `saved` of `optimizer.load_state_dict(saved)`: `saved = torch.load(f)`."""
    found, frame = case.queries.source_node(case.born), frame_at(case, case.born)
    calls = calls_in(found.statement) if found is not None else ()
    call = next((call for call in calls if called_name(call) == "load_state_dict" and call.args), None)
    if call is None or frame is None:
        return None
    bound = [statement for variable in names_in(call.args[0]) for statement in frame.bindings(variable)[-1:]]
    return frame.code.site_of(bound[0]) if bound else None
