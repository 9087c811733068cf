"""What lets go of memory: edits where the source shows what is meant, else advice.

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
    """Yield what may help: first what is held for nothing, then what the largest part is."""
    of_waste = (group for group in memory.worth if group.kind in ("graph", "traceback", "history"))
    yield from (BY_KIND[group.kind](memory, group) for group in of_waste)
    yield loaded_to_the_host(memory)
    yield without_graph(memory, moment)
    yield deleted(memory, moment)
    yield outer_product(memory)
    yield made_float(memory)
    yield from (copies_to_the_host(memory, group) for group in memory.worth if group.kind == "parameter")
    for group in sorted(memory.worth, key=lambda each: not _grows(memory, each)):
        if group.kind == "named":
            yield to_the_host(memory, group)
        elif group.kind == "activation":
            yield each_backward(memory.keeper(each) for each in memory.groups if each.kind in ("named", "activation"))
        elif group.kind in ("parameter", "gradient", "optimizer-state"):
            yield sentence("out-of-memory.help-optimizer"), ()
    yield sentence("out-of-memory.help"), ()


def _grows(memory: Memory, group: Group) -> bool:
    keeps = memory.keeper(group) if group.kind == "named" and group.is_contained else None
    return keeps is not None and keeps.adds


# What a name keeps for nothing.


def of_graphs(memory: Memory, group: Group) -> Remedy:
    """Keep the numbers and not the graphs: `losses.append(loss.detach())`."""
    keeps, edit = memory.keeper(group), None
    if keeps is not None and keeps.how == "carried" and (keeps.is_each_round_backward or not keeps.runs_backward):
        edit = _state_detached(memory, keeps, group)
    elif keeps is not None and keeps.runs_backward:
        return each_backward([keeps])
    elif keeps is not None:
        edit = _called(memory, keeps, "detach()")
    return _advised(group, edit, "out-of-memory.help-detach", "out-of-memory.help-graph")


def _advised(group: Group, edit: Edit | None, key: str, without: str = "out-of-memory.help-cpu") -> Remedy:
    """Return an edit with its words; where none can be written the words of another key."""
    if edit is None:
        return sentence(without, name=group.name), ()
    return sentence(key, name=group.name, code=edit.after.strip()), (edit,)


def each_backward(found: Iterable[Keeper | None]) -> Remedy:
    """Run backward in each round, which frees its graph, where the graphs of several hang on one sum or list."""
    for keeps in found:
        if keeps is not None and keeps.is_of_rounds_alone:
            text = keeps.text(keeps.value)
            code = text if variable(keeps.value) or called_name(keeps.value) else f"({text})"
            return sentence("out-of-memory.help-rounds", code=code), ()
    return sentence("out-of-memory.help-activation"), ()


def _called(memory: Memory, keeps: Keeper, method: str) -> Edit | None:
    """Call a method on what is kept: of a tuple or a dictionary that is written out, on the parts that are tensors."""
    variables, is_written = _variables(memory, keeps), isinstance(keeps.value, WRITTEN)
    known = [(part, variable(part) in variables or is_written) for part in parts_of(keeps.value)]
    parts = [part for part, is_known in known if not is_known or is_tensor(variables.get(variable(part)))]
    if not parts or keeps.how == "drained" or called_names(keeps.statement) & {"extend", "update"}:
        return None
    return keeps.all_replaced([(part, keeps.called_on(part, method)) for part in parts])


def _variables(memory: Memory, keeps: Keeper) -> Mapping[str, Any]:
    """Return the variables of the function that keeps something, where that is running."""
    frame = memory.frame_of(keeps, keeps.statement)
    return frame.f_locals if frame is not None else {}


def _state_detached(memory: Memory, keeps: Keeper, group: Group) -> Edit | None:
    """Cut the graph of a state that goes from round to round, at the end of a round: `hidden = hidden.detach()`."""
    last = group.name.rpartition(".")[2]
    given = (path_of(part) for each in targets(keeps.statement) for part in listed(each.node))
    name = next((path for path in given if path.rpartition(".")[2] == last), group.name)
    value: Any = _variables(memory, keeps).get(name)
    each = f"each.detach() for each in {name}"
    if type(value) in (tuple, list) and all(map(is_tensor, value)):
        code = f"[{each}]" if type(value) is list else f"tuple({each})"
    else:
        code = f"{name}.detach()"
    end = keeps.round.body[-1] if keeps.round is not None and keeps.runs_backward else keeps.statement
    return keeps.below(end, f"{name} = {code}")


def of_traceback(memory: Memory, group: Group) -> Remedy:
    """Keep what an exception says and not its frames: `problems.append(str(error))`."""
    keeps = memory.keeper(group)
    name = variable(keeps.value) if keeps is not None else ""
    edit = keeps.replaced(keeps.value, f"str({name})") if keeps is not None and name else None
    is_of_sys = group.name.startswith("sys.")
    without = "out-of-memory.help-traceback-sys" if is_of_sys else "out-of-memory.help-traceback"
    return _advised(group, edit, "out-of-memory.help-str", without)


def loaded_to_the_host(memory: Memory) -> Remedy | None:
    """Load a checkpoint to the CPU, from where `load_state_dict` copies it."""
    for group in memory.worth:
        keeps = memory.keeper(group) if group.kind == "named" else None
        calls = calls_in(keeps.value) if keeps is not None else ()
        call = next((each for each in calls if called_name(each) in ("load", "load_file")), None)
        if keeps is None or call is None:
            continue
        edit = keeps.replaced(call, keeps.with_argument(call, "map_location", '"cpu"'))
        loaded = next((path for each in targets(keeps.statement) if (path := path_of(each.node))), group.name)
        return sentence("out-of-memory.help-load", name=loaded), (edit,) if edit else ()
    return None


def to_the_host(memory: Memory, group: Group) -> Remedy | None:
    """Keep on the CPU what is only collected: `bank[name] = features.cpu()`; no edit sends back what came from it."""
    keeps, key = memory.keeper(group), "out-of-memory.help-cpu-edit"
    if keeps is not None and keeps.runs_backward:
        return None
    if keeps is not None and keeps.how == "carried":
        return sentence("out-of-memory.help-grows", name=group.name), ()
    if not group.is_contained:
        return None
    edit = _state_on_the_host(keeps) if keeps is not None else None
    if keeps is not None and edit is None and keeps.how != "is" and not memory.is_from_the_host(group):
        is_reduced = memory.is_of_reduced(group)
        key = "out-of-memory.help-clone" if is_reduced else key
        graph = "detach()." if memory.has_graph(group.name) else ""
        edit = _called(memory, keeps, f"{graph}clone()" if is_reduced else f"{graph}cpu()")
    return _advised(group, edit, key)


def _state_on_the_host(keeps: Keeper) -> Edit | None:
    """Copy a model's state to the CPU, of which deep copies are kept."""
    match keeps.value:
        case ast.Call(args=[ast.Call() as state]) as call if called_name(call) == "deepcopy":
            if called_name(state) == "state_dict":
                each = f"for key, value in {keeps.text(state)}.items()"
                return keeps.replaced(call, f'{{key: value.to("cpu", copy=True) {each}}}')
    return None


