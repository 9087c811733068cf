"""What releases memory: edits where the source shows what is meant, else advice.

What nobody needs any more comes first, however large the rest is: graphs through which no backward pass will run,
frames of an error, results of cells, a checkpoint that was loaded, a model of before.
"""

import ast
import gc
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any, Final

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.failing_moment import FailingMoment
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Edit
from devtrace.memory.holdings import Group, Memory
from devtrace.memory.retaining_line import WRITTEN, Keeper, parts_of
from devtrace.source.defuse import LOOPS, path_of, read_first, read_in, targets
from devtrace.source.kinds import is_module, is_optimizer, is_trained_leaf, requires_grad
from devtrace.source.matching import called_name, called_names, calls_in, listed, names_in, nodes_of, owner_of, variable
from devtrace.source.object_walk import is_tensor, may_lead, parameters_of, registered
from devtrace.source.parsing import Source
from devtrace.source.safe_values import Scope, evaluate
from devtrace.source.stand_ins import Frame
from devtrace.source.vocabulary import OF_BATCHES
from devtrace.trace.ids import NO_TENSOR, OpId, TensorId
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import short_op_name

Remedy = tuple[str, tuple[Edit, ...]]


def remedies(memory: Memory, moment: FailingMoment) -> Iterator[Remedy | None]:
    """Yield what may help: first against memory that is held for nothing, then against the largest part of the rest."""
    waste = (group for group in memory.worth if group.kind in ("graph", "traceback", "history"))
    yield from (BY_KIND[group.kind](memory, group) for group in waste)
    yield load_to_the_host(memory)
    yield compute_without_graph(memory, moment)
    yield delete_unread(memory, moment)
    yield work_in_chunks(memory)
    yield avoid_float_copy(memory)
    yield from (keep_copies_on_the_host(memory, group) for group in memory.worth if group.kind == "parameter")
    for group in sorted(memory.worth, key=lambda group: not _collects(memory, group)):
        if group.kind == "named":
            yield keep_on_the_host(memory, group)
        elif group.kind == "activation":
            of_values = (other for other in memory.groups if other.kind in ("named", "activation"))
            yield backward_each_round(map(memory.keeper, of_values))
        elif group.kind in ("parameter", "gradient", "optimizer-state"):
            yield sentence("out-of-memory.help-optimizer"), ()
    yield sentence("out-of-memory.help"), ()


def _collects(memory: Memory, group: Group) -> bool:
    keeper = memory.keeper(group) if group.kind == "named" and group.is_contained else None
    return keeper is not None and keeper.adds


# What a name keeps for nothing.


def drop_graphs(memory: Memory, group: Group) -> Remedy:
    """Keep the numbers and not the graphs: `losses.append(loss.detach())`."""
    keeper, edit = memory.keeper(group), None
    if keeper is not None and keeper.how == "carried" and (keeper.is_each_round_backward or not keeper.runs_backward):
        edit = _detach_state(memory, keeper, group)
    elif keeper is not None and keeper.runs_backward:
        return backward_each_round([keeper])
    elif keeper is not None:
        edit = _method_called(memory, keeper, "detach()")
    return _advice_with(group, edit, "out-of-memory.help-detach", "out-of-memory.help-graph")


def _advice_with(group: Group, edit: Edit | None, key: str, key_without: str = "out-of-memory.help-cpu") -> Remedy:
    """Return an edit with the words of `key`; the words of `key_without` if there is no edit."""
    if edit is None:
        return sentence(key_without, name=group.name), ()
    return sentence(key, name=group.name, code=edit.after.strip()), (edit,)


def backward_each_round(keepers: Iterable[Keeper | None]) -> Remedy:
    """Advise `loss.backward()` in each round, in place of one backward pass after the loop; else a smaller batch."""
    for keeper in keepers:
        if keeper is not None and keeper.has_one_backward_after_rounds:
            text = keeper.text(keeper.value)
            code = text if variable(keeper.value) or called_name(keeper.value) else f"({text})"
            return sentence("out-of-memory.help-rounds", code=code), ()
    return sentence("out-of-memory.help-activation"), ()


def _method_called(memory: Memory, keeper: Keeper, method: str) -> Edit | None:
    """Call a method on the value that is kept, `losses.append(loss.detach())`; on each tensor of `(x, y)`."""
    variables, is_written = _running_variables(memory, keeper), isinstance(keeper.value, WRITTEN)
    known = [(part, variable(part) in variables or is_written) for part in parts_of(keeper.value)]
    parts = [part for part, is_known in known if not is_known or is_tensor(variables.get(variable(part)))]
    if not parts or keeper.how == "drained" or called_names(keeper.statement) & {"extend", "update"}:
        return None
    return keeper.all_replaced([(part, keeper.called_on(part, method)) for part in parts])


