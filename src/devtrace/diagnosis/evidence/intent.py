"""The device that the user means where CPU and accelerator mix: by the user's own code.

    loaded = SAC.load(path, device="cpu")      the owner of the CPU's parameters was told so
    device = "cpu"                             all variables that name a device name this one
    state = torch.zeros(n).cuda()              a module that computes on the CPU put this there itself

Of two accelerators it is the one that the program's variables name, if a package or a bare `.cuda()` chose the other.
Else the accelerator is meant: whoever moves anything there wants to compute there.
"""

import ast
from collections.abc import Iterator
from dataclasses import replace

from devtrace.diagnosis.evidence import access_paths
from devtrace.diagnosis.evidence.failing_moment import FailingMoment
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.mismatch import Mismatch, combined, not_of_the_module, rarest_of_recent_ops, turned
from devtrace.diagnosis.evidence.moves import move_of
from devtrace.diagnosis.evidence.origins import find_origin
from devtrace.diagnosis.evidence.trace_queries import HOST, META, NOWHERE, TraceQueries
from devtrace.diagnosis.findings import Site
from devtrace.source import kinds
from devtrace.source.defuse import path_of
from devtrace.source.matching import called_name, calls_in, given_trait, keyword, match_code, nodes_of, only, owner_of
from devtrace.source.parsing import NamedFunction, defaults
from devtrace.source.safe_values import evaluate, instance_dict
from devtrace.source.vocabulary import is_move
from devtrace.trace.ids import TensorId


def intended(queries: TraceQueries, moment: FailingMoment, mismatch: Mismatch) -> Mismatch:
    """Return the mismatch with the accelerator as the odd device, if the user's code asks for the CPU and no other."""
    if HOST not in (mismatch.odd_trait, mismatch.expected_trait) and mismatch.odd_trait != META:
        return _among_accelerators(queries, moment, mismatch)
    if mismatch.odd_trait != HOST or move_of(queries, mismatch.odd_tensor) is not None:
        return mismatch
    if moment.hooks:
        return mismatch  # modules that hooks take to the accelerator only wait on the CPU
    frames = FailingFrame.all_of(moment, HOST)
    named = [device_and_site for frame in frames for device_and_site in _named_by_variables(frame)]
    if any(device != HOST for device, _ in named):
        return mismatch
    words = next(_owners_asked_for_the_cpu(moment, mismatch), None)
    if words is None and any(map(_objects_name_an_accelerator, frames)):
        return mismatch
    if words is None and named:
        _, words = named[-1]
    running = [owner for frame in frames if kinds.is_module(owner := frame.variables.get(frame.own))]
    runs_on_accelerator = any(moment.trait_of(module) == mismatch.expected_trait for module in running)
    if words is None and not runs_on_accelerator:
        words = _asks_beside_a_default(queries, mismatch)
    if words is not None or (not runs_on_accelerator and _is_alone_on_its_device(queries, mismatch)):
        return turned(queries, mismatch, words)
    return replace(mismatch, is_undecided=bool(frames))


def _among_accelerators(queries: TraceQueries, moment: FailingMoment, mismatch: Mismatch) -> Mismatch:
    """Return the mismatch with one accelerator as expected: the only one that the program's variables name.

    No code of the program may name the other.
    """
    frames = FailingFrame.all_of(moment, "")
    named = {device for frame in frames for device, _ in _named_by_variables(frame) if ":" in device}
    if named not in ({mismatch.odd_trait}, {mismatch.expected_trait}):
        return mismatch
    meant, files = named.pop(), [frame.code.site.file for frame in frames]
    rows = [row for row in combined(queries, mismatch.op) if queries.device(row) != meant]
    unnamed = all(_came_unnamed(queries, row, meant, files[-1]) for row in rows)
    if not unnamed and not _came_by_one_literal(queries, rows, files):
        return mismatch
    return replace(turned(queries, mismatch, None) if meant == mismatch.odd_trait else mismatch, is_meant=True)


def _came_unnamed(queries: TraceQueries, row: TensorId, meant: str, program: str) -> bool:
    """Return whether a tensor got to its device by a package's code, or a bare `.cuda()`: the program does not name it.

    A parameter must have come from the intended device; any other tensor must not.
    """
    move = move_of(queries, row)
    of_a_module = queries.is_of_a_module(queries.base(row))
    if of_a_module and (move is None or queries.device(move.source) != meant):
        return False
    if not of_a_module and meant in {queries.device(past) for past in queries.ancestors(row)}:
        return False
    mover = queries.source_node(move.site if move is not None else queries.op_site(find_origin(queries, row).op))
    is_bare = match_code("$x.cuda()", mover.node) is not None
    return mover is not NOWHERE and (mover.code.site.file != program or is_bare)