def copies_to_the_host(memory: Memory, group: Group) -> Remedy | None:
    """Keep on the CPU the deep copies of a model that a name collects: `best.append(copy.deepcopy(model).cpu())`."""
    keeps = memory.keeper(group)
    if keeps is None or not keeps.adds or not memory.is_deep_copied(group):
        return None
    copy = next((call for call in calls_in(keeps.value) if called_name(call) == "deepcopy"), keeps.value)
    edit = keeps.replaced(copy, keeps.called_on(copy, "cpu()")) if called_name(copy) or variable(copy) else None
    key = "out-of-memory.help-cpu-edit" if keeps.is_unread else "out-of-memory.help-copies"
    return _advised(group, edit, key)


BY_KIND: Final[Mapping[str, Callable[[Memory, Group], Remedy | None]]] = {
    "graph": of_graphs,
    "traceback": of_traceback,
    "history": lambda memory, group: (sentence("out-of-memory.help-history"), ()),
    "named": to_the_host,
    "parameter": copies_to_the_host,
}


# Variables that hold memory and that nothing reads any more: `del narrow, trained` below their last use.


def deleted(memory: Memory, moment: FailingMoment) -> Remedy | None:
    """Delete what a running function will not read again, where that is worth it."""
    queries = memory.queries
    for row, frame in queries.frames:
        site, code = queries.site(row), frame.f_code
        if site is None or site.cell is not None:
            continue
        source = queries.read(site.file, site.line, site.cell_id)
        # Of a file's own variables none, as functions of others may read them.
        body = getattr(source.function_of_code(code), "body", [])
        last = _last_reads(source, body, site.line) if isinstance(body, list) else {}
        scope = code.co_filename, code.co_qualname, code.co_firstlineno
        groups = [group for group in memory.groups if group.root in last and group.scope == scope]
        unread: dict[str, set[str]] = {}  # the variables that lead to what each has
        for root in {group.root for group in groups}:
            largest = (max(each.holdings, key=lambda holding: holding.bytes) for each in groups if each.root == root)
            names = {
                root,
                *(path.texts[0] for each in largest if each.tensor >= 0 for path in moment.names(each.tensor)),
            }
            if names <= last.keys() and not _is_led_to(moment, frame, root, last):
                unread[root] = names
        size = sum(group.bytes for group in groups if group.root in unread)
        if unread and size >= max(0.1 * memory.total, 1):
            names = set[str]().union(*unread.values())
            statement = max((last[name] for name in names), key=lambda each: source.span(each).line)
            edit = Code(source, site).below(statement, f"del {', '.join(sorted(names))}")
            written = [f"`{name}`" for name in sorted(names)]
            if edit is not None:
                return sentence("out-of-memory.help-del", names=written, count=len(names)), (edit,)
    return None