def _running_variables(memory: Memory, keeper: Keeper) -> Mapping[str, Any]:
    """Return the variables of the function with the keeping statement, if it is running."""
    frame = memory.frame_of(keeper, keeper.statement)
    return frame.f_locals if frame is not None else {}


def _detach_state(memory: Memory, keeper: Keeper, group: Group) -> Edit | None:
    """Cut the graph of a state that goes from round to round, at the end of a round: `hidden = hidden.detach()`."""
    attribute = group.name.rpartition(".")[2]
    paths = (path_of(part) for target in targets(keeper.statement) for part in listed(target.node))
    name = next((path for path in paths if path.rpartition(".")[2] == attribute), group.name)
    value: Any = _running_variables(memory, keeper).get(name)
    parts = f"each.detach() for each in {name}"
    if type(value) in (tuple, list) and all(map(is_tensor, value)):
        code = f"[{parts}]" if type(value) is list else f"tuple({parts})"
    else:
        code = f"{name}.detach()"
    end = keeper.round.body[-1] if keeper.round is not None and keeper.runs_backward else keeper.statement
    return keeper.below(end, f"{name} = {code}")


def drop_traceback(memory: Memory, group: Group) -> Remedy:
    """Keep what an exception says and not its frames: `problems.append(str(error))`."""
    keeper = memory.keeper(group)
    name = variable(keeper.value) if keeper is not None else ""
    edit = keeper.replaced(keeper.value, f"str({name})") if keeper is not None and name else None
    is_of_sys = group.name.startswith("sys.")
    key_without = "out-of-memory.help-traceback-sys" if is_of_sys else "out-of-memory.help-traceback"
    return _advice_with(group, edit, "out-of-memory.help-str", key_without)


def load_to_the_host(memory: Memory) -> Remedy | None:
    """Load a checkpoint to the CPU, from where `load_state_dict` copies it."""
    for group in memory.worth:
        keeper = memory.keeper(group) if group.kind == "named" else None
        calls = calls_in(keeper.value) if keeper is not None else ()
        load = next((call for call in calls if called_name(call) in ("load", "load_file")), None)
        if keeper is None or load is None:
            continue
        edit = keeper.replaced(load, keeper.with_argument(load, "map_location", '"cpu"'))
        name = next((path for target in targets(keeper.statement) if (path := path_of(target.node))), group.name)
        return sentence("out-of-memory.help-load", name=name), (edit,) if edit else ()
    return None


def keep_on_the_host(memory: Memory, group: Group) -> Remedy | None:
    """Keep on the CPU what is only collected: `bank[name] = features.cpu()`; no edit sends back what came from it."""
    keeper, key = memory.keeper(group), "out-of-memory.help-cpu-edit"
    if keeper is not None and keeper.runs_backward:
        return None
    if keeper is not None and keeper.how == "carried":
        return sentence("out-of-memory.help-grows", name=group.name), ()
    if not group.is_contained:
        return None
    edit = _copy_state_to_the_host(keeper) if keeper is not None else None
    if keeper is not None and edit is None and keeper.how != "is" and not memory.is_from_the_host(group):
        is_reduced = memory.is_of_reduced(group)
        key = "out-of-memory.help-clone" if is_reduced else key
        detach = "detach()." if memory.has_graph(group.name) else ""
        edit = _method_called(memory, keeper, f"{detach}clone()" if is_reduced else f"{detach}cpu()")
    return _advice_with(group, edit, key)


def _copy_state_to_the_host(keeper: Keeper) -> Edit | None:
    """Put copies on the CPU in place of `copy.deepcopy(model.state_dict())`."""
    match keeper.value:
        case ast.Call(args=[ast.Call() as state]) as call if called_name(call) == "deepcopy":
            if called_name(state) == "state_dict":
                items = f"for key, value in {keeper.text(state)}.items()"
                return keeper.replaced(call, f'{{key: value.to("cpu", copy=True) {items}}}')
    return None


def keep_copies_on_the_host(memory: Memory, group: Group) -> Remedy | None:
    """Keep on the CPU the deep copies of a model that a name collects: `best.append(copy.deepcopy(model).cpu())`."""
    keeper = memory.keeper(group)
    if keeper is None or not keeper.adds or not memory.is_deep_copied(group):
        return None
    copy = next((call for call in calls_in(keeper.value) if called_name(call) == "deepcopy"), keeper.value)
    edit = keeper.replaced(copy, keeper.called_on(copy, "cpu()")) if called_name(copy) or variable(copy) else None
    key = "out-of-memory.help-cpu-edit" if keeper.is_unread else "out-of-memory.help-copies"
    return _advice_with(group, edit, key)


BY_KIND: Final[Mapping[str, Callable[[Memory, Group], Remedy | None]]] = {
    "graph": drop_graphs,
    "traceback": drop_traceback,
    "history": lambda memory, group: (sentence("out-of-memory.help-history"), ()),
    "named": keep_on_the_host,
    "parameter": keep_copies_on_the_host,
}