def _came_by_one_literal(queries: TraceQueries, rows: list[TensorId], files: list[str]) -> bool:
    """Return whether a single literal in the program sent tensors to their device, while results end elsewhere.

    A program that means both devices names each more than once.
    """
    moves = {move.site for row in rows if (move := move_of(queries, row)) is not None}
    origins = {queries.op_site(find_origin(queries, row).op) for row in rows}
    sites = list(moves or origins)
    place = queries.source_node(sites[0]) if len(sites) == 1 else NOWHERE
    if place.code.site.file not in files:
        return False
    body, device = place.function or place.source.tree, queries.device(rows[0])
    literals = [node for node in nodes_of(ast.Constant, body) if node.value == device]
    return len(literals) == 1 and literals[0] in ast.walk(place.statement)


def _asks_beside_a_default(queries: TraceQueries, mismatch: Mismatch) -> Site | None:
    """Return the line that asks for the CPU, where only a default device put tensors on the accelerator.

    torch.set_default_device("cuda")
    shift = torch.tensor(angles)                    # on cuda: nothing asked for that
    frame = torch.zeros(3, device=self.device)      # on the CPU: `self.device` says so
    """
    rows = [row for row in queries.inputs(mismatch.op) if queries.device(row) == mismatch.expected_trait]
    arrivals = {find_origin(queries, row).arrival for row in rows}
    owned = any(queries.is_of_a_module(past) for row in rows for past in queries.ancestors(row))
    odd_origin = find_origin(queries, mismatch.odd_tensor)
    is_by_default = arrivals == {"made"} and not owned and odd_origin.arrival == "made-there"
    return queries.site(queries.op_site(odd_origin.op)) if is_by_default else None


def _is_alone_on_its_device(queries: TraceQueries, mismatch: Mismatch) -> bool:
    """Return whether a module put the accelerator's tensor there itself, and works mostly on the CPU."""
    accelerator = mismatch.expected_trait
    rows = [row for row in queries.inputs(mismatch.op) if queries.device(row) == accelerator]
    origins = [find_origin(queries, row) for row in rows]
    if not any(queries.module(origin.op) >= 0 for origin in origins):
        return False
    if not_of_the_module(queries, mismatch.op, [HOST, accelerator]) == HOST:
        return False
    return rarest_of_recent_ops(queries, mismatch.op, [HOST, accelerator]) == accelerator


def _owners_asked_for_the_cpu(moment: FailingMoment, mismatch: Mismatch) -> Iterator[Site]:
    """Yield `model = load(path, device="cpu")`, if the odd tensor is a parameter or buffer of `model`."""
    for name in moment.names(mismatch.odd_tensor):
        frame = FailingFrame.of(moment, name.frame, HOST)
        is_owned = name.last.kind in ("parameter", "buffer")
        for statement in only(ast.Assign, frame.bindings(name.references[0].text)[-1:] if is_owned else ()):
            if any(map(frame.names_expected_trait, filter(None, map(given_trait, calls_in(statement))))):
                yield frame.code.site_of(statement)


def _named_by_variables(frame: FailingFrame) -> Iterator[tuple[str, Site]]:
    """Yield "cpu" and the line `device = "cpu"`: the devices that variables name, with the assignment or running line.

    A parameter with a default may have been forgotten.
    """
    with_default = dict(defaults(frame.function)) if isinstance(frame.function, NamedFunction) else {}
    for variable, (value, _) in access_paths.roots(frame.moment.frames[frame.number]).items():
        device, name = kinds.device_named_by(value), variable.lower()
        is_for_any = "dev" in name and "cpu" not in name and "host" not in name  # `device`, and not `cpu_device`
        if device and variable not in with_default and (is_for_any or _goes_to(frame, variable, device)):
            yield device, frame.code.site_of([frame.source_node.statement, *frame.bindings(variable)][-1])


def _goes_to(frame: FailingFrame, variable: str, device: str) -> bool:
    """Return whether a variable is used as the device of a factory, or of a module's or tensor's move.

    For the CPU only modules count: data begin there, and results end there.
    """
    for call in calls_in(frame.body):
        owner = owner_of(call)
        if device != HOST and path_of(keyword(call, "device") or call) == variable:
            return True
        moves_there = is_move(called_name(call)) and variable in map(path_of, call.args[:1])
        counts = device != HOST or (owner is not None and kinds.is_module(evaluate(owner, frame.scope())))
        if owner is not None and moves_there and counts:
            return True
    return False


def _objects_name_an_accelerator(frame: FailingFrame) -> bool:
    """Return whether an attribute of a variable's object names an accelerator: `args.device`."""
    return any(
        kinds.device_named_by(value) not in ("", HOST) and (type(value) is not str or "dev" in str(key).lower())
        for owner in frame.variables.values()
        for key, value in instance_dict(owner).items()
    )
