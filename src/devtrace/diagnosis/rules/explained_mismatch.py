"""The finding of a mismatch: the odd tensor by name, where it came from, why it is odd, and a fix."""

import ast
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

import numpy as np

from devtrace.diagnosis.causes import ordered
from devtrace.diagnosis.causes.ordered import find_verdict
from devtrace.diagnosis.evidence import modules
from devtrace.diagnosis.evidence.access_paths import NO_PATH, AccessPath
from devtrace.diagnosis.evidence.finding_parts import as_culprit, of_error
from devtrace.diagnosis.evidence.mismatch_case import MismatchCase, Verdict
from devtrace.diagnosis.evidence.origins import find_origin
from devtrace.diagnosis.evidence.source_text import assigned_names, birth, only_assignment, statement_site
from devtrace.diagnosis.evidence.trace_queries import META, NOWHERE
from devtrace.diagnosis.findings import Culprit, Finding, Site
from devtrace.diagnosis.fixes.fix import frame_at, odd_expression
from devtrace.diagnosis.fixes.search import Search
from devtrace.diagnosis.slugs import CauseSlug, RuleSlug
from devtrace.source.defuse import values_given
from devtrace.source.kinds import users_file
from devtrace.source.matching import called_name, called_names, calls_in, names_in
from devtrace.source.object_walk import registered
from devtrace.source.vocabulary import MAKES
from devtrace.trace.ids import NO_SITE, SiteId
from devtrace.words.catalogue import family, one_after_another, sentence, unnamed
from devtrace.words.text_format import one_line

LONGEST_CHAIN: Final = 8
Birth = Callable[[MismatchCase], Site | None]
_BY_HOOKS: Final[tuple[CauseSlug, ...]] = ("attached-after-move", "not-registered")
"""Causes whose moves and attachments the hooks see, recorded or not."""


def explained(case: MismatchCase, rule: RuleSlug, find_birth: Birth = lambda case: None) -> Finding:
    """Return the finding; `find_birth` may tell where a tensor was made whose creation nobody recorded."""
    queries, mismatch = case.queries, case.mismatch
    verdict = find_verdict(case)
    expressions = list(map(one_line, _expressions(case)))
    names = candidate_names(case, verdict, expressions)
    likely_birth = _birth_elsewhere(case, names) or find_birth(case) if verdict.born < 0 else None
    saw_hooks = verdict.kind in _BY_HOOKS and queries.certainty(case.row) == "seen"
    if likely_birth is not None or not (queries.evidence.saw_ops or saw_hooks):
        verdict = replace(verdict, certainty="inferred")
    fix = Search(case, verdict, find_verdict).fix()
    is_of_source = verdict.name not in (NO_PATH, *case.names)  # the cause is about another tensor
    operand = next(iter([*(name.text for name in case.names), *expressions]), "") if is_of_source else None
    return Finding(
        rule=rule,
        **of_error(queries, case.op),
        cause=verdict.cause,
        devices=tuple(filter(None, (case.expected_trait, case.odd_trait))),
        culprit=_culprit(case, verdict, names, likely_birth),
        bytes=queries.trace.tensors.number("bytes", mismatch.odd_tensor),
        message=message(case, verdict, names[0] if names else "", operand),
        help=fix.help,
        edits=fix.edits,
        others=fix.others,
        trains=fix.trains,
    )


def candidate_names(case: MismatchCase, verdict: Verdict, expressions: list[str]) -> list[str]:
    """Return all possible names, best first: of the cause's tensor, of the odd one, of its sources."""
    tensors = case.queries.trace.tensors
    arguments = {key for each in case.moment.frames[:1] for key in each.f_code.co_varnames[: each.f_code.co_argcount]}
    items = [name for name in case.names if name.listed and name.frame == 0 and name.references[0].key in arguments]
    of_cause = [verdict.name.text] if verdict.name not in items else []
    of_odd_tensor = [name.text for name in case.names if name not in items]
    operands = [name.text for name in items]  # of what the failing function was handed: `tensors[1]`
    roots = [name.text for names in case.roots.values() for name in names]
    recorded = [str(tensors.raw("name", row)) for row in (case.odd_tensor, case.queries.base(case.odd_tensor))]
    steps = [name.last.text.lstrip(".") for name in case.names]
    of_library = [path for step in steps if "/" in step for path in (step, step.partition("/")[2])][:2]  # of Keras
    names = [*of_library, *of_cause, *of_odd_tensor, *expressions, *operands, *roots, *recorded]
    return list(dict.fromkeys(name for name in names if name)) or _names_at_the_cast(case)