def delete_unread(memory: Memory, moment: FailingMoment) -> Remedy | None:
    """Add `del narrow, trained` below the last use of variables with a tenth of the memory that nothing reads again."""
    queries = memory.queries
    for site_id, frame in queries.frames:
        site, code = queries.site(site_id), frame.f_code
        if site is None or site.cell is not None:
            continue
        source = queries.read(site.file, site.line, site.cell_id)
        # Not for a file's own variables: other functions may read them.
        body = getattr(source.function_of_code(code), "body", [])
        last_reads = _last_reads(source, body, site.line) if isinstance(body, list) else {}
        scope = code.co_filename, code.co_qualname, code.co_firstlineno
        groups = [group for group in memory.groups if group.root in last_reads and group.scope == scope]
        unread: dict[str, set[str]] = {}  # the variables that lead to what each of them holds
        for root in {group.root for group in groups}:
            largest = (max(group.holdings, key=lambda held: held.bytes) for group in groups if group.root == root)
            tensors = (holding.tensor for holding in largest if holding.tensor >= 0)
            variables_to_it = {root, *(path.texts[0] for tensor in tensors for path in moment.names(tensor))}
            if variables_to_it <= last_reads.keys() and not is_reachable(moment, frame, root, last_reads):
                unread[root] = variables_to_it
        size = sum(group.bytes for group in groups if group.root in unread)
        if unread and size >= max(0.1 * memory.total, 1):
            doomed = sorted(set[str]().union(*unread.values()))
            statement = max((last_reads[name] for name in doomed), key=lambda read: source.span(read).line)
            edit = Code(source, site).below(statement, f"del {', '.join(doomed)}")
            quoted = [f"`{name}`" for name in doomed]
            if edit is not None:
                return sentence("out-of-memory.help-del", names=quoted, count=len(doomed)), (edit,)
    return None


def is_reachable(moment: FailingMoment, owner: Frame, name: str, doomed: Container[str]) -> bool:
    """Return whether a variable that is still read leads to an object: a hook, for example, to its probe."""
    variables = ((frame, key, value) for frame in moment.frames for key, value in frame.f_locals.items())
    queue = [value for frame, key, value in variables if frame is not owner or key not in doomed]
    seen = {id(value) for value in queue}
    while queue:
        value = queue.pop()
        if value is owner.f_locals.get(name):
            return True
        if not isinstance(value, type) and not (type(value) is dict and "__builtins__" in value):
            inner = [each for each in gc.get_referents(value) if may_lead(each) and id(each) not in seen]
            seen.update(map(id, inner))
            queue += inner
    return False


def _last_reads(source: Source, body: list[ast.stmt], line: int, later: set[str] | None = None) -> dict[str, ast.stmt]:
    """Return the variables that no statement reads from a line on, each with the statement that read it last.

    Of a running loop they are what each round makes anew; `later`: what its next round, or what is below it, reads.
    """
    spans = [source.span(statement) for statement in body]
    now = next((index for index, span in enumerate(spans) if span.line <= line <= span.end_line), len(body))
    needed = read_first(body[now:]) | (later or set())
    statements = body[:now] if later is None else body
    last_reads = {name: statement for statement in statements for name in names_in(statement) - needed}
    loop = body[now] if now < len(body) else None
    if isinstance(loop, LOOPS):
        condition = read_in(loop.test) if isinstance(loop, ast.While) else set()
        below = read_first([*loop.orelse, *body[now + 1 :]], later or ())
        last_reads |= _last_reads(source, loop.body, line, condition | below | read_first(loop.body))
    return last_reads


# Models that no optimizer trains and whose graphs are kept all the same: a teacher, a frozen encoder.

_HEADER = "with torch.no_grad():"


def compute_without_graph(memory: Memory, moment: FailingMoment) -> Remedy | None:
    """Compute `teacher(x)` under `torch.no_grad()`, if no optimizer trains `teacher` and `x` needs no gradient."""
    optimizers = moment.walk.of_kind(is_optimizer)
    trained = {id(parameter) for optimizer in optimizers for parameter in parameters_of(optimizer)}
    for group in memory.worth if trained else ():
        place = memory.code(group) if group.kind == "activation" else None
        frame = memory.frame_of(*place) if place is not None else None
        if place is None or frame is None:
            continue
        code, statement = place
        scope = Scope.of(frame)
        models = (call for call in calls_in(statement) if is_module(evaluate(call.func, scope)))
        by_path = {path: call for call in models if (path := path_of(call.func))}
        untrained = [path for path, call in by_path.items() if _is_untrained(call, scope, trained)]
        if untrained:
            can_edit = len(by_path) == 1 and isinstance(frame.f_globals.get("torch"), ModuleType)
            edit = code.within(statement, _HEADER) if can_edit else None
            key = "out-of-memory.help-untrained"
            return sentence(key, name=untrained[0], line=code.site.line), (edit,) if edit else ()
    return None