def _is_led_to(moment: FailingMoment, owner: Frame, name: str, unread: Container[str]) -> bool:
    """Return whether a variable that is still read leads to an object: a hook, for example, to its probe."""
    variables = ((frame, *each) for frame in moment.frames for each in frame.f_locals.items())
    rest = [value for frame, key, value in variables if frame is not owner or key not in unread]
    seen = {id(value) for value in rest}
    while rest:
        value = rest.pop()
        if value is owner.f_locals.get(name):
            return True
        if not isinstance(value, type) and not (type(value) is dict and "__builtins__" in value):
            new = [each for each in gc.get_referents(value) if may_lead(each) and id(each) not in seen]
            seen.update(map(id, new))
            rest += new
    return False


def _last_reads(source: Source, body: list[ast.stmt], line: int, again: set[str] | None = None) -> dict[str, ast.stmt]:
    """Return the variables that no statement reads from a line on, each with the statement that read it last.

    Of a running loop they are what each round makes anew; `again`: what its next round, or what is below it, reads.
    """
    spans = [source.span(each) for each in body]
    now = next((at for at, span in enumerate(spans) if span.line <= line <= span.end_line), len(body))
    later = read_first(body[now:]) | (again or set())
    found = {name: each for each in (body[:now] if again is None else body) for name in names_in(each) - later}
    loop = body[now] if now < len(body) else None
    if isinstance(loop, LOOPS):
        head = read_in(loop.test) if isinstance(loop, ast.While) else set()
        below = read_first([*loop.orelse, *body[now + 1 :]], again or ())
        found |= _last_reads(source, loop.body, line, head | below | read_first(loop.body))
    return found


# Models that no optimizer trains and whose graphs are kept all the same: a teacher, a frozen encoder.

_HEADER = "with torch.no_grad():"


def without_graph(memory: Memory, moment: FailingMoment) -> Remedy | None:
    """Compute under `torch.no_grad()` what such a model gives, where no input of its needs a gradient either."""
    optimizers = moment.walk.of_kind(is_optimizer)
    trained = {id(parameter) for each in optimizers for parameter in parameters_of(each)}
    for group in memory.worth if trained else ():
        made = memory.code(group) if group.kind == "activation" else None
        frame = memory.frame_of(*made) if made is not None else None
        if made is None or frame is None:
            continue
        code, statement = made
        scope = Scope.of(frame)
        models = (call for call in calls_in(statement) if is_module(evaluate(call.func, scope)))
        called = {path: call for call in models if (path := path_of(call.func))}
        names = [path for path, call in called.items() if _is_untrained(call, scope, trained)]
        if names:
            is_alone = len(called) == 1 and isinstance(frame.f_globals.get("torch"), ModuleType)
            edit = code.within(statement, _HEADER) if is_alone else None
            key = "out-of-memory.help-untrained"
            return sentence(key, name=names[0], line=code.site.line), (edit,) if edit else ()
    return None