def _names_at_the_cast(case: MismatchCase) -> list[str]:
    """Return the tensor's name on the line that cast it, if the failing line, as of a hook, has none."""
    maker = case.queries.op_node(case.origin.op) if case.begins_so else NOWHERE
    match maker.statement:
        case ast.Return(value=ast.expr() as value):
            return [one_line(maker.source.segment(value))]
    return assigned_names(maker)


def _expressions(case: MismatchCase) -> list[str]:
    """Return the source's names for the odd tensor: its expression on the failing line, its variable."""
    queries, tensor = case.queries, case.odd_tensor
    sources = [case.origin.row] if case.begins_so else []
    texts = [frame.code.text(node) for frame, node in odd_expression(case, *sources)][:1]
    op = queries.producer(tensor)
    maker = queries.op_node(op)
    if not queries.are_of_one_statement(op, case.op):
        outputs = queries.outputs(op)
        index = outputs.index(tensor) if tensor in outputs else 0
        is_call = bool(called_name(maker.node)) and maker.source.parent(maker.node) is not maker.statement
        return [*texts, *(assigned_names(maker, index) or ([maker.source.segment(maker.node)] if is_call else []))]
    is_part = queries.op_node(case.op).node is not maker.node and isinstance(maker.node, ast.expr)
    return [*texts, maker.source.segment(maker.node)] if is_part else texts


def _birth_elsewhere(case: MismatchCase, names: list[str]) -> Site | None:
    """Return the line of a cell that was not recorded, or of an imported file, which ran before."""
    of_files = [name for name in case.names if any(map(users_file, name.objects))]
    return _birth_in_an_untraced_cell(case, names) or birth_by_name(case, of_files)


def _birth_in_an_untraced_cell(case: MismatchCase, names: list[str]) -> Site | None:
    """Return the statement of an earlier, untraced cell that makes the named tensor."""
    frames = case.moment.frames
    if not frames or not names or case.origin.arrival != "given":
        return None
    module = modules.named(case.queries, names[0].rpartition(".")[0])
    attributes = (name.last for name in case.names if name.text == names[0] and name.last.kind == "attribute")
    of_object = next((type(reference.owner).__name__ for reference in attributes), "")
    kind = str(case.queries.trace.modules.raw("type", module)) if module >= 0 else of_object
    return birth(case.queries.snapshot.cells, frames[-1].f_code.co_filename, names[0], kind)


def birth_by_name(case: MismatchCase, names: Iterable[AccessPath]) -> Site | None:
    """Return the line that gave a tensor one of its names, as `x = load(file)`."""
    names = sorted(names, key=lambda name: len(name.references))
    is_of_layers = any(any(name.modules()) for name in names)
    for name in names:
        step = next((step for step in name.references if users_file(step.owner)), name.last)
        setter = only_assignment(case.queries, step.owner, step.key) if step.kind == "attribute" else NOWHERE
        if setter is not NOWHERE and (step is name.last or not called_names(setter.statement).isdisjoint(MAKES)):
            return setter.code.site_of(setter.statement)
        binding = case.binding_of(name, unmoved=True) if step.kind != "attribute" else None
        if binding is None:
            continue
        frame, statement = binding
        value = values_given(frame.source, statement).get(name.texts[0])
        passes_on = isinstance(statement, ast.For) or not [*calls_in(statement)]  # such a line makes no layer
        if not (passes_on and is_of_layers) and not isinstance(value, ast.Subscript | ast.DictComp):
            return frame.code.site_of(statement)
    return None


def _culprit(case: MismatchCase, verdict: Verdict, names: list[str], likely_birth: Site | None) -> Culprit:
    queries = case.queries
    row = case.moment.row(verdict.name.last.value)
    return as_culprit(
        queries,
        case.odd_tensor if row is None else row,
        names or [unnamed()],
        statement_site(queries, verdict.born) or likely_birth,
        moved=statement_site(queries, verdict.moved),
        chain=_chain(case),
        certainty=verdict.certainty,
        **{queries.by.name: case.odd_trait},
    )


def _chain(case: MismatchCase) -> tuple[Site, ...]:
    """Return the lines that the tensor came by, from birth to use."""
    queries = case.queries
    sites = [queries.born(row) for row in reversed(case.origin.path)]
    if sites and queries.package(sites[0]):
        sites.insert(0, queries.user(sites[0]))  # the user's line that led there
    sites += [package_line_with_the_owner(case), queries.op_site(case.op)]
    steps = [_loaded_from(case), *(statement_site(queries, id) for id in sites)]
    lines = {(step.file, step.line): step for step in steps if step is not None}
    return tuple(lines.values())[-LONGEST_CHAIN:]


