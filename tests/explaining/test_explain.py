"""`devtrace.explain`: the report on a device error that nobody recorded; all else gets silence."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import sys
import threading
import traceback
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import devtrace
from devtrace.api.results import Report
from devtrace.diagnosis.evidence.error_origins import path_to_origin
from devtrace.diagnosis.findings import Finding
from devtrace.recording.columns import stamps
from failing import Text, birth_of, culprit_of, fails
from odd_programs import Lent, Scaled
from programs import run
from warm import Warm

pytestmark = pytest.mark.usefixtures("hooked")


def raised(program: Callable[[], object]) -> BaseException:
    try:
        program()
    except BaseException as error:  # noqa: BLE001
        return error
    pytest.fail("the program did not raise")


unrecorded = functools.partial(fails, "untraced", simulate="")


def explained(program: Callable[[], object]) -> Finding:
    """Return the one finding on the error of a program."""
    error = raised(program)
    assert path_to_origin(error)
    (finding,) = devtrace.explain(error).findings
    return finding


def mixed() -> torch.Tensor:
    x = torch.ones(3, device="cuda:0")
    table = torch.zeros(3)
    return x + table


def assert_explains_mixed(finding: Finding) -> None:
    assert (culprit_of(finding).name, finding.devices) == ("table", ("cuda:0", "cpu"))
    assert birth_of(finding).text == "table = torch.zeros(3)"
    assert finding.site is not None
    assert finding.site.text == "x + table"


def test_an_error_that_nobody_recorded_is_explained() -> None:
    finding = explained(mixed)
    assert_explains_mixed(finding)
    assert culprit_of(finding).certainty == "inferred"
    assert "Probably, by what the source says" in finding.message


def test_the_report_mentions_once_that_nothing_was_recorded() -> None:
    text = str(devtrace.explain(raised(mixed)))
    assert text.count("this code ran untraced") == 1
    assert " ops" not in text


def test_what_the_reader_remarks_is_in_the_language_of_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    error = raised(mixed)
    monkeypatch.setenv("DEVTRACE_LANGUAGE", "zh")
    assert "这段代码运行时未被追踪：错误之前的经过是从源代码读出的" in devtrace.explain(error).notes
    assert devtrace.explain(KeyError("x")).notes == ("这个错误与设备无关",)


def test_the_error_that_is_handled_is_the_default() -> None:
    try:
        mixed()
    except RuntimeError:
        report = devtrace.explain()
    (finding,) = report.findings
    assert_explains_mixed(finding)


def test_where_none_is_handled_the_last_one_that_was_shown_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "last_value", raised(mixed), raising=False)
    (finding,) = devtrace.explain().findings
    assert_explains_mixed(finding)


# Silence.


def _user_raises() -> None:
    raise RuntimeError("model and batch must be on the same device, but found at least two devices, cuda:0 and cpu!")


def _user_asserts() -> None:
    x = torch.ones(3, device="cuda:0")
    assert x.device.type == "cpu", "Expected all tensors to be on the same device"


def _out_of_memory() -> None:
    torch.OutOfMemoryError.__init__(error := torch.OutOfMemoryError(), "CUDA out of memory. GPU 0 has a total capacity")
    raise error


def _twice_backward() -> None:
    loss = torch.ones(2, device="cuda:0", requires_grad=True).exp().sum()
    loss.backward()
    loss.backward()


def _changed_after_use() -> None:
    x = torch.ones(2, device="cuda:0", requires_grad=True)
    y = x.exp()
    y.add_(1)
    y.sum().backward()


class _NoRows(Dataset[torch.Tensor]):
    """A data set whose items are not there."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> torch.Tensor:
        rows: dict[str, torch.Tensor] = {}
        return rows["on the same device"]


def _worker_without_key() -> None:
    next(iter(DataLoader(_NoRows(), num_workers=1, multiprocessing_context="fork")))


def _raised_by(sentence: str) -> Callable[[], None]:
    """Raise what torch's own code would raise: the message of a driver or a library, without an op."""

    def program() -> None:
        torch._assert(False, sentence)

    return program


