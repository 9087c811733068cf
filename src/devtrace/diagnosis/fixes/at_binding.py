"""Moves a variable's value where it is assigned: in the expression, below the line, at the top of the loop."""

import ast
from collections.abc import Iterator
from typing import Final

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence import origins
from devtrace.diagnosis.evidence.access_paths import AccessPath
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.mismatch_case import MismatchCase, Verdict
from devtrace.diagnosis.evidence.source_text import given_in_cells, site_in_cell
from devtrace.diagnosis.evidence.trace_queries import NOWHERE
from devtrace.diagnosis.fixes import devices
from devtrace.diagnosis.fixes.changes import Anchor, EachOf, OwnLines, Proposal, Within, lines_that_ran, of_binding
from devtrace.diagnosis.fixes.fix import Fix, is_assignable, reads, registering_root, siblings_of_odd_trait
from devtrace.diagnosis.fixes.pass_device_to_factory import pass_device_to_factory
from devtrace.diagnosis.fixes.replay import is_combined
from devtrace.source import kinds
from devtrace.source.defuse import loops_around, targets, values_given
from devtrace.source.matching import alone, assigned_names, called_name, match_code, nodes_of, only
from devtrace.source.object_walk import is_tensor, items_of
from devtrace.source.parsing import own_name, parse
from devtrace.source.safe_values import evaluate
from devtrace.source.vocabulary import MAKES, full_name, is_move

_OF_TORCH: Final = ("torch", "torch.nn.functional")
FEW: Final = 3
"""So many items of a dict get a line each, which leaves it the same dict."""