def _loaded_from(case: MismatchCase) -> Site | None:
    """Return the line that loaded `saved` of `optimizer.load_state_dict(saved)`: `saved = torch.load(f)`."""
    frame, calls = frame_at(case, case.born), calls_in(case.queries.source_node(case.born).statement)
    call = next((call for call in calls if called_name(call) == "load_state_dict" and call.args), None)
    if call is None:
        return None
    setters = [statement for variable in names_in(call.args[0]) for statement in frame.bindings(variable)[-1:]]
    return frame.code.site_of(setters[0]) if setters else None


# Its sentences: which tensor is where, and why it did not come along.


def message(case: MismatchCase, verdict: Verdict, name: str, operand: str | None) -> str:
    """Say where the odd tensor and the others are, then why.

    `name` is that of the tensor which the cause is about; `operand` that of the odd tensor, if it was computed from it.
    """
    siblings, where = _siblings(case, verdict, name), {"odd": case.odd_trait}
    rest = _others(case, verdict, 1 + len(siblings))
    if operand is not None:
        first = sentence("mismatch.computed", operand=operand, name=name, rest=_other_inputs(case), **where)
    elif siblings:
        first = sentence("mismatch.tensors", name=name, sibling=siblings[0], rest=rest, **where)
    else:
        first = sentence("mismatch.tensor", name=name, rest=rest, **where)
    reason = _reason(case, verdict)
    parts = (first, reason, _intent(case, verdict), _hook(case), _replica(case), _package(case), _phase(case))
    return one_after_another(parts)


def _reason(case: MismatchCase, verdict: Verdict) -> str:
    """Say why; of what was read from the source of a program that nobody recorded say once that it is probable."""
    if case.queries.evidence.saw_ops or verdict.certainty == "seen" or case.mismatch.of == "copy":
        return ordered.reason(case, verdict)
    reason = ordered.reason(case, replace(verdict, certainty="seen"))
    return sentence("explained.probably", reason=reason) if reason else ""


def _siblings(case: MismatchCase, verdict: Verdict, name: str) -> list[str]:
    """Return the last steps to other odd inputs that the same owner holds: `.bias` beside `model.head.weight`."""
    path = next((path for path in (verdict.name, *case.names) if path.text == name), NO_PATH)
    others = [names[0] for row in case.mismatch.others_of_odd_trait if (names := case.moment.names(row))]
    owner, _ = _owner_and_step(path)
    steps = (_owner_and_step(other) for other in others if other.text != name and owner)
    return [step for owner_of_other, step in steps if owner_of_other == owner]


def _owner_and_step(path: AccessPath) -> tuple[str, str]:
    """Return `model.head` and `.weight`; of an item `states["a.b"]` the variable, and all of it."""
    last = max((index for index, text in enumerate(path.texts) if text.startswith(".")), default=0)
    owner, step = "".join(path.texts[:last]), "".join(path.texts[last:])
    return (owner, step) if last else (path.texts[0] if len(path.texts) > 1 else "", step)


def _others(case: MismatchCase, verdict: Verdict, named: int) -> str:
    """Say where the rest of the module is: "the others", if all but the named tensors are there."""
    there = verdict.others if verdict.cause != "not-registered" and case.mismatch.of == "inputs" else 0
    if verdict.module is NO_PATH or not there:
        return _other_inputs(case)
    elsewhere = sum(1 for _ in registered(verdict.module.last.value)) - there
    key = "mismatch.module-in-part" if elsewhere > named else "mismatch.module"
    return sentence(key, count=there, module=verdict.module.text, expected=case.expected_trait)


_REFUSED: Final = family(
    "mismatch.*", "mismatch.gradient", "mismatch.copy", "mismatch.index", "mismatch.byte", "mismatch.mask",
    "mismatch.float", "mismatch.single", "mismatch.result", "mismatch.gradients", "mismatch.numpy",
    "mismatch.complex", "mismatch.copy-somewhere", "mismatch.number-somewhere", "mismatch.whole-somewhere",
)  # fmt: skip


