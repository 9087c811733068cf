"""Programs that run out of a small device's memory: what owns it, which line keeps it, what lets go of it."""

from __future__ import annotations

import dataclasses
import gc
import re
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

import devtrace
from devtrace.api.results import Report
from devtrace.diagnosis.edits import applied
from devtrace.diagnosis.findings import Finding
from devtrace.report.html import fragment
from devtrace.words import language
from loaded import function_of, programs_in

pytestmark = pytest.mark.one_in(6)

PROGRAMS = programs_in(Path(__file__).parent / "out_of_memory_programs")


class Expected(NamedTuple):
    """Limit, the first holder by name and kind, the code that made most of it, a pattern of the help or the edits."""

    limit: str
    name: str
    kind: str
    born: str
    help: str
    repaired: bool = False


EXPECTED = {
    "attention_matrix": Expected("60MB", "", "temporary", "query @ key", "scaled_dot_product_attention"),
    "batch_of_blocks": Expected("60MB", "net", "activation", "layer(x)", r"checkpoint\(layer"),
    "cache_that_grows": Expected("60MB", "cache", "named", "torch.cat", r"cache\[-n:\]"),
    "cached_function": Expected("40MB", "table", "named", "angles.sin()", r"\.cpu\(\)"),
    "checkpoint_beside_the_model": Expected(
        "70MB", "optimizer", "optimizer-state", "torch.load", 'map_location="cpu"', repaired=True
    ),
    "errors_of_a_sweep": Expected(
        "80MB", "self.errors", "traceback", "first(torch.randn", r"str\(problem\)", repaired=True
    ),
    "features_in_a_module_variable": Expected("50MB", "FEATURES", "named", "encoder(", r"\.cpu\(\)$", repaired=True),
    "hooks_that_collect": Expected("50MB", "shown", "named", "net(torch.randn", r"\.cpu\(\)"),
    "kept_graphs_of_terms": Expected(
        "40MB", "history.terms", "graph", "net(batch)", r"term\.detach\(\)", repaired=True
    ),
    "model_of_before": Expected("36MB", "baseline", "parameter", "nn.Sequential", "del baseline", repaired=True),
    "predictions_of_an_evaluation": Expected("50MB", "found", "graph", "model(batch", r"detach\(\)", repaired=True),
    "state_from_chunk_to_chunk": Expected(
        "60MB", "state", "graph", "cell(torch.randn", r"state = state\.detach\(\)", repaired=True
    ),
    "state_of_an_lstm": Expected("60MB", "memory", "graph", "lstm(", r"each\.detach\(\)", repaired=True),
    "buffer_of_steps": Expected("30MB", "buffer.steps", "named", "torch.rand", r"\.cpu\(\)"),
    "drained_generator": Expected("24MB", "table", "graph", "model(", r"no_grad\(\)"),
    "features_of_a_comprehension": Expected(
        "40MB", "features", "graph", "encoder(", r"\[encoder\(batch.to\(device\)\)\.detach\(\)", repaired=True
    ),
    "half_made_float": Expected("80MB", "", "temporary", "scores.float()", "copies bfloat16 to float32"),
    "hooks_that_the_model_keeps": Expected(
        "40MB", "probe.seen", "named", "net(", r"output\.detach\(\)\.cpu\(\)", repaired=True
    ),
    "one_backward_for_all": Expected("60MB", "model", "activation", "model(x)", r"mean\(\) / 16\)\.backward\(\)"),
    "state_with_kept_graphs": Expected(
        "40MB", "state", "graph", "self.rnn(", r"tuple\(each\.detach\(\) for each in state\)", repaired=True
    ),
    "values_of_a_closure": Expected("36MB", "values", "graph", "net(x)", r"value\.detach\(\)", repaired=True),
    "weights_of_each_epoch": Expected("30MB", "weights", "named", "clone()", r"clone\(\)\.cpu\(\)", repaired=True),
    "window_of_records": Expected("36MB", "window", "graph", "body(x)", r"drift\.detach\(\)", repaired=True),
    "losses_of_an_accumulation": Expected(
        "60MB", "net", "activation", "net(x)", r"functional.cross_entropy\(net\(x\), y\)\.backward"
    ),
    "evaluation_that_is_joined": Expected(
        "50MB", "logits", "graph", "model(inputs", r"logits \+= \[model\(.*\)\.detach\(\)\]", repaired=True
    ),
    "outputs_that_are_joined": Expected(
        "70MB", "outs", "graph", "model(batch", r"\[model\(.*\)\.detach\(\) for batch in batches\]", repaired=True
    ),
    "checkpoint_of_a_trainer": Expected(
        "60MB", "trainer.optimizer", "optimizer-state", "torch.load", r"`del self\.checkpoint`", repaired=True
    ),
    "teacher_with_a_graph": Expected(
        "45MB", "teacher", "activation", "teacher(x)", r"^ +with torch\.no_grad\(\):", repaired=True
    ),
    "optimizer_of_the_same_name": Expected(
        "48MB", "optimizer", "optimizer-state", "optimizer.step()", "del first, optimizer", repaired=True
    ),
    "schedule_of_the_first_optimizer": Expected(
        "26MB", "warm", "optimizer-state", ".step()", "    del each, rates, warm", repaired=True
    ),
    "steps_of_a_rollout": Expected("48MB", "model", "activation", "model(state)", "smaller batch"),
    "widths_in_turn": Expected("70MB", "net", "parameter", "build(width)", "        del net, optimizer", repaired=True),
    "trainers_of_a_search": Expected(
        "142MB", "trainer.model", "parameter", "nn.Sequential(", "        del trainer", repaired=True
    ),
    "needed_after_the_loop": Expected("50MB", "net", "parameter", "nn.Sequential(", "smaller state"),
    "needed_in_the_next_round": Expected("50MB", "net", "parameter", "nn.Sequential(", "smaller state"),
    "queue_of_batches": Expected("60MB", "batches", "named", ".to(device)", "what `batches` collects on the CPU"),
    "copies_of_each_epoch": Expected(
        "24MB", "kept", "parameter", "copy.deepcopy(", r"copy\.deepcopy\(model\)\.cpu\(\)", repaired=True
    ),
}
UNTRACED = {
    "attention_by_einsum": ("60MB", "scaled_dot_product_attention"),
    "kernel_of_all_pairs": ("60MB", "cdist"),
    "features_of_a_generator": ("30MB", "smaller batch"),
    "teacher_of_a_class": ("38MB", "no optimizer trains `self.big`"),
}
HEALTHY = {"fits_after_halving": "80MB", "fits_with_lists": "40MB"}


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    yield
    for name in ("last_exc", "last_value", "last_traceback"):
        sys.__dict__.pop(name, None)
    gc.collect()


