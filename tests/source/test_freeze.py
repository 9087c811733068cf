"""Stand-ins say what the program's objects said, run nothing of them, and keep nothing of them."""

from __future__ import annotations

import ast
import gc
import json
import math
import weakref
from collections import OrderedDict, deque, namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from devtrace.diagnosis.evidence.access_paths import Walk
from devtrace.source import kinds
from devtrace.source.freeze import HIDDEN, MOST_OBJECTS, Freezer
from devtrace.source.object_walk import is_tensor, registered
from devtrace.source.safe_values import MISSING, Scope, evaluate, full_name_of
from devtrace.source.stand_in_rows import of_rows, to_rows
from devtrace.source.stand_ins import Named

Point = namedtuple("Point", "x y")
TENSOR = torch.ones(2, 3)


class Slotted:
    __slots__ = ("kept",)

    def __init__(self) -> None:
        self.kept = torch.zeros(1)


@dataclass
class Batch:
    mask: Any
    rows: list[Any]


class Net(nn.Module):
    table = (torch.ones(1),)

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(2, 2)
        self.blocks = nn.ModuleList([nn.Linear(2, 2)])
        self.register_buffer("scale", torch.ones(2))
        self.plain, self.where = torch.ones(1), torch.device("cpu")

    @property
    def device(self) -> torch.device:
        return self.lin.weight.device

    @property
    def offset(self) -> Any:
        return self.plain


def objects() -> dict[str, Any]:
    net, x = Net(), torch.ones(3)
    optimizer = torch.optim.Adam(net.parameters())
    net.lin(torch.ones(2)).sum().backward()
    optimizer.step()
    names: dict[str, Any] = {"net": net, "x": x, "optimizer": optimizer, "batch": {"mask": x, "n": 3, 7: [x, None]}}
    names |= {"point": Point(x, 2), "slotted": Slotted(), "made": Batch(x, [x]), "kind": Net, "half": torch.float16}
    names |= {"called": partial(net.lin, x), "method": net.forward, "held": lambda: x, "line": deque([x])}
    return names | {"device": "cuda:0", "spaced": SimpleNamespace(a=x), "torch": torch, "deep": [[[x]]], "pair": (x, 1)}


def frozen(
    names: dict[str, Any], mentioned: str = "net torch ones device zeros mask"
) -> tuple[dict[str, Any], Freezer]:
    rows: dict[int, int] = {}
    freezer = Freezer(lambda tensor: rows.setdefault(id(tensor), len(rows)), mentioned.split())
    made = {name: freezer.of(value) for name, value in names.items()}
    freezer.fill()
    return made, freezer


def saved(names: dict[str, Any]) -> dict[str, Any]:
    """Return stand-ins as a case in a file has them."""
    found: dict[str, Any] = of_rows(json.loads(json.dumps(to_rows(frozen(names)[0], {}))), {})
    return found


def told(value: Any) -> object:
    """Return what an explanation may ask of a value."""
    if is_tensor(value):
        tensor = value if not isinstance(value, torch.Tensor) else None
        live = None if tensor is not None else (str(value.device), tuple(value.shape), str(value.dtype)[6:])
        return live or (tensor._device, tensor._shape, tensor._dtype)  # type: ignore[union-attr]
    if value is MISSING or type(value) in (int, bool, type(None)):
        return repr(value)
    if kinds.device_named_by(value) or kinds.dtype_named_by(value):
        return kinds.device_named_by(value) or kinds.dtype_named_by(value)
    return full_name_of(type(value))[1], kinds.is_module(value), kinds.is_optimizer(value)


@pytest.mark.parametrize(
    "code",
    [
        *("net", "net.lin.weight", "net.blocks[0].bias", "net.scale", "net.plain", "net.offset", "net.device"),
        *("net.where", "net.table[0]", "net.training", "net.nothing", "batch['mask']", "batch[7][0]", "batch['no']"),
        *("point.x", "point.y", "point[0]", "slotted.kept", "made.mask", "made.rows[0]", "spaced.a", "deep[0][0][0]"),
        *("half", "device", "pair[1]", "optimizer", "kind.table[0]", "batch['n']", "x.device", "line[0]"),
    ],
)
def test_a_stand_in_answers_as_the_object_did(code: str) -> None:
    names = objects()
    node = ast.parse(code, mode="eval").body
    expected = told(evaluate(node, Scope(names, {})))
    assert told(evaluate(node, Scope(frozen(names)[0], {}))) == expected
    assert told(evaluate(node, Scope(saved(names), {}))) == expected


def test_a_stand_in_of_a_file_has_the_names_and_the_parts_of_the_one_that_was_saved() -> None:
    names = objects() | {"numbers": [math.inf, 2**70, 1j, -0.0, ...], "range": range(3, 9, 2), "kept": {1: {2: "cuda"}}}
    names["numbers"] += [math.nan, names]  # which leads to itself
    made, again = frozen(names)[0], saved(names)
    walks = [Walk([{name: (value, "variable") for name, value in each.items()}]) for each in (made, again)]
    first, second = ([[path.text for path in walk.names(each)] for each in walk.tensors] for walk in walks)
    assert first == second
    assert repr(again["numbers"][:6]) == repr(made["numbers"][:6])
    assert again["numbers"][6]["numbers"] is again["numbers"]
    assert (again["range"], again["kept"]) == (made["range"], made["kept"])
    assert again["held"].__code__.co_firstlineno == made["held"].__code__.co_firstlineno