def _other_inputs(case: MismatchCase) -> str:
    """Say where the other inputs are, or what else torch refused."""
    if case.mismatch.of != "inputs":
        if not case.expected_trait or case.mismatch.of == "number":
            return sentence(_REFUSED[f"{case.mismatch.of}-somewhere"])
        return sentence(_REFUSED[case.mismatch.of], expected=case.expected_trait)
    expected = [row for row in case.queries.inputs(case.op) if case.is_expected(row)]
    return sentence("mismatch.inputs", count=len(set(expected)), expected=case.expected_trait)


def _intent(case: MismatchCase, verdict: Verdict) -> str:
    """Quote what says that the CPU is meant; where nothing says which device is, say what put the others elsewhere."""
    words = case.mismatch.words
    if words is not None:
        return sentence("mismatch.asked", expected=case.expected_trait, line=words, text=one_line(words.text))
    stayed_whole = verdict.kind == "never-moved" and verdict.module is not NO_PATH and not verdict.others
    if not case.mismatch.is_undecided or not stayed_whole:
        return ""
    rows = (row for row in case.queries.inputs(case.op) if case.is_expected(row))
    origins = (find_origin(case.queries, row) for row in rows)
    sent = next((origin for origin in origins if origin.arrival in ("copied", "made-there")), None)
    site = statement_site(case.queries, case.queries.born(sent.row)) if sent is not None else None
    if site is None:
        return ""
    text = one_line(site.text)
    return sentence("mismatch.either", odd=case.odd_trait, line=site, expected=case.expected_trait, text=text)


def _hook(case: MismatchCase) -> str:
    """Say that a hook of the module that owns the tensor brought the others to where they are."""
    hooked = case.hooked() if case.mismatch.of == "inputs" and case.odd_trait != META else ()
    owner = next((owner for _, owner, hook in hooked if hook.stay and hook.device == case.expected_trait), None)
    return sentence("mismatch.hook", module=owner.text, expected=case.expected_trait) if owner is not None else ""


def _replica(case: MismatchCase) -> str:
    """Say that all replicas of DataParallel share the tensor, if the op failed in one."""
    if not case.in_a_replica:
        return ""
    where = {"expected": case.expected_trait, "thread": case.queries.trace.ops[case.op].thread.name}
    holders = (name.last.owner for name in case.names if name.last.kind == "attribute")  # of which there is one
    kind = next((type(each).__name__ for each in holders), "")
    return sentence("mismatch.replica-object", kind=kind, **where) if kind else sentence("mismatch.replica", **where)


def _package(case: MismatchCase) -> str:
    """Name the package whose line failed, and the user's line that led there."""
    site = case.queries.trace.ops[case.op].site
    if site is None or not site.package:
        return ""
    line = package_line_with_the_owner(case)
    owner = case.queries.trace.sites[line] if line >= 0 else None
    if owner is not None:
        owner_line = {"owner": Site.of(owner), "owner_text": one_line(owner.text)}
        failed = sentence("mismatch.package-owner", package=site.package, **owner_line)
    else:
        failed = sentence("mismatch.package", package=site.package)
    if not site.caller:
        return failed
    caller = Site.of(site.caller)
    entered = sentence("mismatch.package-entered", caller=caller, text=one_line(caller.text))
    return one_after_another((failed, entered))


def package_line_with_the_owner(case: MismatchCase) -> SiteId:
    """Return the site in the class that holds the tensor, or -1, where a package computes further in.

    Example: `ops.matmul(inputs, self.kernel)` of a layer of Keras.
    """
    holders = {type(value).__name__ for name in case.names for value in name.objects[:-1]}
    failed, snapshot = case.queries.op_site(case.op), case.queries.snapshot
    for site_id in (failed, *map(SiteId, (*snapshot.around, *snapshot.sites))):
        site = case.queries.trace.sites[site_id]
        if site.function.rpartition(".")[0] in holders:
            return site_id if site.package and site_id != failed else NO_SITE
    return NO_SITE


def _phase(case: MismatchCase) -> str:
    """Say that only evaluation reached the line, if so."""
    ops = case.queries.trace.ops
    earlier_ops = slice(case.op)
    trained = case.queries.is_phase("backward")[earlier_ops].any()
    trained_here = ops.ints("grad")[earlier_ops][ops.ints("site")[earlier_ops] == ops.number("site", case.op)].any()
    calls = case.queries.trace.calls
    begun = np.flatnonzero(calls.ints("begin") <= case.op)
    is_evaluating = bool(len(begun)) and calls.number("training", int(begun[-1])) == 0
    if trained and not trained_here and not ops.number("grad", case.op) and is_evaluating:
        return sentence("mismatch.evaluation")
    return ""
