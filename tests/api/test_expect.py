"""`devtrace.expect`: every tensor that is elsewhere is named, in objects, blocks, functions, without running theirs."""

from __future__ import annotations

import re
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import devtrace
from devtrace.api.expect import Expectation, check
from devtrace.words.errors import DeviceError, UsageError
from failing import birth_of, culprit_of

pytestmark = pytest.mark.usefixtures("two")


def elsewhere(device: str = "cuda:0", **objects: object) -> dict[str, tuple[str, str]]:
    """Name -> device and fix of what `expect` complains about."""
    try:
        check(objects, device)
    except DeviceError as error:
        return {found.name: (found.device, found.fix) for found in error.tensors}
    return {}


class Net(nn.Module):
    table: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
        self.head = nn.Linear(4, 2)
        self.register_buffer("scale", torch.ones(4))


def test_a_model_that_is_all_there_is_no_error() -> None:
    model = Net().to("cuda:0")
    batch = {"x": torch.zeros(2, 4, device="cuda:0"), "n": 3, "names": ["a"]}
    opt = torch.optim.AdamW(model.parameters())
    model.head(model.body(batch["x"])).sum().backward()
    opt.step()
    devtrace.expect(model, batch, opt, device="cuda:0")


def test_all_that_is_elsewhere_is_named_not_only_the_first() -> None:
    model = Net().to("cuda:0")
    model.head = nn.Linear(4, 2)
    model.table = torch.zeros(3)
    batch = {
        "x": torch.zeros(2, 4, device="cuda:0"),
        "extra": {"mask": [torch.zeros(1), torch.zeros(1, device="cuda:1")]},
    }
    assert elsewhere(model=model, batch=batch) == {
        "model.head.weight": ("cpu", 'model.head.to("cuda:0")'),
        "model.head.bias": ("cpu", 'model.head.to("cuda:0")'),
        "model.table": (
            "cpu",
            '`register_buffer("table", ..., persistent=False)` in its module, so that `.to()` takes it along',
        ),
        'batch["extra"]["mask"][0]': ("cpu", 'batch["extra"]["mask"][0] = batch["extra"]["mask"][0].to("cuda:0")'),
        'batch["extra"]["mask"][1]': ("cuda:1", 'batch["extra"]["mask"][1] = batch["extra"]["mask"][1].to("cuda:0")'),
    }  # fmt: skip


def test_a_model_that_was_never_moved_is_moved_by_one_call() -> None:
    model = Net()
    assert {fix for _, fix in elsewhere(model=model).values()} == {'model.to("cuda:0")'}


def test_the_message_names_what_was_got_what_was_expected_each_tensor_and_its_fix() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2, bias=False)).to("cuda:0")
    model[1].to("cpu")
    with pytest.raises(DeviceError) as caught:
        devtrace.expect(model, device="cuda:0")
    # Its line of birth, the last move, is known where devtrace's hooks are in, as after any recording.
    without_birth = re.sub(r"   Created test_expect\.py line \d+  .*", "", str(caught.value))
    assert without_birth == (
        "tensors-elsewhere: got 1 tensor on cpu; all of model was expected on cuda:0; move them as shown.\n"
        '  model.1.weight   cpu   float32 2×2\n      Fix  model[1].to("cuda:0")'
    )


def test_the_birth_is_named_where_it_was_seen() -> None:
    with devtrace.record():
        mask = torch.zeros(3)
    with pytest.raises(
        DeviceError, match=r"mask   cpu   float32 3   Created test_expect.py line \d+  torch.zeros\(3\)"
    ):
        devtrace.expect(mask, device="cuda:0")


def test_of_many_tensors_the_message_shows_twenty_and_counts_the_rest() -> None:
    many = [torch.zeros(1) for _ in range(50)]
    with pytest.raises(DeviceError, match="and 30 more") as caught:
        devtrace.expect(many, device="cuda:0")
    assert len(caught.value.tensors) == 50


def test_optimizers_are_looked_into_and_their_step_counts_may_stay() -> None:
    model = nn.Linear(2, 2)
    opt = torch.optim.Adam(model.parameters())
    model(torch.zeros(1, 2)).sum().backward()
    opt.step()
    model.to("cuda:0")
    found = elsewhere(model=model, opt=opt)
    assert {name for name in found if "exp_avg" in name} == {
        f'opt.state[model.{name}]["{average}"]' for name in ("weight", "bias") for average in ("exp_avg", "exp_avg_sq")
    }
    assert not [name for name in found if "step" in name]


Pair = namedtuple("Pair", "left right")


@dataclass
class Batch:
    x: Any
    inner: Any = None