def test_a_class_in_a_file_has_no_method_that_python_would_call() -> None:
    data = json.loads(json.dumps(to_rows(frozen({"made": Batch(1, [])}, "net")[0], {})))
    (row,) = (each for each in data["rows"] if each[0] == "class" and each[1][1] == "Batch")
    row[3] |= dict.fromkeys(("__del__", "__eq__", "__hash__", "__init_subclass__", "mask"), row[3]["__init__"])
    kind = type(of_rows(data, {})["made"])
    assert {"__del__", "__eq__", "__hash__", "__init_subclass__", "__init__", "mask"} & vars(kind).keys() == {
        "__init__",
        "mask",
    }


def test_nothing_is_saved_but_stand_ins_and_records() -> None:
    with pytest.raises(TypeError, match=r"torch\.nn\.modules\.linear\.Linear is neither a stand-in nor a record"):
        to_rows([nn.Linear(1, 1)], {})


def test_a_tensor_has_the_same_names() -> None:
    names = objects()
    made, freezer = frozen(names)
    live = Walk([{name: (value, "variable") for name, value in names.items()}])
    walk = Walk([{name: (value, "variable") for name, value in made.items()}])
    assert len(walk.tensors) == len(live.tensors)
    for tensor in walk.tensors:
        texts = {path.text for path in live.names(freezer.live[id(tensor)])}
        assert {path.text for path in walk.names(tensor)} >= {each for each in texts if "__dict__" not in each}
    assert [path for path, _ in registered(made["net"])] == [path for path, _ in registered(names["net"])]


class _Traps(type):
    def __getattribute__(cls, name: str) -> Any:
        RAN.append(name)
        return super().__getattribute__(name)

    def __hash__(cls) -> int:
        RAN.append("hash")
        return 1

    def __eq__(cls, other: object) -> bool:
        RAN.append("eq of a class")
        return cls is other


RAN: list[str] = []


def trap(name: str) -> Callable[..., Any]:
    return lambda *_, **__: RAN.append(name)


METHODS = "getattribute getattr eq hash bool len iter call getitem contains repr str del set_name init_subclass get set"
TRAPS = {f"__{name}__": trap(name) for name in METHODS.split()}
Hostile: Any = _Traps("Hostile", (), {**TRAPS, "asked": property(trap("property")), "inner": object()})


def test_nothing_of_the_program_runs() -> None:
    one, other = object.__new__(Hostile), object.__new__(Hostile)
    names = {"one": one, "all": [one, {"k": other}, Hostile], "below": type.__new__(_Traps, "Below", (Hostile,), {})}
    RAN.clear()
    made, _ = frozen(names, "asked inner one")
    for code in ("one.asked", "one.inner", "one['k']", "all[1]['k'].asked", "below.inner", "one.nothing"):
        evaluate(ast.parse(code, mode="eval").body, Scope(made, {}))
    Walk([{name: (value, "variable") for name, value in made.items()}])
    del made
    gc.collect()
    assert RAN == []


def test_nothing_of_the_program_is_kept_alive() -> None:
    names = objects()
    cell = names["held"].__code__
    made, freezer = frozen(names)
    watched = [weakref.ref(each) for each in (names["net"], names["x"], names["optimizer"], names["held"])]
    assert all(each() is not None for each in watched)
    names.clear()
    del freezer
    gc.collect()
    assert [each() for each in watched] == [None] * len(watched)
    assert made["held"].__code__ is not cell
    assert made["held"]() is None


def test_no_text_is_kept_but_what_names_something() -> None:
    secret = "hf_secret"
    names = {"key": secret, "all": [secret, {"mask": secret, secret: 1}], "where": "cuda:1", "mode": "mask", "none": ""}
    made, freezer = frozen(names)
    assert made["key"] == made["all"][0] == made["all"][1]["mask"] == HIDDEN
    assert (made["where"], made["mode"], made["none"]) == ("cuda:1", "mask", "")
    assert freezer.keys == {"mask", secret}  # of a dictionary: an explanation may write it


def test_a_long_list_of_numbers_and_a_large_program_are_cut() -> None:
    rows = [{"x": [number]} for number in range(MOST_OBJECTS)]
    made, freezer = frozen({"numbers": list(range(5_000)), "rows": rows})
    assert len(made["numbers"]) == 1_000
    assert len(made["rows"]) == MOST_OBJECTS
    assert len(freezer.live) <= MOST_OBJECTS


def test_a_dictionary_of_a_class_of_its_own_is_read_as_one() -> None:
    made, _ = frozen({"table": OrderedDict(x=1)}, "items get values")
    assert (list(made["table"].items()), made["table"].get("x")) == ([("x", 1)], 1)


def test_a_function_of_torch_is_known_by_its_name() -> None:
    made, _ = frozen(objects())
    found = evaluate(ast.parse("torch.ones", mode="eval").body, Scope(made, {}))
    assert isinstance(found, Named)
    assert str(found) == "ones"
