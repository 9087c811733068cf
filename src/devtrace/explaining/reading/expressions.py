"""Expressions that are neither name nor call: constants, operators, sequences, and items looked up where they live."""

import ast
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from devtrace.explaining.reading.attributes import runs_that_fill
from devtrace.explaining.reading.file_index import named
from devtrace.explaining.reading.names import elements, wholes
from devtrace.explaining.reading.reader import MOST_ITEMS, Reader
from devtrace.explaining.reading.returned_calls import given_to, one_of, put_under, stored_in
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
    return computed(reader, asked(node), node, operands(node), activation)


def asked(node: ast.AST) -> str:
    """Return the name of the op that code asks of torch."""
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
    answer = truth(node.test, given_to(activation)) if isinstance(node, ast.IfExp) else None
    branches = branches if answer is None else branches[:1] if answer else branches[1:]
    return reader.first(Definition(each, (), activation) for each in branches)


def read_inner(reader: Reader, node: Any, activation: Activation) -> Value | None:
    """Return the value of what `x := value`, `*value`, `await value` and the `{value}` of a text hold."""
    return reader.see(node.value, activation)


def read_sequence(reader: Reader, node: Any, activation: Activation) -> Value | None:
    found: list[Value | None] = []
    for each in node.elts:
        value = reader.see(each, activation)
        if not isinstance(each, ast.Starred):
            found.append(value)
        else:
            found += value.items if isinstance(value, Several) else reader.members(value, each.value, activation)
    return Several(tuple(found))


def read_dict(reader: Reader, node: ast.Dict, activation: Activation) -> Value | None:
    keys = tuple(each.value if isinstance(each, ast.Constant) else None for each in node.keys)
    return Several(tuple(reader.see(each, activation) for each in node.values), keys)


def read_comprehension(reader: Reader, node: Any, activation: Activation) -> Value | None:
    """Return the elements for a live sequence; else a sequence of one element, which stands for all."""
    scope, parts, runs = activation.scope, node.generators, [activation]
    if scope is not None and activation.line == activation.now and not any(each.ifs for each in parts):
        runs = [replace(activation, scope=scope.having(turn)) for turn in islice(turns(parts, scope), MOST_ITEMS)]
    found = [reader.see(node.elt, run) for run in runs]
    return Several(tuple(found)) if any(value is not None for value in found) else None


def read_text(reader: Reader, node: ast.JoinedStr, activation: Activation) -> Value | None:
    parts = [reader.known(each, activation) for each in node.values]
    texts = [str(each) for each in parts if type(each) in (str, int)]
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
    return reader.value(value, lambda: _definitions(reader, node, owner.value, key, activation))


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
    """Return one of a dictionary's tensors, if all are on one device, or its one value: the key is not known."""
    values = list(dict.values(owner)) if type(owner) is dict and len(owner) < 1000 else []
    if len(values) == 1:
        return values[0]
    tensors = [each for each in values if is_tensor(each)]
    return tensors[-1] if len({str(device_of(each)) for each in tensors}) == 1 else MISSING


def _definitions(
    reader: Reader, node: ast.Subscript, owner: Any, key: Any, activation: Activation
) -> Iterator[Definition]:
    """Yield the code that stored an item in a live container, the likeliest first; last the line that runs now."""
    if is_module(owner):
        return
    runs = list(reader.live_activations())
    runs += [] if any(run.body is activation.body for run in runs) else [activation]
    runs += runs_that_fill(reader, node.value, activation)
    running: list[Definition] = []
    for run in runs:
        for found in stored_in(reader, run, owner, key):
            if run.scope is not None and found.activation.line == run.line:
                running.append(found._replace(is_of_repetition=True))
            else:
                yield found
    for whole in wholes(reader, node.value, activation):  # written out, or filled where it was made
        for value in (*_entry(whole.node, key), *_put_below(whole, key)):
            yield Definition(value, (), whole.activation.at_node(value))
        if whole.node is not node.value and isinstance(whole.node, ast.Attribute):
            yield Definition(item_of(whole.node, key), (), whole.activation)
    loaded = _loaded(reader, node.value, activation)
    if loaded is not None:
        yield loaded
    elif type(key) is str:
        yield from one_of(reader, lambda source: named(source, key).entries)
    yield from elements(reader, node.value, (), activation)
    yield from running


def _put_below(whole: Definition, key: Any) -> Iterator[ast.expr]:
    """Yield what a container's creator stored in it: `tables[n] = torch.linspace(0, 1, n)`."""
    statement = whole.activation.source.statement(whole.node)
    made = {ast.dump(each.node) for each in targets(statement) if each.value is whole.node}
    for each in statements(whole.activation.body) if made and whole.activation.scope is None else ():
        for target, value in put_under(each, key):
            if ast.dump(target.value).replace("Load", "Store") in made:
                yield value


def _entry(made: ast.AST, key: Any) -> list[ast.expr]:
    match made:
        case ast.Dict(keys=names, values=values):
            entries = zip(names, values, strict=True)
            return [value for name, value in entries if isinstance(name, ast.Constant) and name.value == key]
        case ast.DictComp(value=value, generators=[ast.comprehension(iter=iterated), *_]):
            whole = match_code("$whole.items()", iterated)
            return [value, item_of(whole["whole"], key)] if whole and hands_on(value, of_dtypes=True) else [value]
        case ast.List(elts=parts) | ast.Tuple(elts=parts) if type(key) is int and -len(parts) <= key < len(parts):
            return [parts[key]]
        case ast.Call(keywords=words) if called_name(made) == "dict":
            return [word.value for word in words if word.arg == key]
    return []


def _loaded(reader: Reader, node: ast.expr, activation: Activation, levels: int = 4) -> Definition | None:
    """Return the `torch.load` call behind a container: for `saved["scaler"]["mean"]` that of `saved`."""
    if isinstance(node, ast.Call) and torch_name(reader.known(node.func, activation)) == "load":
        return Definition(node, (), activation, is_source=True)
    given = reader.definitions(node, activation) if levels else []
    given += [Definition(node.value, (), activation)] if levels and type(node) is ast.Subscript else []
    found = (_loaded(reader, each.node, each.activation, levels - 1) for each in given)
    return next((each for each in found if each is not None), None)
