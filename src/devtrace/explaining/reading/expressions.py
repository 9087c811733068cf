"""Expressions that are neither name nor call: constants, operators, sequences, and items looked up where they live."""

import ast
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from devtrace.explaining.reading.attributes import runs_that_fill
from devtrace.explaining.reading.file_index import mentions
from devtrace.explaining.reading.names import elements, wholes
from devtrace.explaining.reading.reader import MOST_ITEMS, Reader
from devtrace.explaining.reading.returned_calls import arguments_of_run, from_files, stored_in, stores_at
from devtrace.explaining.reading.values import Activation, Definition, KnownValue, Several, TensorValue, Value, item_of
from devtrace.recording.columns.operator_info import COMPUTE, VIEW
from devtrace.recording.context.module_tree import is_module
from devtrace.runtime.quiet import device_of, is_tensor
from devtrace.source.comprehension_iteration import turns
from devtrace.source.defuse import statements, targets
from devtrace.source.matching import called_name, listed, match_code, operands
from devtrace.source.safe_values import MISSING, item, truth
from devtrace.source.vocabulary import OPERATORS, hands_on, torch_name


def read_constant(reader: Reader, node: ast.Constant, activation: Activation) -> Value | None:
    return KnownValue(node.value)


def computed(
    reader: Reader, name: str, node: ast.AST, operands: list[ast.expr], activation: Activation
) -> Value | None:
    """Return the result of an operator; None without a tensor among its operands."""
    inputs = reader.tensors(operands, activation)
    return reader.derived(name, COMPUTE, node, activation, inputs) if inputs else None


def read_operation(reader: Reader, node: ast.expr, activation: Activation) -> Value | None:
    return computed(reader, op_name(node), node, operands(node), activation)


def op_name(node: ast.AST) -> str:
    """Return the name of torch's op for code: "Tensor.add" for `x + y`, "sum" for `x.sum()`."""
    match node:
        case ast.Call():
            return called_name(node)
        case ast.BinOp() | ast.AugAssign() | ast.UnaryOp() | ast.Compare():
            name = type(getattr(node, "op", None) or getattr(node, "ops", [None])[0]).__name__
            return f"Tensor.{OPERATORS.get(name, name.lower())}{'_' * isinstance(node, ast.AugAssign)}"
        case ast.Subscript():
            return "aten.index.Tensor"
        case ast.Assign(targets=[ast.Subscript()]):
            return "aten.index_put_"
        case ast.Assign():
            return "Tensor.set"
    return str(getattr(node, "attr", ""))


def read_either(reader: Reader, node: ast.BoolOp | ast.IfExp, activation: Activation) -> Value | None:
    """Return the first readable branch; a test that look-ups can answer rules the other out."""
    branches = node.values if isinstance(node, ast.BoolOp) else [node.body, node.orelse]
    answer = truth(node.test, arguments_of_run(activation)) if isinstance(node, ast.IfExp) else None
    branches = branches if answer is None else branches[:1] if answer else branches[1:]
    return reader.first(Definition(branch, (), activation) for branch in branches)


def read_inner(reader: Reader, node: Any, activation: Activation) -> Value | None:
    """Return the value of what `x := value`, `*value`, `await value` and the `{value}` of a text hold."""
    return reader.see(node.value, activation)


def read_sequence(reader: Reader, node: Any, activation: Activation) -> Value | None:
    items: list[Value | None] = []
    for element in node.elts:
        value = reader.see(element, activation)
        if not isinstance(element, ast.Starred):
            items.append(value)
        else:
            items += value.items if isinstance(value, Several) else reader.members(value, element.value, activation)
    return Several(tuple(items))


def read_dict(reader: Reader, node: ast.Dict, activation: Activation) -> Value | None:
    keys = tuple(key.value if isinstance(key, ast.Constant) else None for key in node.keys)
    return Several(tuple(reader.see(value, activation) for value in node.values), keys)


def read_comprehension(reader: Reader, node: Any, activation: Activation) -> Value | None:
    """Return the elements for a live sequence; else a sequence of one element, which stands for all."""
    scope, parts, runs = activation.scope, node.generators, [activation]
    if scope is not None and activation.line == activation.now and not any(part.ifs for part in parts):
        runs = [replace(activation, scope=scope.having(turn)) for turn in islice(turns(parts, scope), MOST_ITEMS)]
    items = [reader.see(node.elt, run) for run in runs]
    return Several(tuple(items)) if any(value is not None for value in items) else None


def read_text(reader: Reader, node: ast.JoinedStr, activation: Activation) -> Value | None:
    parts = [reader.known(value, activation) for value in node.values]
    texts = [str(part) for part in parts if type(part) in (str, int)]
    return KnownValue("".join(texts)) if len(texts) == len(parts) else None


