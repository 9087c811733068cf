"""Lets go of what a name keeps for nothing: graphs, tracebacks, results of cells, copies of what was loaded."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterable, Mapping
from typing import Any

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.failing_moment import FailingMoment
from devtrace.diagnosis.findings import Edit
from devtrace.memory.holdings import Group, Memory
from devtrace.memory.retaining_line import WRITTEN, Keeper, has_no_graph, parts_of
from devtrace.source.flow import LOOPS, binds, path_of, targets
from devtrace.source.matching import called_name, called_names, calls_in, listed, names_in, variable
from devtrace.source.object_walk import is_tensor, may_lead, registered
from devtrace.source.parsing import Source
from devtrace.source.stand_ins import Frame
from devtrace.words.catalogue import sentence

Remedy = tuple[str, tuple[Edit, ...]]


def of_graphs(memory: Memory, group: Group) -> Remedy:
    """Keep the numbers and not the graphs: `losses.append(loss.detach())`."""
    keeps = memory.keeper(group)
    if keeps is not None and keeps.how == "carried" and (keeps.is_each_round_backward or not keeps.runs_backward):
        edit = _state_detached(memory, keeps, group)
    elif keeps is not None and keeps.runs_backward:
        return each_backward(keeps)
    else:
        edit = _called(memory, keeps, group, "detach()") if keeps is not None else None
    return _advised(group, edit, "out-of-memory.help-detach", "out-of-memory.help-graph")


def _advised(group: Group, edit: Edit | None, key: str, without: str = "out-of-memory.help-cpu") -> Remedy:
    """Return an edit with its words; where none can be written the words of another key."""
    if edit is None:
        return sentence(without, name=group.name), ()
    return sentence(key, name=group.name, code=edit.after.strip()), (edit,)


def each_backward(keeps: Keeper) -> Remedy:
    """Run backward in each round, which frees its graph: gradients add up."""
    if keeps.is_of_rounds_alone:
        text = keeps.code.text(keeps.value)
        code = text if variable(keeps.value) or called_name(keeps.value) else f"({text})"
        return sentence("out-of-memory.help-rounds", code=code), ()
    return sentence("out-of-memory.help-activation"), ()


def _called(memory: Memory, keeps: Keeper, group: Group, method: str) -> Edit | None:
    """Call a method on what is kept: of a tuple or a dictionary that is written out, on the parts that are tensors."""
    variables = _variables(memory, keeps)
    parts = list(parts_of(keeps.value))
    if isinstance(keeps.value, WRITTEN):
        if any(not variable(part) and not has_no_graph(part) for part in parts):
            return None
        parts = [part for part in parts if is_tensor(variables.get(variable(part)))]
    else:
        depth = keeps.depth + (parts != [keeps.value])
        if keeps.how == "put" and memory.depth(group.name) not in (0, depth):
            return None
        named = [name for each in parts if (name := variable(each)) in variables]
        if len(named) < sum(variable(each) != "" for each in parts) and keeps.is_given_numbers:
            return None
        if any(isinstance(each, WRITTEN) for each in parts) or not all(is_tensor(variables[each]) for each in named):
            return None
    if not parts or keeps.how == "drained" or called_names(keeps.statement) & {"extend", "update"}:
        return None
    return keeps.code.all_replaced([(part, keeps.code.called_on(part, method)) for part in parts])


def _variables(memory: Memory, keeps: Keeper) -> Mapping[str, Any]:
    """Return the variables of the function that keeps something, where that is running."""
    function = keeps.source.function(keeps.statement)
    frames = (frame for _, frame in memory.queries.frames if frame.f_code.co_filename == keeps.source.file)
    return next((each.f_locals for each in frames if keeps.source.body_of(each.f_code) is function), {})


def _state_detached(memory: Memory, keeps: Keeper, group: Group) -> Edit | None:
    """Cut the graph of a state that goes from round to round, at the end of a round: `hidden = hidden.detach()`."""
    last = group.name.rpartition(".")[2]
    given = (path_of(part) for each in targets(keeps.statement) for part in listed(each.node))
    name = next((path for path in given if path.rpartition(".")[2] == last), group.name)
    value: Any = _variables(memory, keeps).get(name)
    each = f"each.detach() for each in {name}"
    if type(value) in (tuple, list) and all(map(is_tensor, value)):
        code = f"[{each}]" if type(value) is list else f"tuple({each})"
    elif value is None or is_tensor(value):
        code = f"{name}.detach()" if is_tensor(value) or not memory.depth(group.name) > 1 else f"tuple({each})"
    else:
        return None
    end = keeps.round.body[-1] if keeps.round is not None and keeps.runs_backward else keeps.statement
    return keeps.code.below(end, f"{name} = {code}")


def of_traceback(memory: Memory, group: Group) -> Remedy:
    """Keep what an exception says and not its frames: `problems.append(str(error))`."""
    keeps = memory.keeper(group)
    name = variable(keeps.value) if keeps is not None else ""
    edit = keeps.code.replaced(keeps.value, f"str({name})") if keeps is not None and name else None
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
        edit = keeps.code.replaced(call, keeps.code.with_argument(call, "map_location", '"cpu"'))
        loaded = next((path for each in targets(keeps.statement) if (path := path_of(each.node))), group.name)
        return sentence("out-of-memory.help-load", name=loaded), (edit,) if edit else ()
    return None


def to_the_host(memory: Memory, group: Group) -> Remedy | None:
    """Keep on the CPU what is only collected: `bank[name] = features.cpu()`; no edit sends back what came from it."""
    keeps = memory.keeper(group)
    if keeps is None:
        return _advised(group, None, "out-of-memory.help-cpu-edit") if group.is_contained else None
    if keeps.runs_backward:
        return None
    if keeps.how == "carried":
        return sentence("out-of-memory.help-grows", name=group.name), ()
    if not group.is_contained:
        return None
    if (code := _state_on_the_host(memory, keeps, group)) is not None:
        return _advised(group, code, "out-of-memory.help-cpu-edit")
    if keeps.how == "is" or memory.is_from_the_host(group) or (keeps.is_a_cache and memory.is_used(group)):
        return _advised(group, None, "out-of-memory.help-cpu-edit")
    is_reduced = memory.is_of_reduced(group)
    key = "out-of-memory.help-clone" if is_reduced else "out-of-memory.help-cpu-edit"
    method = "clone()" if is_reduced else "cpu()"
    method = f"detach().{method}" if memory.has_graph(group.name) else method
    return _advised(group, _called(memory, keeps, group, method), key)


def _state_on_the_host(memory: Memory, keeps: Keeper, group: Group) -> Edit | None:
    """Copy a model's state to the CPU, of which deep copies are kept; an optimizer's has dictionaries in it."""
    match keeps.value:
        case ast.Call(args=[ast.Call() as state]) as call if called_name(call) == "deepcopy":
            if called_name(state) == "state_dict" and memory.depth(group.name) == keeps.depth + 1:
                each = f"for key, value in {keeps.code.text(state)}.items()"
                return keeps.code.replaced(call, f'{{key: value.to("cpu", copy=True) {each}}}')
    return None


def copies_to_the_host(memory: Memory, group: Group) -> Remedy | None:
    """Keep on the CPU the deep copies of a model that a name collects: `best.append(copy.deepcopy(model).cpu())`."""
    keeps = memory.keeper(group)
    if keeps is None or not keeps.adds or not memory.is_deep_copied(group):
        return None
    copies = [call for call in calls_in(keeps.value) if called_name(call) == "deepcopy"]
    copy = copies[0] if copies else keeps.value
    edit = keeps.code.replaced(copy, keeps.code.called_on(copy, "cpu()")) if copies or variable(copy) else None
    key = "out-of-memory.help-cpu-edit" if keeps.is_unread else "out-of-memory.help-copies"
    help, edits = _advised(group, edit, key)
    return help, edits if keeps.is_unread else ()


# Variables that hold memory and that nothing reads any more: `del narrow, trained` below their last use.


def deleted(memory: Memory, moment: FailingMoment) -> Remedy | None:
    """Delete what a running function will not read again, where that is worth it."""
    queries = memory.queries
    for row, frame in queries.frames:
        site = queries.site(row)
        source = queries.read(site.file, site.line, site.cell_id) if site is not None else None
        if site is None or source is None or site.cell is not None:
            continue
        body = _body(source, frame)
        last = _last_reads(source, body, site.line)
        code = frame.f_code
        scope = code.co_filename, code.co_qualname, code.co_firstlineno
        groups = [group for group in memory.groups if group.root in last and group.scope == scope]
        unread = {name for name in {group.root for group in groups} if not _is_led_to(moment, frame, name, set(last))}
        groups = [group for group in groups if not _is_led_to_otherwise(group, moment, set(last))]
        names = sorted({group.root for group in groups} & unread)
        size = sum(group.bytes for group in groups if group.root in names)
        if names and size >= max(0.1 * memory.total, 1):
            names = sorted({*names, *_leading_to(frame, names, last)})
            statement = max((last[name] for name in names), key=lambda each: source.span(each).line)
            edit = Code(source, site).below(statement, f"del {', '.join(names)}")
            help = sentence("out-of-memory.help-del", names=[f"`{name}`" for name in names], count=len(names))
            if edit is not None:
                return help, (edit,)
    return None


def _body(source: Source, frame: Frame) -> list[ast.stmt]:
    """Return the statements of a running function; of a file none, as functions of others may read its variables."""
    function = source.body_of(frame.f_code)
    body = getattr(function, "body", [])
    return body if isinstance(body, list) else []


def _last_reads(source: Source, body: list[ast.stmt], line: int) -> dict[str, ast.stmt]:
    """Return the variables that no statement reads from a line on, each with the statement that read it last."""
    now = _index(source, body, line)
    later = _read_first(body[now:])
    found = {name: each for each in body[:now] for name in names_in(each) - later}
    return found | _last_of_a_round(source, body, now, line, set())


def _last_of_a_round(source: Source, body: list[ast.stmt], now: int, line: int, after: set[str]) -> dict[str, ast.stmt]:
    """Return the variables that each round of a running loop makes anew, each with the last statement of it."""
    loop = body[now] if now < len(body) else None
    if not isinstance(loop, LOOPS):
        return {}
    after = after | _read_first([*loop.orelse, *body[now + 1 :]])
    at = _index(source, loop.body, line)
    head = names_in(loop.test) if isinstance(loop, ast.While) else set()
    around = after | head | _read_first(loop.body)
    later = around | _read_first(loop.body[at:])
    made = {name for each in loop.body if _is_plain(each) for name in binds(each)} - later
    last = {name: each for each in loop.body for name in names_in(each) & made}
    return last | _last_of_a_round(source, loop.body, at, line, around)


def _index(source: Source, body: list[ast.stmt], line: int) -> int:
    """Return the number of the statement that a line is of."""
    spans = [source.span(each) for each in body]
    return next((at for at, span in enumerate(spans) if span.line <= line <= span.end_line), len(body))


def _read_first(body: list[ast.stmt]) -> set[str]:
    """Return the variables that statements may read before they give them another value."""
    read: set[str] = set()
    given: set[str] = set()
    for statement in body:
        value = statement.value if isinstance(statement, ast.Assign) and _is_plain(statement) else statement
        read |= names_in(value) - given
        given |= binds(statement) if value is not statement else set()
    return read


def _is_plain(statement: ast.stmt) -> bool:
    """Return whether a statement gives variables another value, and does nothing else."""
    return isinstance(statement, ast.Assign) and all(map(variable, statement.targets))


def _is_led_to(moment: FailingMoment, owner: Frame, name: str, unread: set[str]) -> bool:
    """Return whether a variable that is still read leads to what a name is of, or to a part of that model."""
    variables = ((frame, *each) for frame in moment.frames for each in frame.f_locals.items())
    rest = [value for frame, key, value in variables if frame is not owner or key not in unread]
    return _leads(rest, _with_parts(owner.f_locals.get(name)))


def _leading_to(owner: Frame, names: list[str], unread: Iterable[str]) -> list[str]:
    """Return the variables that nothing reads either and that keep what is deleted: an optimizer's `schedule`."""
    wanted = {each for name in names for each in _with_parts(owner.f_locals.get(name))}
    return [name for name in unread if name in owner.f_locals and _leads([owner.f_locals[name]], wanted)]


def _with_parts(value: Any) -> set[int]:
    return {id(value), *(id(tensor) for _, tensor in registered(value))}


def _leads(rest: list[Any], wanted: set[int]) -> bool:
    seen = {id(value) for value in rest}
    while rest:
        value = rest.pop()
        if id(value) in wanted:
            return True
        if not isinstance(value, type) and not (type(value) is dict and "__builtins__" in value):
            new = [each for each in gc.get_referents(value) if may_lead(each) and id(each) not in seen]
            seen.update(map(id, new))
            rest += new
    return bool(rest)


def _is_led_to_otherwise(group: Group, moment: FailingMoment, unread: set[str]) -> bool:
    """Return whether a variable that is still read leads to the largest of what a name holds."""
    largest = max(group.holdings, key=lambda each: each.bytes)
    paths = moment.names(largest.tensor) if largest.tensor >= 0 else []
    return any(path.texts[0] not in unread for path in paths)