@pytest.mark.parametrize(
    "program",
    [
        lambda: torch.ones(2, device="cuda:0") @ torch.ones(3, device="cuda:0"),
        lambda: torch.ones(2, device="cuda:0") + torch.ones(3, device="cuda:0"),
        lambda: nn.Linear(2, 2).load_state_dict({"weight": torch.ones(3, 3)}),
        lambda: torch.ones(3, device="cuda:0")[5],
        _twice_backward,
        _changed_after_use,
        _worker_without_key,
        _raised_by("CUDA error: device-side assert triggered"),
        _raised_by("NCCL error: unhandled cuda error, two devices share one bus"),
        _raised_by("cuDNN error: CUDNN_STATUS_NOT_INITIALIZED on device cuda:0"),
        lambda: {"cpu": 1}["device"],
        _user_raises,
        _user_asserts,
        _out_of_memory,
        lambda: None.device,  # type: ignore[attr-defined]
    ],
)
def test_an_error_that_is_not_about_devices_gets_silence(program: Callable[[], object]) -> None:
    error = raised(program)
    assert not path_to_origin(error)
    assert devtrace.explain(error).findings == ()


@pytest.mark.parametrize(
    "sentence",
    [
        "index_add_(): self, index and source expected to be in the same device, but got (self) cpu, (index) accel:0",
        "Function MulBackward0 returned an invalid gradient at index 0 - expected device accel:0 but got cpu",
        "Tensor on device meta is not on the expected device accel:1!",
    ],
)
def test_a_sentence_of_torchs_counts_for_a_backend_outside_of_torch_too(sentence: str) -> None:
    assert path_to_origin(raised(_raised_by(sentence)))


def test_a_later_error_is_silent_though_one_about_devices_was_handled_before() -> None:
    def program() -> None:
        with contextlib.suppress(RuntimeError):
            mixed()
        raise KeyError("device")

    assert not path_to_origin(raised(program))


# Ways of an error.


def _again() -> None:
    try:
        mixed()
    except RuntimeError:
        raise


def _from() -> None:
    try:
        mixed()
    except RuntimeError as error:
        raise ValueError("the step failed") from error


def _from_none() -> None:
    try:
        mixed()
    except RuntimeError:
        raise ValueError("the step failed") from None


def _group() -> None:
    raise BaseExceptionGroup("several", [KeyError("x"), raised(mixed)])


def _noted() -> None:
    try:
        mixed()
    except RuntimeError as error:
        error.add_note("in step 3")
        raise


def _in_a_future() -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(mixed).result()


def _generated() -> None:
    def generate() -> Iterator[torch.Tensor]:
        yield torch.ones(1)
        yield mixed()

    list(generate())


def _awaited() -> None:
    async def step() -> torch.Tensor:
        return mixed()

    async def main() -> torch.Tensor:
        return await step()

    asyncio.run(main())


@pytest.mark.parametrize(
    "program", [_again, _from, _from_none, _group, _noted, _in_a_future, _generated, _awaited, lambda: mixed()]
)
def test_however_an_error_reaches_the_top_its_op_is_found(program: Callable[[], object]) -> None:
    assert_explains_mixed(explained(program))


def test_the_error_of_a_thread_is_explained() -> None:
    caught: list[Any] = []

    def work() -> None:
        caught.append(raised(mixed))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    (finding,) = devtrace.explain(caught[0]).findings
    assert_explains_mixed(finding)


@unrecorded(name="table", born=Text("torch.zeros(3)"))
def test_in_a_comprehension_the_birth_comes_from_the_list_that_it_goes_through() -> None:
    x = torch.ones(3, device="cuda:0")
    tables = [torch.zeros(3) for _ in range(2)]
    [x + table for table in tables]


def test_the_turn_of_a_comprehension_that_failed_is_the_one_that_mixes_devices_on_every_python() -> None:
    def program() -> dict[str, torch.Tensor]:
        x = torch.ones(3, device="cuda:0")
        first = torch.zeros(3, device="cuda:0")
        second = torch.arange(3)
        batch = {"ids": first, "mask": second}
        return {name: values + x for name, values in batch.items() if name}

    finding = explained(program)
    assert culprit_of(finding).name in ("values", "second")
    assert "torch.arange(3)" in birth_of(finding).text


def test_a_comprehensions_variable_hides_one_of_the_function_on_every_python() -> None:
    def program() -> list[torch.Tensor]:
        x = torch.ones(3, device="cuda:0")
        part = torch.full((3,), 2.0, device="cuda:0")
        rows = [torch.ones(3, device="cuda:0"), torch.rand(3)]
        assert part.device == rows[0].device
        return [torch.cat([x, part]) for x, part in zip([x, x], rows, strict=True)]

    finding = explained(program)
    assert {"part", "rows[1]"} <= {culprit_of(finding).name, *culprit_of(finding).names}
    assert culprit_of(finding).device == "cpu"