class Slotted:
    __slots__ = ("mask",)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda tensor: [[(tensor,)]], "thing[0][0][0]"),
        (lambda tensor: OrderedDict(a={1: tensor}), 'thing["a"][1]'),
        (lambda tensor: Pair(0, tensor), "thing.right"),
        (lambda tensor: Batch(None, Batch(tensor)), "thing.inner.x"),
        (lambda tensor: nn.ParameterList([nn.Parameter(tensor)]), "thing.0"),
        (lambda tensor: nn.ModuleDict({"a": nn.ParameterDict({"b": nn.Parameter(tensor)})}), "thing.a.b"),
    ],
)
def test_a_tensor_is_found_at_any_depth(make: Any, name: str) -> None:
    thing = make(torch.zeros(2))
    assert list(elsewhere(thing=thing)) == [name]


def test_a_tensor_is_found_a_thousand_levels_deep() -> None:
    deep: Any = torch.zeros(1)
    for _ in range(1000):
        deep = [deep]
    assert [name.count("[0]") for name in elsewhere(deep=deep)] == [1000]


def test_a_tensor_in_a_slot_is_found() -> None:
    holder = Slotted()
    holder.mask = torch.zeros(1)  # type: ignore[attr-defined]
    assert list(elsewhere(holder=holder)) == ["holder.mask"]


def test_things_that_refer_to_each_other_are_looked_at_once() -> None:
    ring: list[Any] = [torch.zeros(1)]
    ring.append(ring)
    assert list(elsewhere(ring=ring, again=ring)) == ["ring[0]"]


def test_data_sets_and_loaders_belong_on_the_cpu() -> None:
    data = torch.utils.data.TensorDataset(torch.zeros(4, 2))
    loader = torch.utils.data.DataLoader(data)
    assert elsewhere(data=data, loader=loader) == {}