def read_subscript(reader: Reader, node: ast.Subscript, activation: Activation) -> Value | None:
    owner = reader.see(node.value, activation)
    if isinstance(owner, TensorValue):
        indexes = [part for part in listed(node.slice) if not isinstance(part, ast.Slice | ast.Constant)]
        index = reader.tensors(indexes, activation)
        name, kind = ("aten.index.Tensor", COMPUTE) if index else ("aten.slice", VIEW)
        return reader.derived(name, kind, node, activation, [owner, *index])
    key = _key(reader, node.slice, activation)
    if not isinstance(owner, KnownValue):
        return owner.item(key) if owner is not None else None
    value = _looked_up(owner.value, key) if key is not MISSING else _any_of_one_device(owner.value)
    if value is MISSING:
        return None
    return reader.value(value, lambda: _definitions_of_item(reader, node, owner.value, key, activation))


def _key(reader: Reader, node: ast.expr, activation: Activation) -> Any:
    try:
        return ast.literal_eval(node)
    except (TypeError, ValueError, MemoryError, RecursionError):
        value = reader.known(node, activation)
    return value if type(value) in (int, str, tuple, bool) else MISSING


def _looked_up(owner: Any, key: Any) -> Any:
    if issubclass(type(owner), dict) and type(key) in (int, str, bool, tuple):
        try:
            return dict.get(owner, key, MISSING)
        except Exception:  # noqa: BLE001 (a key of the user's whose __eq__ fails)
            return MISSING
    return item(owner, key) if type(key) in (int, str) else MISSING


def _any_of_one_device(owner: Any) -> Any:
    """Return one of a dictionary's tensors if all are on one device, or its only value, for a key that is not known."""
    values = list(dict.values(owner)) if type(owner) is dict and len(owner) < 1000 else []
    if len(values) == 1:
        return values[0]
    tensors = [value for value in values if is_tensor(value)]
    return tensors[-1] if len({str(device_of(tensor)) for tensor in tensors}) == 1 else MISSING


def _definitions_of_item(
    reader: Reader, node: ast.Subscript, owner: Any, key: Any, activation: Activation
) -> Iterator[Definition]:
    """Yield the code that stored an item in a live container, the likeliest first; last the line that runs now."""
    if is_module(owner):
        return
    runs = list(reader.live_activations())
    runs += [] if any(run.body is activation.body for run in runs) else [activation]
    runs += runs_that_fill(reader, node.value, activation)
    on_this_line: list[Definition] = []
    for run in runs:
        for stored in stored_in(reader, run, owner, key):
            if run.scope is not None and stored.activation.line == run.line:
                on_this_line.append(stored._replace(is_of_repetition=True))
            else:
                yield stored
    for whole in wholes(reader, node.value, activation):  # the code that wrote it out, or filled it
        for value in (*_written_entry(whole.node, key), *_stored_by_maker(whole, key)):
            yield Definition(value, (), whole.activation.at_node(value))
        if whole.node is not node.value and isinstance(whole.node, ast.Attribute):
            yield Definition(item_of(whole.node, key), (), whole.activation)
    loaded = _load_behind(reader, node.value, activation)
    if loaded is not None:
        yield loaded
    elif type(key) is str:
        yield from from_files(reader, lambda file: mentions(file, key).entries)
    yield from elements(reader, node.value, (), activation)
    yield from on_this_line


def _stored_by_maker(whole: Definition, key: Any) -> Iterator[ast.expr]:
    """Yield what the function that made a container stored in it: `tables[n] = torch.linspace(0, 1, n)`."""
    statement = whole.activation.source.statement(whole.node)
    names = {ast.dump(target.node) for target in targets(statement) if target.value is whole.node}
    for later in statements(whole.activation.body) if names and whole.activation.scope is None else ():
        for target, value in stores_at(later, key):
            if ast.dump(target.value).replace("Load", "Store") in names:
                yield value


def _written_entry(container: ast.AST, key: Any) -> list[ast.expr]:
    """Return the code of the item at a key, if a container's code shows it: `f()` at "a" of `{"a": f()}`."""
    match container:
        case ast.Dict(keys=names, values=values):
            entries = zip(names, values, strict=True)
            return [value for name, value in entries if isinstance(name, ast.Constant) and name.value == key]
        case ast.DictComp(value=value, generators=[ast.comprehension(iter=iterated), *_]):
            whole = match_code("$whole.items()", iterated)
            return [value, item_of(whole["whole"], key)] if whole and hands_on(value, of_dtypes=True) else [value]
        case ast.List(elts=parts) | ast.Tuple(elts=parts) if type(key) is int and -len(parts) <= key < len(parts):
            return [parts[key]]
        case ast.Call(keywords=words) if called_name(container) == "dict":
            return [word.value for word in words if word.arg == key]
    return []


def _load_behind(reader: Reader, node: ast.expr, activation: Activation, levels: int = 4) -> Definition | None:
    """Return the `torch.load` call behind a container: for `saved["scaler"]["mean"]` that of `saved`."""
    if isinstance(node, ast.Call) and torch_name(reader.known(node.func, activation)) == "load":
        return Definition(node, (), activation, is_source=True)
    definitions = reader.definitions(node, activation) if levels else []
    definitions += [Definition(node.value, (), activation)] if levels and type(node) is ast.Subscript else []
    loads = (_load_behind(reader, source.node, source.activation, levels - 1) for source in definitions)
    return next((load for load in loads if load is not None), None)