@unrecorded(name=Text("layer"), device="cpu")
def test_the_turn_of_a_comprehension_is_the_one_whose_layer_failed_below_on_every_python() -> list[list[torch.Tensor]]:
    x = torch.ones(1, 2, device="cuda:0")
    layers = [nn.Linear(2, 2).to("cuda"), nn.Linear(2, 2)]
    return [[layer(x) for layer in layers] for _ in range(1)]


@unrecorded(name="images", born="images = torch.zeros(3)")
def test_a_parameter_that_a_loop_gives_new_values_was_made_by_the_caller() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        weight = torch.ones(3, device="cuda:0")
        for _ in range(2):
            x = x + weight
        x = x * weight
        return x.mean(0)

    images = torch.zeros(3)
    forward(images)


@unrecorded(name="mask", site="gradient * mask")
def test_a_hook_in_backward_is_explained() -> None:
    weight = torch.ones(3, device="cuda:0", requires_grad=True)
    mask = torch.zeros(3)
    loss = (weight * 2).sum()
    weight.register_hook(lambda gradient: gradient * mask)
    loss.backward()


@fails("untraced", simulate="", cause="wrong-dtype", name="target")
def test_a_loss_that_goes_backward_where_it_is_computed_is_read_as_one_that_has_a_name() -> None:
    criterion, scores = nn.HuberLoss(), torch.ones(3, requires_grad=True)
    target = torch.ones(3, dtype=torch.float64)
    criterion(scores, target).backward()


def test_an_error_of_the_native_backward_pass_is_in_torchs_words() -> None:
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(context: Any, gradient: torch.Tensor) -> torch.Tensor:
            return gradient.cpu()

    def program() -> None:
        x = torch.ones(3, device="cuda:0", requires_grad=True)
        Wrong.apply(x).sum().backward()  # type: ignore[no-untyped-call]

    finding = explained(program)
    assert finding.site is not None
    assert finding.site.text == "Wrong.apply(x).sum().backward()"
    assert finding.cause in ("unknown", "wrong-device")


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_an_error_while_torch_compile_traces_is_explained(backend: str, warm: Warm, tmp_path: Path) -> None:
    (tmp_path / "bug.py").write_text(
        "import torch\n\n\ndef step(x, table):\n    return x + table\n\n\n"
        "def run(device):\n    table = torch.zeros(3)\n    x = torch.ones(3, device=device)\n"
        f"    torch.compile(step, backend={backend!r})(x, table)\n"
    )
    (finding,) = run(warm, tmp_path / "bug.py", mode="untraced").errors
    assert {*finding.devices} == {"cuda:0", "cpu"}
    assert finding.site is not None


class Wrapper(nn.Module):
    """A model as Lightning and accelerate wrap it: forward is another function's."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner
        self.forward = self._converted(inner.forward)

    def _converted(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            return forward(*args, **kwargs)

        return wrapped


@pytest.mark.parametrize("wrap", [lambda module: module, Wrapper])
def test_a_module_is_read_through_a_wrapper(wrap: Callable[[nn.Module], nn.Module]) -> None:
    def program() -> None:
        model = wrap(Scaled()).to("cuda:0")
        model(torch.ones(2, 3, device="cuda:0"))

    finding = explained(program)
    assert (finding.cause, culprit_of(finding).name.rpartition(".")[2]) == ("not-registered", "table")
    assert birth_of(finding).text == "self.table = torch.arange(3.0)"


class Rows(Dataset[torch.Tensor]):
    """A data set whose items mix devices."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> torch.Tensor:
        return mixed()


def test_the_error_of_a_loaders_worker_gives_what_its_text_has() -> None:
    loader = DataLoader(Rows(), num_workers=1, multiprocessing_context="fork")
    error = raised(lambda: next(iter(loader)))
    assert path_to_origin(error)
    report = devtrace.explain(error)
    (finding,) = report.findings
    assert finding.site is not None
    assert finding.site.text == "return x + table"
    assert {*finding.devices} == {"cuda:0", "cpu"}
    assert finding.cause == "unknown"
    assert "num_workers=0" in report.text


def test_the_error_of_a_replica_gives_what_its_text_has() -> None:
    model = nn.DataParallel(Scaled().to("cuda:0"), device_ids=[0, 1])
    error = raised(lambda: model(torch.ones(4, 3, device="cuda:0")))
    assert path_to_origin(error)
    report = devtrace.explain(error)
    (finding,) = report.findings
    assert finding.site is not None
    assert finding.site.text == "return self.layer(x) * self.table"
    assert {*finding.devices} == {"cuda:0", "cpu"}
    assert finding.culprit is None or finding.culprit.certainty == "inferred"
    assert "in place of DataParallel" in report.text