def _is_untrained(call: ast.Call, scope: Scope, trained: set[int]) -> bool:
    parameters = [tensor for _, tensor in registered(evaluate(call.func, scope)) if is_trained_leaf(tensor)]
    values = [evaluate(node, scope) for node in nodes_of(ast.expr, *call.args, *call.keywords) if path_of(node)]
    need_no_gradient = bool(values) and not any(is_tensor(value) and requires_grad(value) for value in values)
    owners = [owner_of(inner) for inner in calls_in(call) if inner is not call]  # `x.to(device)` needs none either
    are_tensors = all(owner is not None and path_of(owner) and is_tensor(evaluate(owner, scope)) for owner in owners)
    is_trained = any(id(parameter) in trained for parameter in parameters)
    return need_no_gradient and are_tensors and bool(parameters) and not is_trained


# A step that is too large by itself: a tensor of all pairs, or a copy of what is large.

_TIMES: Final = 8
"""An op's output that is so many times as large as its inputs is a tensor of all pairs."""
_PART: Final = 0.4
_FLOAT: Final = 1.9  # times the size of the same in half precision; blocks are rounded
_CASTS: Final = ("_to_copy", "float", "to")  # as recorded, and as called
_OF_PAIRS: Final = {
    "sub": "out-of-memory.help-cdist",
    "rsub": "out-of-memory.help-cdist",
    "mul": "out-of-memory.help-matmul",
}
_DIMS: Final = 2  # of a product that is no batch of products


def work_in_chunks(memory: Memory) -> Remedy | None:
    """Advise to work in chunks where most of the memory is for a tensor of all pairs."""
    queries, asked = memory.queries, memory.shortage.asked
    needed = memory.total + asked
    sizes = {queries.base(tensor): _known_bytes(queries, tensor) for tensor in queries.inputs(memory.failed)}
    largest = max(sizes, key=lambda tensor: sizes[tensor], default=NO_TENSOR)
    if_unknown = asked if len(sizes) == 1 else 0  # what is computed from one tensor is as large as that
    size_by_op = {queries.producer(largest): sizes.get(largest, 0) or if_unknown}
    size_by_op |= {memory.failed: asked} if all(sizes.values()) else {}
    for op, size in reversed(size_by_op.items()):
        inputs = {queries.base(tensor) for tensor in queries.inputs(op)} if op >= 0 else set()
        least = _PART * needed if op == memory.failed else _PART * needed / 2
        has_few_inputs = len(inputs) in (1, 2) and not any(map(queries.is_of_a_module, inputs))
        is_large = size >= max(least, _TIMES * sum(_known_bytes(queries, tensor) for tensor in inputs))
        if has_few_inputs and is_large and queries.kind(op) == "compute":
            site = queries.site(queries.op_user(op))
            return sentence(_help_for_pairs(memory, op), line=site.line if site else 0), ()
    return None


def _known_bytes(queries: TraceQueries, tensor: TensorId) -> int:
    """Return the bytes of a tensor; for a view of unknown shape those of the tensor it views; 0 if nobody knows."""
    size, op = queries.trace.tensors.number("bytes", tensor), queries.producer(tensor)
    if size or op < 0 or queries.kind(op) != "view":
        return size
    return max((_known_bytes(queries, viewed) for viewed in queries.inputs(op)), default=0)


def _help_for_pairs(memory: Memory, op: OpId) -> str:
    queries = memory.queries
    name = short_op_name(queries.op_name(op))
    is_batched = any(len(queries.trace.tensors[tensor].shape) > _DIMS for tensor in queries.inputs(op))
    if name in OF_BATCHES and is_batched:
        return "out-of-memory.help-attention"
    return _OF_PAIRS.get(name, "out-of-memory.help-chunks")


def avoid_float_copy(memory: Memory) -> Remedy | None:
    """Advise against a copy in float32 of what the model gave in half precision."""
    queries = memory.queries
    holdings = (holding for holding in memory.shortage.holdings if holding.tensor >= 0)
    large = {queries.producer(each.tensor): each.bytes for each in holdings if each.bytes >= _PART * memory.total}
    for op, size in ({memory.failed: memory.shortage.asked} | large).items():
        inputs = [queries.trace.tensors[tensor] for tensor in queries.inputs(op)] if op >= 0 else []
        if inputs and short_op_name(queries.op_name(op)) in _CASTS and size >= _FLOAT * inputs[0].bytes:
            site = queries.site(queries.op_user(op))
            return sentence("out-of-memory.help-float", line=site.line if site else 0, dtype=inputs[0].dtype), ()
    return None