def ran(name: str, limit: str, file: Path | None = None) -> tuple[Report, str]:
    """Run a program under a limit; return the report and the name of what it raised."""
    file, raised = file or PROGRAMS[name], ""
    try:
        with devtrace.record(simulate=f"cuda:1,{limit}") as recording:
            function_of(file, name)("cuda:0")
    except Exception as error:  # noqa: BLE001 (whatever it is, the test compares it)
        raised = type(error).__name__
    return recording.report, raised


def shortages(report: Report) -> list[Finding]:
    return [finding for finding in report.findings if finding.rule == "out-of-memory"]


@pytest.mark.parametrize("name", EXPECTED)
def test_the_first_holder_is_what_owns_most_of_it(name: str, tmp_path: Path) -> None:
    expected = EXPECTED[name]
    report, raised = ran(name, expected.limit)
    assert raised == "OutOfMemoryError"
    (found,) = shortages(report)
    top = found.holders[0]
    assert (top.name, top.kind) == (expected.name, expected.kind)
    assert top.born is not None
    assert expected.born in top.born.text
    advice = "\n".join([found.help, *(edit.after for edit in found.edits)])
    assert re.search(expected.help, advice, re.MULTILINE)
    named = sum(each.bytes for each in found.holders if each.name or each.born)
    assert named >= 0.95 * found.bytes
    assert found.edits or not expected.repaired
    if expected.repaired:
        edited = tmp_path / "program.py"
        edited.write_text(applied(PROGRAMS[name].read_text(), found.edits))
        again, raised = ran(name, expected.limit, edited)
        assert (raised, shortages(again)) == ("", [])


@pytest.mark.parametrize("name", HEALTHY)
def test_a_program_that_ends_well_gets_no_finding(name: str) -> None:
    report, raised = ran(name, HEALTHY[name])
    assert (raised, shortages(report)) == ("", [])
    assert report.all_clear
    caught = [note for note in report.notes if "ran out of memory" in note]
    assert len(caught) == (name == "fits_after_halving")