def _is_untrained(call: ast.Call, scope: Scope, trained: set[int]) -> bool:
    own = [tensor for _, tensor in registered(evaluate(call.func, scope)) if is_trained_leaf(tensor)]
    given = [evaluate(node, scope) for node in nodes_of(ast.expr, *call.args, *call.keywords) if path_of(node)]
    needs_none = bool(given) and not any(is_tensor(each) and requires_grad(each) for each in given)
    inner = [owner_of(each) for each in calls_in(call) if each is not call]  # `x.to(device)` needs none either
    is_of_tensors = all(each is not None and path_of(each) and is_tensor(evaluate(each, scope)) for each in inner)
    return needs_none and is_of_tensors and bool(own) and not any(id(each) in trained for each in own)


# A step that is too large by itself: a tensor of all pairs, or a copy of what is large.

_TIMES: Final = 8
"""An op's output that is so many times its inputs is one of all pairs."""
_PART: Final = 0.4
_FLOAT: Final = 1.9  # times the size of the same in half precision; blocks are rounded
_CASTS: Final = ("_to_copy", "float", "to")  # as recorded, and as called
_OF_PAIRS: Final = {
    "sub": "out-of-memory.help-cdist",
    "rsub": "out-of-memory.help-cdist",
    "mul": "out-of-memory.help-matmul",
}
_DIMS: Final = 2  # of a product that is no batch of products


def outer_product(memory: Memory) -> Remedy | None:
    """Advise to work in chunks where most of the memory is for a tensor of all pairs."""
    queries = memory.queries
    needed = memory.total + memory.shortage.asked
    rows = {queries.base(row): _bytes(queries, row) for row in queries.inputs(memory.failed)}
    largest = max(rows, key=lambda row: rows[row], default=NO_TENSOR)
    asked = memory.shortage.asked
    unknown = asked if len(rows) == 1 else 0  # what is computed from one tensor is as large as that
    by_op = {queries.producer(largest): rows.get(largest, 0) or unknown}
    by_op |= {memory.failed: asked} if all(rows.values()) else {}
    for op, size in reversed(by_op.items()):
        inputs = {queries.base(row) for row in queries.inputs(op)} if op >= 0 else set()
        least = _PART * needed if op == memory.failed else _PART * needed / 2
        is_of_few = len(inputs) in (1, 2) and not any(map(queries.is_of_a_module, inputs))
        is_large = size >= max(least, _TIMES * sum(_bytes(queries, row) for row in inputs))
        if is_of_few and is_large and queries.kind(op) == "compute":
            site = queries.site(queries.op_user(op))
            return sentence(_advice(memory, op), line=site.line if site else 0), ()
    return None


def _bytes(queries: TraceQueries, row: TensorId) -> int:
    """Return the bytes of a tensor, of a view of unknown shape those of what it is a view of; 0: nobody knows them."""
    size, op = queries.trace.tensors.number("bytes", row), queries.producer(row)
    if size or op < 0 or queries.kind(op) != "view":
        return size
    return max((_bytes(queries, each) for each in queries.inputs(op)), default=0)


def _advice(memory: Memory, op: OpId) -> str:
    queries = memory.queries
    name = short_op_name(queries.op_name(op))
    is_batched = any(len(queries.trace.tensors[row].shape) > _DIMS for row in queries.inputs(op))
    if name in OF_BATCHES and is_batched:
        return "out-of-memory.help-attention"
    return _OF_PAIRS.get(name, "out-of-memory.help-chunks")


def made_float(memory: Memory) -> Remedy | None:
    """Advise against a copy in float32 of what the model gave in half precision."""
    queries = memory.queries
    large = [each for each in memory.shortage.holdings if each.tensor >= 0 and each.bytes >= _PART * memory.total]
    sizes = {memory.failed: memory.shortage.asked} | {queries.producer(each.tensor): each.bytes for each in large}
    for op, size in sizes.items():
        inputs = [queries.trace.tensors[row] for row in queries.inputs(op)] if op >= 0 else []
        if inputs and short_op_name(queries.op_name(op)) in _CASTS and size >= _FLOAT * inputs[0].bytes:
            site = queries.site(queries.op_user(op))
            return sentence("out-of-memory.help-float", line=site.line if site else 0, dtype=inputs[0].dtype), ()
    return None