def move_below_binding(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Move what holds the odd part, `model.to(device)` below `model = build()`, or a batch's item atop its loop."""
    for name in [verdict.name, *case.names, *(root for names in case.roots.values() for root in names)]:
        if len(name.references) < 2 or _made_in_a_call(case, name):
            continue
        (_, binding), move = case.binding_of(name) or (None, None), case.queries.source_node(verdict.moved)
        moves_there = binding is not None and binding is move.statement
        if verdict.kind == "attached-after-move" and moves_there:  # the odd part was attached later
            continue
        for names in ([name, *siblings_of_odd_trait(case, name)], [name]):
            yield from _moves_at_binding(case, name, _names_to_move(case, names))


def _moves_at_binding(case: MismatchCase, name: AccessPath, names: list[AccessPath]) -> Iterator[Fix]:
    places = of_binding(case.frame_of(name), name.references[0].text) if names else ()
    for anchor in filter(None, (_anchor_once_filled(case, name, place) for place in places)):
        value = getattr(anchor.node, "value", None)
        is_empty = any(match_code(empty, value) is not None for empty in ("{}", "[]", "dict()", "list()"))
        is_filled_later = names[0].last.kind == "item" and is_empty
        is_of_a_forward = anchor.kind == "top" and _moves_parts_of_its_module(anchor, names[0])
        if anchor.kind != "at" and _is_in_every_round(anchor, names[0]) and not (is_filled_later or is_of_a_forward):
            key = "fixed.top-of-block" if anchor.kind == "top" else "fixed.below-line"
            proposal = _as_container(case, anchor, names) or Proposal(anchor, OwnLines.of(*names))
            yield from proposal.fixes(key, anchor.moved(case, *names))


def _moves_parts_of_its_module(anchor: Anchor, name: AccessPath) -> bool:
    """Return whether a method of a module goes through its layers: `for layer in self.layers`, in each call."""
    owner = anchor.frame.variables.get(own_name(anchor.code.source, anchor.node)) if anchor.frame is not None else None
    return kinds.is_module(name.objects[0]) and kinds.is_module(owner)


def _made_in_a_call(case: MismatchCase, name: AccessPath) -> bool:
    """Return whether a module's call made the named tensor, as a cache; a lazy parameter existed before."""
    row = case.moment.row(name.last.value)
    if row is None or (name.last.kind in ("parameter", "buffer") and origins.was_materialized(case.queries, row)):
        return False
    return case.queries.module(case.queries.producer(case.queries.base(row))) >= 0


def _is_in_every_round(anchor: Anchor, name: AccessPath) -> bool:
    """Return whether every round of a loop has the named object: all items are of one class.

    Batches of a loader are assumed to be alike.
    """
    if anchor.frame is None or not isinstance(anchor.node, ast.For):
        return True
    match = match_code("enumerate($items)", anchor.node.iter) or match_code("reversed($items)", anchor.node.iter)
    items = evaluate(match["items"] if match is not None else anchor.node.iter, anchor.frame.scope())
    if type(items) not in (list, tuple) or len(name.references) == 1:
        return True
    return len({type(item) for item in items}) == 1


def _anchor_once_filled(case: MismatchCase, name: AccessPath, anchor: Anchor) -> Anchor | None:
    """Return the anchor, or one below `optimizer.load_state_dict(saved)`, if that line of its block made the tensor.

    None if a branch in a loop did: `state["row"]` of one round may not be there in another. A module can move all the
    same.
    """
    row, frame, source = case.moment.row(name.last.value), anchor.frame, anchor.code.source
    birth = case.queries.source_node(case.queries.born(case.queries.base(row))) if row is not None else NOWHERE
    if frame is None or birth is NOWHERE:
        return anchor
    fallback = anchor if registering_root(case, name) is not None else None
    branches = [*only(ast.If, birth.source.up_to(birth.statement, birth.function or birth.source.tree))]
    if branches and source.parent(anchor.node) in loops_around(source, anchor.node):
        return fallback
    for statement in lines_that_ran(frame, birth.code.site):
        if anchor.line < source.span(statement).line < frame.line:
            block = anchor.node if anchor.kind == "top" else source.parent(anchor.node)
            if source.parent(statement) is not block:
                return fallback
            return Anchor(anchor.code, statement, "below", frame) if alone(statement) is not None else anchor
    return anchor


def _names_to_move(case: MismatchCase, names: list[AccessPath]) -> list[AccessPath]:
    """Return `[model]` for `model.layer.weight` and its siblings, else the tensors; none if code cannot assign them."""
    root = registering_root(case, names[0])
    if root is not None:
        return [root] if root.code else []
    return [name for name in names if name.code] if is_assignable(names[0]) else []


def _as_container(case: MismatchCase, anchor: Anchor, names: list[AccessPath]) -> Proposal | None:
    """Return the one line that moves all items of a list, tuple or dict, if all of them stayed behind."""
    owner = names[0].prefix(len(names[0].references) - 1) if len(names) > 1 else None
    if owner is None or names[0].last.kind != "item" or not owner.code or not is_assignable(owner):
        return None
    value = names[0].last.owner
    if any(case.odd_row(item) is None for item in items_of(value)) or (type(value) is dict and len(value) <= FEW):
        return None
    proposal = Proposal(anchor, EachOf(owner.code, value))
    return proposal if proposal.code else None


def move_where_made(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Turn `kernel = tapered(size)` into `kernel = tapered(size).to(signal.device)`.

    Of `mu, nu = uniform(n), uniform(m)` both are moved, where both stayed behind; below it of `cos, sin = table(n)`.
    """
    for name, frame, anchor in _binding_places(case, case.names[::-1]):
        names, values = _moved_along(case, name, frame, anchor), values_given(frame.source, anchor.statement)
        nodes = [values[path.text] for path in names if path.text in values]
        odd = case.queries.trait(case.odd_tensor)
        if anchor.kind == "at" and not case.queries.by.excludes(nodes[0], frame.scope(), odd):
            if _is_made_each_round(anchor):
                yield from pass_device_to_factory(case, verdict)
            line = frame.source.span(anchor.statement).line
            device_codes = tuple(frame.device_code(line, node) for node in nodes)
            change = Within(tuple(nodes), device_codes) if all(device_codes) else Within(tuple(nodes[:1]))
            proposal = Proposal(anchor, change, device_codes[0], target=f"{name.text} = ")
            yield from proposal.fixes("fixed.where-made", anchor.moved(case, *names[: len(change.nodes)]))
        elif isinstance(anchor.node, ast.Assign) and not nodes and len(names) > 1:
            device = frame.device_code(anchor.line + 1, anchor.node) or anchor.device
            proposal = Proposal(anchor, OwnLines.of(*names), device)
            yield from proposal.fixes("fixed.below-line", anchor.moved(case, *names), code="; ".join(proposal.texts))


def move_in_its_cell(case: MismatchCase, verdict: Verdict) -> Iterator[Fix]:
    """Write `target = QNet().to(device)` in the cell that made it. No frame runs that any more."""
    cells, running = case.queries.snapshot.cells, [frame.f_code.co_filename for frame in case.moment.frames[-1:]]
    for name in case.names:
        root, paths = name.texts[0], _names_to_move(case, [name])
        found = given_in_cells(cells, root) if case.moment.namespace.get(root) is name.objects[0] and paths else None
        if found is None or found[0].file in running:
            continue
        cell, source, binding = found
        value, (path,), is_module = binding.own, paths, kinds.is_module(paths[0].last.value)
        code = Code(source, site_in_cell(cell, source, binding.statement))
        device = devices.in_cell(case, cell, source.span(binding.statement).line)
        if path.text != root and is_module:
            anchor = Anchor(code, binding.statement, "below")
            yield from Proposal(anchor, OwnLines.of(path), device).fixes("fixed.below-line", anchor.moved(case, path))
        elif path.text == root and value is not None and (is_module or _is_only_computed_with(case, root)):
            anchor = Anchor(code, value, "at")
            proposal = Proposal(anchor, Within((value,)), device, target=f"{root} = ")
            yield from proposal.fixes("fixed.where-made", anchor.moved(case, path))


def _is_only_computed_with(case: MismatchCase, variable: str) -> bool:
    """Return whether the notebook's cells only compute with a variable: nothing else of them needs it on the CPU."""
    namespace = case.moment.namespace
    for source in filter(None, (parse(cell.text, cell.file, cell.first) for cell in case.queries.snapshot.cells)):
        for node in reads(source.tree, variable):
            calls = only(ast.Call, source.ancestors(node))
            takers = (call for call in calls if not any(inner is node for inner in ast.walk(call.func)))
            are_torchs = (full_name(call.func, source, namespace).rpartition(".")[0] in _OF_TORCH for call in takers)
            is_kept = isinstance(source.parent(node), ast.stmt | ast.List | ast.Tuple | ast.Dict)
            if is_kept or not is_combined(node, source) or not all(are_torchs):
                return False
    return True


def _is_made_each_round(anchor: Anchor) -> bool:
    """Return whether a factory's call is the value in each round of a loop, where a move would cost a copy each.

    Lines beside it may move what they make all the same.
    """
    source = anchor.code.source
    calls = nodes_of(ast.Call, *source.block(anchor.statement))
    is_made_in_a_loop = called_name(anchor.node) in MAKES and loops_around(source, anchor.statement) != []
    return is_made_in_a_loop and not any(is_move(called_name(call)) for call in calls)


def _binding_places(case: MismatchCase, names: list[AccessPath]) -> Iterator[tuple[AccessPath, FailingFrame, Anchor]]:
    """Yield the variables that are the odd tensor, each with its frame and the places where it got its value."""
    for name in (path for path in names if len(path.references) == 1):
        frame = case.frame_of(name)
        anchors = of_binding(frame, name.text, before=frame.source_node.statement)
        yield from ((name, frame, anchor) for anchor in anchors)


def _moved_along(case: MismatchCase, name: AccessPath, frame: FailingFrame, anchor: Anchor) -> list[AccessPath]:
    """Return `mu` and `nu` of `mu, nu = uniform(n), uniform(m)`: a variable, and those that need the same move.

    Only computations read them. If an op refuses a dtype as such, only views of the same tensor move along.
    """
    names, value = [name], getattr(anchor.statement, "value", None)
    is_unpacked = value is not None and is_tensor(evaluate(value, frame.scope()))  # `src, dst = graph.edges`
    for other in dict.fromkeys(assigned_names(*(target.node for target in targets(anchor.statement)))):
        row = case.odd_row(frame.variables.get(other))
        uses = reads(anchor.node if anchor.kind == "top" else frame.body, other)
        if row is None or case.queries.dims[row] == 0 or not uses or other == name.text:
            continue  # a single number may stay behind, and what nothing reads
        is_another_tensor = case.mismatch.of != "inputs" and case.queries.base(row) != case.base and not is_unpacked
        if not is_another_tensor and all(is_combined(use, frame.source) for use in uses):
            paths = case.moment.names(row)
            names += [path for path in paths if path.text == other and path.frame == frame.number][:1]
    return names
