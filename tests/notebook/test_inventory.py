"""The listing of a notebook's names: complete, by device, and without a line of the user's code being run."""

from __future__ import annotations

import copy
import gc
import itertools
import subprocess
import sys
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import devtrace
from devtrace.notebook.inventory.inventory import MOST_ROWS, drain, listing
from devtrace.notebook.inventory.tensor_info import UNKNOWN


def listed(**names: Any) -> dict[str, Any]:
    return drain(listing(names))


def row(name: str, found: dict[str, Any]) -> dict[str, Any]:
    return next(row for row in found["holdings"] if row["name"] == name)


def devices(row: dict[str, Any]) -> dict[str, tuple[int, int, int]]:
    return {each["device"]: (each["tensors"], each["parameters"], each["bytes"]) for each in row["devices"]}


def test_a_tensor_is_listed_on_its_own_device_when_its_simulation_has_ended() -> None:
    with devtrace.simulate("cuda:1"):
        net, x = nn.Linear(2, 2).cuda(), torch.ones(3, device="cuda")
    found = listed(net=net, x=x, y=torch.ones(1))
    assert devices(row("net", found)) == {"cuda:0": (2, 6, 24)}
    assert devices(row("x", found)) == {str(x.device): (1, 0, 12)}
    assert [(each["device"], each["simulated"]) for each in found["devices"]] == [("cpu", False), ("cuda:0", True)]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
        self.register_buffer("scale", torch.ones(3))


def test_a_tensor_is_listed_with_device_shape_dtype_and_bytes() -> None:
    found = row("x", listed(x=torch.zeros(3, 4, dtype=torch.float16)))
    assert (found["kind"], found["shape"], found["dtype"], found["type"]) == ("tensor", [3, 4], "float16", "Tensor")
    assert devices(found) == {"cpu": (1, 0, 24)}


def test_a_model_is_listed_with_its_parameters_counted() -> None:
    found = row("net", listed(net=Net()))
    assert found["type"] == "Net"
    assert devices(found) == {"cpu": (5, 40, 172)}
    assert "parts" not in found


def test_a_mixed_model_names_the_largest_parts_that_lie_elsewhere() -> None:
    net = Net()
    net.body.extend([nn.Linear(4, 4) for _ in range(4)])
    net.body[1].to("meta")
    net.head = nn.Linear(4, 2, device="meta")
    net.bias = nn.Parameter(torch.empty(2, device="meta"))
    found = row("net", listed(net=net))
    assert found["main"] == "cpu"
    assert [(part["path"], part["kind"], part["type"]) for part in found["parts"]] == [
        ("bias", "parameter", "Parameter"),
        ("body.1", "module", "Linear"),
        ("head", "module", "Linear"),
    ]
    assert devices(found["parts"][2]) == {"meta": (2, 10, 40)}
    assert (found["parts"][0]["shape"], found["parts"][0]["dtype"]) == ([2], "float32")


def test_what_torch_does_not_register_is_part_of_the_model_and_marked_as_unregistered() -> None:
    net = Net().to("meta")
    net.mask = torch.ones(2)
    vars(net)["heads"] = [nn.Linear(1, 1)]
    parts = row("net", listed(net=net))["parts"]
    assert [(part["path"], part["kind"]) for part in parts] == [("mask", "attribute"), ("heads[0]", "unregistered")]


def test_a_listing_of_a_large_model_makes_next_to_nothing_for_the_garbage_collector() -> None:
    # A collection of everything, in a process with torch, holds up whatever the kernel is asked next by 100 ms.
    net = nn.Sequential(*(nn.Sequential(*(nn.Linear(1, 1) for _ in range(10))) for _ in range(30)))
    drain(listing({"net": net}))  # torch makes an object for each storage that is asked for, and keeps it
    steps = listing({"net": net})
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        for _ in itertools.islice(steps, 900):
            pass
        made = len(gc.get_objects()) - before
    finally:
        gc.enable()
    assert made < 150  # there are 600 parameters