def test_no_code_of_the_objects_runs() -> None:
    class Wary:
        def __init__(self) -> None:
            object.__setattr__(self, "held", torch.zeros(1))

        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(name)

        @property
        def trap(self) -> Any:
            raise AssertionError("property")

        def __iter__(self) -> Any:
            raise AssertionError("iter")

        def __eq__(self, other: object) -> bool:
            raise AssertionError("eq")

        def __bool__(self) -> bool:
            raise AssertionError("bool")

        def __repr__(self) -> str:
            raise AssertionError("repr")

        __hash__ = None  # type: ignore[assignment]

    class WaryDict(dict[str, Any]):
        def items(self) -> Any:
            raise AssertionError("items")

        def __getitem__(self, key: str) -> Any:
            raise AssertionError("getitem")

    class WaryTensor(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise AssertionError("torch_function")

    wary, keyed = Wary(), WaryDict(a=torch.zeros(1))
    tensor = torch.Tensor._make_subclass(WaryTensor, torch.zeros(1))
    assert list(elsewhere(wary=wary, keyed=keyed, tensor=tensor)) == ["tensor", "wary.held", 'keyed["a"]']


def test_a_device_without_index_is_any_of_its_kind() -> None:
    x = torch.zeros(1, device="cuda:1")
    devtrace.expect(x, device="cuda")
    devtrace.expect(x, device=torch.device("cuda", 1))
    assert list(elsewhere("cpu", x=x)) == ["x"]


def test_a_block_that_keeps_to_it_is_no_error() -> None:
    model = nn.Linear(4, 2).to("cuda:0")
    with devtrace.expect("cuda:0", syncs=0, copies=1):
        model(torch.randn(3, 4).to("cuda:0")).sum().backward()


def test_a_block_that_computes_elsewhere_raises_with_the_tensor_and_its_birth() -> None:
    x = torch.randn(3, 4)

    @devtrace.expect("cuda:0")
    def compute() -> torch.Tensor:
        weight = torch.ones(4, 2)
        y = x @ weight
        return y + 1

    with pytest.raises(DeviceError) as caught:
        compute()
    assert caught.value.slug == "computed-elsewhere"
    message = str(caught.value)
    assert "torch.ones(4, 2)" in message
    assert len(caught.value.tensors) == 2


def test_numbers_without_dimensions_may_stay_on_the_cpu() -> None:
    scale = torch.tensor(2.0)
    with devtrace.expect("cuda:0"):
        torch.ones(3, device="cuda:0") * scale


def test_a_block_that_has_more_memory_than_expected_raises() -> None:
    before = torch.ones(1 << 20, device="cuda:0")
    with devtrace.expect(peak="cuda:0 <= 8MB"):
        before + 1
    with pytest.raises(DeviceError, match=r"8\.0 MiB on cuda:0 at the peak"), devtrace.expect(peak="cuda:0 <= 6MB"):
        before + 1


@pytest.mark.parametrize(("what", "syncs", "copies"), [("syncs", 1, None), ("copies", None, 1)])
def test_a_block_with_too_many_syncs_or_copies_raises_with_their_lines(
    what: str, syncs: int | None, copies: int | None
) -> None:
    x = torch.ones(3, device="cuda:0")

    @devtrace.expect(syncs=syncs, copies=copies)
    def loop() -> None:
        for _ in range(3):
            x.sum().item()
            x.to("cuda:1")

    with pytest.raises(DeviceError) as caught:
        loop()
    assert caught.value.slug == f"{what}-unexpected"
    assert f"3 {what}   test_expect.py line" in str(caught.value)


def test_the_blocks_own_exception_passes_through_unchanged() -> None:
    mine = KeyError("mine")

    @devtrace.expect("cuda:0")
    def fails() -> None:
        torch.ones(3) @ torch.ones(3)
        raise mine

    with pytest.raises(KeyError) as caught:
        fails()
    assert caught.value is mine


def test_a_function_is_checked_at_each_call() -> None:
    @devtrace.expect("cuda:0", syncs=0)
    def step(x: torch.Tensor) -> float:
        """Its own words."""
        return (x * 2).sum().item()

    assert step.__doc__ == "Its own words."
    with pytest.raises(DeviceError, match="syncs-unexpected"):
        step(torch.ones(2, device="cuda:0"))
    with pytest.raises(DeviceError, match="computed-elsewhere"):
        step(torch.ones(2))


def test_a_recording_that_expects_a_device_reports_each_tensor_computed_with_elsewhere() -> None:
    with devtrace.record(expect="cuda:0") as recording:
        x = torch.ones(4)
        y = x * 2
    assert y.device.type == "cpu"
    [finding] = [finding for finding in recording.report.findings if finding.rule == "expectation"]
    assert finding.severity == "error"
    assert finding.message == "`torch.ones(4)` is on cpu; all computation was expected on cuda:0."
    assert (culprit_of(finding).born and birth_of(finding).text) == "torch.ones(4)"
    assert "expected on cuda:0" in recording.report.text
    assert "Created  test_expect.py line" in recording.report.text


def expectations(recording: devtrace.record) -> list[str]:
    return [finding.message for finding in recording.report.findings if finding.rule == "expectation"]


def test_a_program_may_make_its_model_and_its_batches_on_the_cpu_and_move_them() -> None:
    with devtrace.record(expect="cuda:0") as recording:
        head = nn.Linear(4, 2)
        nn.init.orthogonal_(head.weight)
        model = nn.Sequential(nn.Embedding(9, 4), nn.GRU(4, 4), head)
        model.to("cuda:0")
        for (x,) in DataLoader(TensorDataset(torch.arange(8)), batch_size=4, shuffle=True):
            model[0](x.to("cuda:0"))
    assert expectations(recording) == []


def test_what_a_program_computes_elsewhere_and_never_moves_is_reported() -> None:
    with devtrace.record(expect="cuda:0") as recording:
        x = torch.ones(4)
        (x * 2).to("cuda:0")
        x + 1
    assert expectations(recording) == ["`torch.ones(4)` is on cpu; all computation was expected on cuda:0."]


def test_layers_that_a_plain_list_left_on_the_cpu_are_one_finding_for_all_of_their_tensors() -> None:
    layers = [nn.Linear(4, 4) for _ in range(3)]
    with devtrace.record(expect="cuda:0") as recording:
        for _ in range(2):
            x = torch.ones(2, 4, device="cuda:0")
            for layer in layers:
                x = layer(x.cpu()).relu()
            x.sum().backward()
        far = torch.arange(4.0) / 2
    assert far.device.type == "cpu"
    group, alone = sorted(expectations(recording), key=len, reverse=True)
    assert "other tensors are on cpu" in group
    assert alone.startswith("`torch.arange(4.0)` is on cpu")


def test_filling_a_tensor_is_no_computation_and_preparing_one_in_a_block_is() -> None:
    with devtrace.expect("cuda:0"):
        torch.empty(3).normal_().zero_()
        torch.empty(3).fill_(2.0)
    with (
        pytest.raises(DeviceError, match=r'move it to "cuda:0" before test_expect\.py line'),
        devtrace.expect("cuda:0"),
    ):
        (torch.ones(4) * 2).to("cuda:0")


def test_a_block_reports_all_that_it_did_against_what_was_expected() -> None:
    def block() -> None:
        with devtrace.expect("cuda:0", syncs=0, copies=0):
            (torch.ones(4) * 2).to("cuda:0").sum().item()

    with pytest.raises(DeviceError) as caught:
        block()
    assert caught.value.slug == "computed-elsewhere"
    assert [note.partition(":")[0] for note in caught.value.__notes__] == [
        "syncs-unexpected", "copies-unexpected",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "slug"),
    [
        (lambda: devtrace.expect(torch.zeros(1)), "expect-device"),  # type: ignore[call-overload]
        (lambda: devtrace.expect(torch.zeros(1), device=""), "expect-device"),
        (lambda: devtrace.expect(torch.zeros(1), device="cpu", syncs=0), "expect-counts"),  # type: ignore[call-overload]
    ],
)
def test_what_cannot_be_expected_is_refused(call: Any, slug: str) -> None:
    with pytest.raises(UsageError) as caught:
        call()
    assert caught.value.slug == slug


def test_a_block_without_a_device_counts_only() -> None:
    assert isinstance(devtrace.expect(syncs=0), Expectation)
    with devtrace.expect(syncs=0):
        torch.ones(2) * 2
