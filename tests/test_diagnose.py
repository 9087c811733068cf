"""What diagnosis promises for any program: one report, every import order, torch's own words where ours fail."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from torch import nn

import devtrace
from devtrace.diagnose import mismatch
from devtrace.diagnose.facts import Facts
from devtrace.record import hooks
from devtrace.report import Report, from_json


def failing() -> devtrace.record:
    """A head attached after the move."""
    with pytest.raises(RuntimeError, match="same device"), devtrace.record(simulate="cuda:2") as recording:  # noqa: PT012
        model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)).to("cuda:0")
        model[1] = nn.Linear(4, 3)
        model(torch.rand(2, 4, device="cuda:0"))
    return recording


def test_no_name_leads_through_an_object_of_devtraces() -> None:
    """The recording is a variable of the frame that made it, and knows the namespace."""
    with pytest.raises(RuntimeError, match="same device"), devtrace.record(simulate="cuda:1", namespace={}) as own:  # noqa: PT012
        namespace = own._namespace
        assert isinstance(namespace, dict)
        namespace["layer"] = nn.Linear(4, 4)
        namespace["layer"](torch.rand(2, 4, device="cuda:0"))
    culprit = own.report.findings[0].culprit
    assert culprit is not None
    assert culprit.names
    assert not [name for name in culprit.names if "own" in name]


@pytest.mark.parametrize(
    "imports",
    [
        "import devtrace",
        "import devtrace.diagnose",
        "from devtrace.diagnose.facts import Facts; import devtrace",
        "import devtrace; devtrace.Report; from devtrace.diagnose import facts",
        "from devtrace import diagnose; import devtrace.diagnose.facts, devtrace",
    ],
)
def test_diagnose_is_the_function_in_every_import_order(imports: str) -> None:
    code = f"{imports}\nimport devtrace\nassert type(devtrace.diagnose).__name__ == 'function', devtrace.diagnose"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_a_report_is_made_once_and_carried_by_its_trace() -> None:
    recording = failing()
    report = devtrace.diagnose(recording.trace)
    assert report is recording.report
    again = devtrace.diagnose(replace(report.trace, _tables={}))
    assert again.findings == report.findings
    assert again.ledger == report.ledger
    assert again.text == report.text


def test_a_layer_attached_before_the_recording_began_is_known_to_be_later_than_the_move() -> None:
    hooks.install()  # as %load_ext does
    try:
        with devtrace.simulate("cuda:1"):
            model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
            model.to("cuda")
            model[1] = nn.Linear(4, 3)
            with pytest.raises(RuntimeError, match="same device"), devtrace.record() as recording:
                model(torch.rand(2, 4, device="cuda"))
            finding = recording.report.findings[0]
    finally:
        hooks.uninstall()
    assert finding.cause == "attached-after-move"
    assert finding.culprit is not None
    assert finding.culprit.certainty == "seen"
    assert finding.culprit.moved is not None
    assert finding.culprit.moved.text == 'model.to("cuda")'


def test_findings_survive_their_way_through_json() -> None:
    report = failing().report
    assert report.trace.findings is not None
    assert tuple(from_json(data, report.trace) for data in report.trace.findings) == report.findings


def test_a_diagnosis_that_fails_leaves_torchs_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("made to fail")

    monkeypatch.setattr(mismatch, "device_mismatch", broken)
    report = failing().report
    assert isinstance(report, Report)
    finding = report.findings[0]
    assert (finding.severity, finding.cause) == ("error", "unknown")
    assert "same device" in finding.message
    assert "made to fail" in report.text
    assert len(report.ledger) > 0


def test_without_live_objects_the_recorded_names_tell() -> None:
    trace = replace(failing().trace, findings=None, _tables={})
    found = list(mismatch.device_errors(Facts(trace)))
    assert found[0].culprit is not None
    assert found[0].culprit.device == "cpu"
    assert found[0].culprit.born is not None


def warnings_of(recording: devtrace.record) -> list[str]:
    return [finding.rule for finding in recording.report.findings if finding.severity != "note"]


def test_modules_called_by_one_name_are_no_split_module() -> None:
    with devtrace.record(simulate="cuda:2") as recording:
        blocks = [nn.Linear(4, 4).to("cuda:0"), nn.Linear(4, 4, bias=False).to("cuda:1")]
        x = torch.rand(2, 4)
        for place, block in enumerate(blocks):
            x = block(x.to(f"cuda:{place}"))
    assert warnings_of(recording) == []


def test_a_replaced_layer_and_its_successor_are_no_split_module() -> None:
    with devtrace.record(simulate="cuda:2") as recording:
        model = nn.Sequential(nn.Linear(4, 4)).to("cuda:0")
        model(torch.rand(2, 4, device="cuda:0"))
        old, model[0] = model[0], nn.Linear(4, 2, bias=False).to("cuda:1")
        model(torch.rand(2, 4, device="cuda:1"))
    assert warnings_of(recording) == []
    assert old.bias is not None


class Late(nn.Module):
    """Brings its bias along in each forward, which hides that nothing moved it."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(4, 4)), nn.Parameter(torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight + self.bias.to(x.device)


def test_a_module_with_one_tensor_here_and_one_there_is_split() -> None:
    with devtrace.record(simulate="cuda:2") as recording:
        late = Late()
        late.weight = nn.Parameter(late.weight.detach().to("cuda:0"))
        late(torch.rand(2, 4, device="cuda:0"))
    assert warnings_of(recording) == ["split-module"]