def test_an_optimizer_is_listed_by_the_devices_of_its_parameters_and_the_bytes_of_its_state() -> None:
    net = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    net(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    found = row("optimizer", listed(optimizer=optimizer))
    assert (found["kind"], found["type"]) == ("optimizer", "SGD")
    assert devices(found) == {"cpu": (4, 20, 80)}


def test_the_steps_that_an_optimizer_counts_on_the_cpu_put_it_on_no_second_device() -> None:
    with devtrace.simulate("cuda:1"):
        net = nn.Linear(4, 4).cuda()
        optimizer = torch.optim.Adam(net.parameters())
        net(torch.ones(1, 4, device="cuda")).sum().backward()
        optimizer.step()
        left = torch.optim.Adam(net.parameters())
        left.load_state_dict(optimizer.state_dict())
        left.state[net.weight]["exp_avg"] = left.state[net.weight]["exp_avg"].cpu()
        found = listed(optimizer=optimizer, left=left)
        assert list(devices(row("optimizer", found))) == ["cuda:0"]
        assert devices(row("left", found))["cpu"][0] == 1


def test_containers_and_stored_attributes_are_looked_into() -> None:
    x, y, z, net = torch.ones(1), torch.ones(2), torch.ones(3), Net()
    found = listed(batch={"ids": x}, pair=(1, [y]), trainer=SimpleNamespace(model=net, best={"w": z}))
    assert {each["name"] for each in found["holdings"]} == {
        "batch['ids']", "pair[1][0]", "trainer.model", "trainer.best['w']",
    }  # fmt: skip


def test_one_object_under_several_names_is_one_row_with_the_shortest_name_first() -> None:
    x = torch.ones(1)
    found = listed(batch=[x], x=x, again=x)
    assert [(each["name"], each["names"]) for each in found["holdings"]] == [("x", ["again", "batch[0]"])]


def test_a_storage_shared_by_views_is_counted_once() -> None:
    x = torch.ones(100)
    found = listed(x=x, y=x[:10], z=x.view(10, 10))
    assert devices(found) == {"cpu": (3, 0, 400)}
    assert devices(row("y", found)) == {"cpu": (1, 0, 400)}


def test_a_models_parameters_are_not_counted_again_for_its_optimizer_or_its_layers() -> None:
    net = Net()
    found = listed(net=net, layer=net.body[0], sgd=torch.optim.SGD(net.parameters(), lr=0.1))
    assert devices(found) == {"cpu": (5, 40, 172)}


def test_mixed_models_come_first_then_the_largest() -> None:
    mixed = Net()
    mixed.body.to("meta")
    found = listed(small=torch.ones(1), large=torch.ones(1000), mixed=mixed)
    assert [each["name"] for each in found["holdings"]] == ["mixed", "large", "small"]


def test_names_that_have_no_tensor_list_nothing() -> None:
    found = listed(a=1, b="x", c=[1, 2], d=torch, e=Net, f=None, g=Net.forward)
    assert found == {"devices": [], "holdings": [], "left_out": 0, "cut": False}


def refuse(*args: Any, **kwargs: Any) -> Any:
    raise AssertionError("code of the user's ran")


class Trap:
    """Every way in is a trap."""

    __getattr__ = __iter__ = __eq__ = __hash__ = __repr__ = __bool__ = __len__ = refuse
    y = property(refuse)
    __class__ = property(refuse, lambda self, value: None)

    def __init__(self) -> None:
        self.x = torch.ones(2)


class Meta(type):
    __eq__ = __hash__ = __getattribute__ = __instancecheck__ = refuse


class Odd(metaclass=Meta):
    def __init__(self) -> None:
        self.z = torch.ones(3)


class TrapDict(dict[str, Any]):
    items = __iter__ = __getitem__ = refuse


class TrapTensor(torch.Tensor):
    __torch_function__ = classmethod(refuse)


class TrapModule(Net):
    __getattr__ = named_parameters = children = refuse


def test_no_code_of_the_user_runs() -> None:
    inside = TrapDict()
    dict.__setitem__(inside, "w", torch.ones(4))
    trapped = torch.ones(2).as_subclass(TrapTensor)
    net = TrapModule.__new__(TrapModule)
    net.__dict__ |= Net().__dict__
    found = listed(trap=Trap(), odd=Odd(), inside=inside, trapped=trapped, net=net)
    assert {each["name"] for each in found["holdings"]} == {"trap.x", "odd.z", "inside['w']", "trapped", "net"}
    assert devices(row("trapped", found)) == {"cpu": (1, 0, 8)}


class Wrapped(torch.Tensor):
    """Would be asked for its device and shape by the dispatcher."""

    @staticmethod
    def __new__(cls) -> Any:
        return torch.Tensor._make_wrapper_subclass(
            cls, (2,), dispatch_device=True, dispatch_sizes_strides_policy="sizes"
        )

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        raise AssertionError(f"__torch_dispatch__({func}) ran")


def test_a_tensor_whose_class_answers_for_itself_is_listed_but_not_asked() -> None:
    found = row("wrapped", listed(wrapped=Wrapped()))
    assert (found["type"], [each["device"] for each in found["devices"]]) == ("Wrapped", [UNKNOWN])


def test_a_function_mode_of_the_user_is_not_asked() -> None:
    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, *args: Any, **kwargs: Any) -> Any:
            raise AssertionError("the mode was asked")

    x = torch.ones(2)
    with Mode():
        steps = listing({"x": x})
        found = drain(steps)
    assert devices(row("x", found)) == {"cpu": (1, 0, 8)}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.eye(3).to_sparse(),
        lambda: torch.eye(3).to_sparse_csr(),
        lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        lambda: torch.ones(2, device="meta"),
        lambda: nn.LazyLinear(3).weight,
        lambda: torch.tensor(1.0),
        lambda: torch.ones(0),
    ],
)
def test_every_kind_of_tensor_is_listed(make: Callable[[], torch.Tensor]) -> None:
    assert row("x", listed(x=make()))["kind"] == "tensor"