def test_the_report_names_who_owns_it_in_both_languages(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "kept_graphs_of_terms"
    report, _ = ran(name, EXPECTED[name].limit)
    assert "cuda:0 ran out of memory: this line asked for 2.0 MiB" in str(report)
    assert re.search(r"^  \d+\.\d MiB +graphs\.py line 26 .*\n? +graphs that `history\.terms`", str(report), re.M)
    assert "history.terms" in fragment(report)
    monkeypatch.setattr(language.CHOICE, "user", "zh")
    report, _ = ran(name, EXPECTED[name].limit)
    assert "cuda:0 显存不足" in str(report)
    assert "`history.terms` 保留的计算图" in str(report)


def test_holders_are_kept_with_a_trace(tmp_path: Path) -> None:
    name = "errors_of_a_sweep"
    report, _ = ran(name, EXPECTED[name].limit)
    report.trace.save(tmp_path / "a.devtrace")
    loaded = devtrace.diagnose(devtrace.load(tmp_path / "a.devtrace"))
    assert [dataclasses.astuple(each) for each in shortages(loaded)[0].holders] == [
        dataclasses.astuple(each) for each in shortages(report)[0].holders
    ]


def test_nothing_is_alive_after_a_finding_that_would_not_be_without_it() -> None:
    import weakref

    alive: list[weakref.ref[torch.Tensor]] = []

    def work() -> None:
        kept = []
        layer = torch.nn.Linear(256, 256, device="cuda")
        while True:
            kept.append(layer(torch.randn(1024, 256, device="cuda")).tanh())
            alive.append(weakref.ref(kept[-1]))

    with pytest.raises(torch.OutOfMemoryError) as caught, devtrace.record(simulate="cuda:1,32MB") as recording:
        work()
    assert len(shortages(recording.report)) == 1
    del caught
    gc.collect()
    assert [each for each in alive if each() is not None] == []


def test_no_hook_of_the_users_that_unpacks_runs() -> None:
    unpacked: list[int] = []

    def unpack(packed: torch.Tensor) -> torch.Tensor:
        unpacked.append(1)
        return packed

    layer = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.Tanh(), torch.nn.Linear(1024, 256))
    outs = []

    def work() -> None:
        layer.to("cuda")
        with torch.autograd.graph.saved_tensors_hooks(lambda x: x, unpack):
            while True:
                outs.append(layer(torch.randn(512, 256, device="cuda")))

    with pytest.raises(torch.OutOfMemoryError), devtrace.record(simulate="cuda:1,48MB") as recording:
        work()
    (found,) = shortages(recording.report)
    assert found.holders[0].name == "outs"
    assert unpacked == []


def explained(program: Callable[[], object], devices: str) -> Finding:
    """Return what is found of a program that runs out of memory while nobody records it."""
    with devtrace.simulate(devices):
        with pytest.raises(torch.OutOfMemoryError) as caught:
            program()
        (found,) = shortages(devtrace.explain(caught.value))
    return found


def collected() -> list[torch.Tensor]:
    """Scores that keep their graphs."""
    layer = torch.nn.Linear(256, 512, device="cuda")
    scores: list[torch.Tensor] = []
    for _ in range(100):
        scores.append(layer(torch.randn(1024, 256, device="cuda")).tanh().sum())
    return scores


def test_an_error_that_nobody_recorded_names_who_owns_it_as_well() -> None:
    found = explained(collected, "cuda:1,40MB")
    assert (found.holders[0].name, found.holders[0].kind) == ("scores", "graph")
    assert ".detach())" in found.edits[0].after


def pairs() -> torch.Tensor:
    """Squared distances of all pairs."""
    points = torch.randn(1000, 16, device="cuda")
    return (points.unsqueeze(1) - points.unsqueeze(0)).pow(2).sum(2)


@pytest.mark.parametrize("name", UNTRACED)
def test_what_helps_is_seen_where_nobody_recorded_a_shape(name: str) -> None:
    program = function_of(PROGRAMS[name], name)
    limit, advice = UNTRACED[name]
    assert advice in explained(lambda: program("cuda:0"), f"cuda:1,{limit}").help


def test_what_goes_through_a_generator_is_not_kept_by_the_loop() -> None:
    report, _ = ran("vectors_of_a_generator", "50MB")
    (found,) = shortages(report)
    assert {each.name for each in found.holders} == {"", "index", "model"}