# Births.


@unrecorded(cause="wrong-device", born="self.rows = self.rows.cpu()")
def test_an_attribute_that_moves_itself_was_put_there_by_that_line() -> None:
    table = Lent()
    with table:
        pass
    torch.ones(4, device="cuda:0") + table.rows


def test_a_statement_that_was_not_confirmed_moves_nothing() -> None:
    def program(flag: bool = False) -> None:
        table = torch.zeros(4)
        if flag:
            table = table.to("cuda:0")
        table + torch.ones(4, device="cuda:0")

    assert explained(program).cause in ("never-moved", "created-without-device")


class Rotary(nn.Module):
    """A module that makes its tables in its first call, and keeps them as a plain attribute or in a container."""

    def __init__(self, make: Callable[[], torch.Tensor], *, in_container: bool) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.make = make
        self.angles: Any = None
        self.tables: dict[int, torch.Tensor] = {}
        self.in_container = in_container

    def forward(self, x: torch.Tensor) -> Any:
        if self.in_container:
            if 4 not in self.tables:
                self.tables[4] = torch.arange(4.0)
            return self.layer(x) * self.tables[4]
        if self.angles is None:
            self.angles = self.make()
        return self.layer(x) * self.angles


def four_angles() -> torch.Tensor:
    return torch.arange(4.0) * 2


@pytest.mark.parametrize("make", [lambda: torch.arange(4.0), four_angles])
@pytest.mark.parametrize("in_container", [False, True])
@pytest.mark.parametrize(("ran_before", "cause"), [(True, "stale-copy"), (False, "created-without-device")])
def test_a_cache_is_stale_only_if_it_was_made_before_the_move(
    make: Callable[[], torch.Tensor], in_container: bool, ran_before: bool, cause: str
) -> None:
    def program() -> None:
        model = Rotary(make, in_container=in_container)
        if ran_before:
            model(torch.ones(3, 4))
        model.to("cuda:0")
        model(torch.ones(3, 4, device="cuda:0"))

    finding = explained(program)
    assert finding.cause == cause
    assert (culprit_of(finding).moved is not None) == ran_before
    assert culprit_of(finding).certainty == "inferred"


@unrecorded(born='cache["mask"] = torch.ones(3)')
def test_a_value_in_a_container_has_the_birth_of_what_was_put_there() -> None:
    cache = {}
    cache["mask"] = torch.ones(3)
    torch.ones(3, device="cuda:0") * cache["mask"]


@dataclass
class Settings:
    """A dataclass whose factory makes a tensor."""

    scale: torch.Tensor = field(default_factory=lambda: torch.ones(3))


TABLE = torch.ones(3)


def _of_a_dataclass() -> torch.Tensor:
    settings = Settings()
    return torch.ones(3, device="cuda:0") * settings.scale


def _of_a_module() -> torch.Tensor:
    return torch.ones(3, device="cuda:0") * TABLE


@pytest.mark.parametrize(
    ("program", "name", "born"),
    [(_of_a_dataclass, "settings.scale", "scale: torch.Tensor = "), (_of_a_module, "TABLE", "TABLE = torch.ones(3)")],
)
def test_a_factory_of_a_dataclass_and_a_constant_of_a_module_have_births(
    program: Callable[[], object], name: str, born: str
) -> None:
    finding = explained(program)
    assert culprit_of(finding).name == name
    assert birth_of(finding).text.startswith(born)


# Honest.


@unrecorded(cause="attached-after-move", certainty="seen", message=Text(lacks=("robably",)))
def test_what_the_hooks_saw_is_plain() -> None:
    model = nn.Sequential(nn.Linear(3, 3)).to("cuda:0")
    model.append(nn.Linear(3, 3))
    model(torch.ones(2, 3, device="cuda:0"))


def test_no_edit_rests_on_a_birth_that_was_only_guessed() -> None:
    def make() -> torch.Tensor:
        return torch.zeros(3)

    kept = [make()]

    def program() -> torch.Tensor:
        return torch.ones(3, device="cuda:0") + kept[0]

    finding = explained(program)
    assert culprit_of(finding).certainty == "inferred"
    assert not any("torch.zeros" in edit.before for edit in finding.edits)