def test_fake_tensors_have_the_device_that_they_pretend() -> None:
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        x = torch.ones(2)
    assert row("x", listed(x=x))["devices"][0]["device"] in ("cpu", "meta")


def test_listing_changes_nothing_and_keeps_nothing_alive() -> None:
    net = Net()
    before = copy.deepcopy(net.state_dict())
    rng = torch.random.get_rng_state()
    x = torch.ones(2)
    alive = weakref.ref(x)
    steps = listing({"net": net, "x": x})
    next(steps)
    steps.close()
    drain(listing({"net": net, "x": x}))
    del x
    gc.collect()
    assert alive() is None
    assert torch.equal(rng, torch.random.get_rng_state())
    assert all(torch.equal(value, before[key]) for key, value in net.state_dict().items())
    assert set(vars(net)) == set(vars(Net()))


def test_a_model_that_contains_itself_and_a_list_that_contains_itself_end() -> None:
    net = Net()
    vars(net)["me"] = [net]
    loop: list[Any] = [torch.ones(1)]
    loop.append(loop)
    assert {each["name"] for each in listed(net=net, loop=loop)["holdings"]} == {"net", "loop[0]"}


def test_more_tensors_than_are_sent_are_counted_and_named_as_left_out() -> None:
    found = listed(**{f"x{i}": torch.ones(1) for i in range(MOST_ROWS + 5)})
    assert (len(found["holdings"]), found["left_out"], devices(found)["cpu"][0]) == (MOST_ROWS, 5, MOST_ROWS + 5)


def test_a_list_that_is_too_long_to_be_searched_is_marked_as_cut_and_hides_nothing_else() -> None:
    found = listed(rows=[[] for _ in range(20_000)], x=torch.ones(1))
    assert found["cut"]
    assert [each["name"] for each in found["holdings"]] == ["x"]


def test_names_may_come_and_go_between_two_steps() -> None:
    names: dict[str, Any] = {f"x{i}": torch.ones(1) for i in range(100)}
    steps = listing(names)
    next(steps)
    names.clear()
    names["y"] = 1
    assert len(drain(steps)["holdings"]) == 100


def test_without_torch_nothing_is_listed_and_torch_is_not_imported() -> None:
    code = (
        "import sys; from devtrace.notebook.inventory.inventory import listing\n"
        "try: next(listing({'x': [1]}))\n"
        "except StopIteration as end: print(end.value, 'torch' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "{'devices': [], 'holdings': [], 'left_out': 0, 'cut': False} False"


def test_the_tensors_of_a_long_list_are_one_row_with_each_storage_counted_once() -> None:
    rows = list(torch.ones(5000, 4).unbind())
    shown = drain(listing({"rows": rows, "few": [torch.ones(2), torch.ones(2)]}))
    rows_by_name = {row["name"]: row for row in shown["holdings"]}
    assert set(rows_by_name) == {"rows", "few[0]", "few[1]"}
    assert rows_by_name["rows"]["type"] == "5,000 tensors"
    (share,) = rows_by_name["rows"]["devices"]
    assert (share["tensors"], share["bytes"]) == (5000, 5000 * 4 * 4)