def test_what_the_failing_line_had_in_hand_counts_where_nobody_recorded() -> None:
    found = explained(pairs, "cuda:1,80MB")
    assert (found.holders[0].kind, found.holders[0].bytes >> 20) == ("temporary", 61)
    assert "chunks of rows" in found.help


def test_the_block_is_told_where_what_is_asked_for_and_held_is_less_than_there_is() -> None:
    def program() -> None:
        kept = [torch.zeros(19, 1 << 18, device="cuda") for _ in range(3)]
        kept.append(torch.zeros(3, 1 << 18, device="cuda"))

    message = explained(program, "cuda:1,64MB").message
    assert "asked for 3.0 MiB, and 60.0 MiB of 64.0 MiB are held. PyTorch takes a block of 20.0 MiB for that" in message
    assert "and 4.0 MiB are free. The largest part, 60.0 MiB, is what `kept` holds." in message


def test_thousands_of_tensors_in_hand_are_looked_for_among_all_objects_at_once() -> None:
    report, _ = ran("thousands_of_rows", "40MB")
    (found,) = shortages(report)
    assert (found.holders[0].name, found.holders[0].kind) == ("rows", "named")
    assert found.holders[0].bytes > 36 << 20


def test_parameters_that_nobody_recorded_are_of_the_line_that_made_their_model() -> None:
    def train() -> None:
        model = torch.nn.Linear(1024, 1024).to("cuda")
        optimizer = torch.optim.Adam(model.parameters(), foreach=False)
        model(torch.randn(8, 1024, device="cuda")).sum().backward()
        optimizer.step()

    found = explained(train, "cuda:1,23MB")
    sites = {each.kind: each.site.text for each in found.holders if each.site is not None}
    assert sites["parameter"] == 'model = torch.nn.Linear(1024, 1024).to("cuda")'
    assert "optimizer = torch.optim.Adam(" in sites["optimizer-state"]
    assert found.edits == ()  # `model` is not read again, and the optimizer has its parameters


def test_a_device_that_is_too_small_for_the_first_tensor_gets_its_finding() -> None:
    found = explained(lambda: torch.nn.Linear(1024, 1024).to("cuda"), "cuda:1,13MB")
    assert (found.holders, found.bytes) == ((), 0)


def test_a_second_recording_is_asked_for_its_own_ops() -> None:
    with devtrace.simulate("cuda:1,40MB"):
        for _ in range(2):
            with pytest.raises(torch.OutOfMemoryError), devtrace.record() as recording:
                collected()
            (found,) = shortages(recording.report)
            assert (found.holders[0].name, found.holders[0].kind) == ("scores", "graph")


def test_results_that_a_notebook_keeps_are_its_history() -> None:
    namespace: dict[str, Any] = {"torch": torch, "Out": {}, "_oh": {}}
    namespace["_oh"] = namespace["Out"]

    text = "x1 = torch.zeros(1 << 20, device='cuda')\nOut[len(Out)] = torch.zeros(1 << 20, device='cuda')\n_ = Out[0]"

    def cell() -> None:
        exec(compile(text, "<ipython-input-1-a>", "exec"), namespace)

    def cells() -> None:
        while True:
            cell()

    with pytest.raises(torch.OutOfMemoryError), devtrace.record(simulate="cuda:1,40MB", namespace=namespace) as found:
        cells()
    (finding,) = shortages(found.report)
    assert (finding.holders[0].name, [each.kind for each in finding.holders][:2]) == ("Out", ["history", "named"])
    assert "%reset -f out" in finding.help


def test_variables_of_a_notebook_are_not_the_last_errors_although_its_cell_has_them() -> None:
    notebook: Any = types.ModuleType("__main__")
    notebook.torch = torch
    growing = """
layer, total = torch.nn.Linear(256, 512, device="cuda"), torch.zeros((), device="cuda")
while True:
    total = total + layer(torch.randn(1024, 256, device="cuda")).tanh().sum()
"""
    with pytest.raises(ZeroDivisionError) as caught:
        exec(compile("1 / 0", "<ipython-input-1-a>", "exec"), notebook.__dict__)
    sys.last_value = caught.value
    with pytest.raises(torch.OutOfMemoryError), devtrace.record(simulate="cuda:1,40MB") as found:
        exec(compile(growing, "<ipython-input-2-b>", "exec"), notebook.__dict__)
    (finding,) = shortages(found.report)
    assert finding.holders[0].name == "total"
    assert "traceback" not in {each.kind for each in finding.holders}