@unrecorded(born="y = x * 2")
def test_a_variable_that_got_another_value_is_read_by_its_line() -> None:
    x = torch.ones(3)
    y = x * 2
    x = torch.ones(3, device="cuda:0")
    x + y


def test_a_statement_of_another_device_is_no_birth() -> None:
    def program(flag: bool = False) -> None:
        table = torch.zeros(3)
        if flag:
            table = torch.zeros(3, device="cuda:1")
        table + torch.ones(3, device="cuda:0")

    assert birth_of(explained(program)).text == "table = torch.zeros(3)"


def test_a_birth_that_was_read_is_in_no_stamp_afterwards() -> None:
    error = raised(mixed)
    last = traceback.walk_tb(error.__traceback__)
    (table,) = [frame.f_locals["table"] for frame, _ in last if "table" in frame.f_locals]
    before = stamps.get(table)
    devtrace.explain(error)
    assert stamps.get(table) is before


# Harmless.


class Touchy:
    """An object of the user's that raises whatever is asked of it."""

    def __init__(self, inner: object) -> None:
        self.inner = inner

    def __repr__(self) -> str:
        raise AssertionError("__repr__ ran")

    __str__ = __format__ = __bool__ = __len__ = __iter__ = __hash__ = __repr__  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise AssertionError("__eq__ ran")

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"__getattr__ of {name} ran")

    @property
    def table(self) -> object:
        raise AssertionError("a property ran")


def test_nothing_of_the_users_runs() -> None:
    def program() -> torch.Tensor:
        touchy = Touchy(torch.zeros(3))
        x = torch.ones(3, device="cuda:0")
        return x + touchy.inner  # type: ignore[operator]

    error = raised(program)
    report = devtrace.explain(error)
    (finding,) = report.findings
    assert culprit_of(finding).name == "touchy.inner"
    assert not any("failed" in note or "not explained" in note for note in report.notes)


def test_the_error_stays_as_it_is() -> None:
    error = raised(mixed)

    def look() -> list[tuple[int, int]]:
        entries, entry = [], error.__traceback__
        while entry is not None:
            entries.append((id(entry), id(entry.tb_frame)))
            entry = entry.tb_next
        return entries

    before, text = look(), str(error)
    devtrace.explain(error)
    assert (look(), str(error)) == (before, text)
    assert not hasattr(error, "__notes__")
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    assert any("table" in frame.f_locals for frame in frames)  # `%debug` reads them


def test_variables_that_the_program_keeps_by_locals_stay() -> None:
    kept: list[dict[str, Any]] = []

    def program() -> torch.Tensor:
        rate = 0.1
        kept.append(locals())
        return mixed() * rate

    devtrace.explain(raised(program))
    assert kept[0]["rate"] == 0.1


def test_nothing_is_kept_alive_by_the_report() -> None:
    dead: list[weakref.ref[Any]] = []

    def program() -> torch.Tensor:
        table = torch.zeros(3)
        dead.append(weakref.ref(table))
        return torch.ones(3, device="cuda:0") + table

    def look() -> Report:
        return devtrace.explain(raised(program))

    report = look()
    gc.collect()
    assert dead[0]() is None
    assert report.findings


def test_a_long_list_is_looked_at_in_part_and_the_report_mentions_it() -> None:
    def program() -> torch.Tensor:
        rows = [{"row": row} for row in range(20_000)]
        return mixed() if rows else torch.ones(1)

    report = devtrace.explain(raised(program))
    assert_explains_mixed(report.findings[0])
    assert "of long lists the first 1,000 items were looked at; the longest has 20,000" in report.text


LONG_BUT_PLAIN = """
import torch, devtrace
text, numbers, spelled = list("abc" * 2_000), tuple(range(5_000)), {row: str(row) for row in range(3_000)}
table = torch.zeros(3)
try:
    torch.ones(3, device="cuda:0") + table
except RuntimeError as error:
    print(devtrace.explain(error).text)
"""


def test_a_long_list_of_what_is_no_tensor_is_not_mentioned(warm: Warm, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LONG_BUT_PLAIN)
    printed = warm.python(tmp_path, "train.py", "cuda:1").stdout  # pytest's own lists are long, and of no plain values
    assert "`table`" in printed
    assert "items were looked at" not in printed


def test_variables_of_torchs_own_frames_lend_no_name() -> None:
    def program() -> None:
        nn.functional.linear(torch.ones(2, 3, device="cuda:0"), torch.ones(3, 3))

    assert "weight" not in culprit_of(explained(program)).names
