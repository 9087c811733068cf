"""Five bugs of real systems: for each the tensor, its birth, the failing line, the devices, the cause and the fix.

Three run with the real packages, AI-Toolkit and Recognize-Anything are re-enacted with their own names (tests/systems).
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from devtrace.diagnosis.findings import Culprit, Finding, Site
from folders import TESTS
from needs import installed
from programs import GPU, Outcome, Program
from warm import Warm

pytestmark = pytest.mark.slow

SYSTEMS = TESTS / "systems"


def outcome_of(warm: Warm, name: str, *arguments: str) -> Outcome:
    return Program(SYSTEMS / f"{name}.py", arguments).outcome(warm)


def repaired(warm: Warm, name: str, finding: Finding, folder: Path) -> Outcome:
    """Run the program with the finding's edits."""
    program = Program(SYSTEMS / f"{name}.py", GPU)
    assert {edit.file for edit in finding.edits} == {str(program.path)}
    return program.edited(finding.edits, folder).outcome(warm)


def only_error(outcome: Outcome) -> tuple[Finding, Culprit, Site]:
    """Return the one error, its culprit and its line."""
    (finding,) = outcome.errors
    assert finding.rule == "device-mismatch"
    assert finding.culprit is not None
    assert finding.site is not None
    assert not outcome.notes
    return finding, finding.culprit, finding.site


def at(site: Site | None) -> tuple[str, int]:
    assert site is not None
    return Path(site.file).name, site.line


@installed("recbole")
@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("model", "born", "made", "fix"),
    [
        (
            "Random",
            ("random.py", 38),
            "torch.rand(len(interaction))",
            "torch.rand(len(interaction), device=self.device)",
        ),
        ("SLIMElastic", ("slimelastic.py", 98), "torch.from_numpy(", ".to(self.device)"),
        ("ADMMSLIM", ("admmslim.py", 30), "torch.rand(t.shape)", "admmslim.py line 114: move what it makes with `.to("),
    ],
)
def test_recbole_fails_in_validation_over_scores_made_on_the_cpu(
    model: str, born: tuple[str, int], made: str, fix: str, warm: Warm
) -> None:
    outcome = outcome_of(warm, "recbole_evaluation", model)
    finding, culprit, failed = only_error(outcome)
    assert culprit.name == "origin_scores"
    assert (culprit.device, culprit.dtype) == ("cpu", "float32")
    assert at(culprit.born) == born
    assert made in (culprit.born.text if culprit.born else "")
    assert (at(failed), failed.text) == (("trainer.py", 558), "scores[row_idx, col_idx]")
    assert set(finding.devices) == {"cpu", "cuda:0"}
    assert finding.cause == ("created-without-device" if model == "Random" else "never-moved")
    assert fix in " ".join(finding.help.split())
    assert "recbole 1.2.0" in finding.message
    assert "You called it in recbole_evaluation.py" in finding.message
    assert "Training did not reach this line" in finding.message
    assert ("admmslim.py", 114) in map(at, culprit.chain) or model != "ADMMSLIM"


@installed("recbole")
def test_recbole_does_not_fail_in_full_evaluation_which_computes_on_the_cpu(warm: Warm) -> None:
    outcome = outcome_of(warm, "recbole_evaluation", "Random", "full")
    assert (outcome.raised, outcome.errors) == ("", [])
    assert any(finding.rule == "cpu-compute" for finding in outcome.findings)


@installed("llms_from_scratch")
def test_the_books_classifier_got_its_head_after_the_move(tmp_path: Path, warm: Warm) -> None:
    finding, culprit, failed = only_error(outcome_of(warm, "book_classifier", "cuda:0"))
    assert culprit.name == "model.out_head.weight"
    assert "`model.out_head.weight` and `.bias` are on cpu" in finding.message
    assert "other 21 tensors of `model` are on cuda:0" in finding.message
    assert culprit.born is not None
    assert culprit.born.text.startswith("model.out_head = torch.nn.Linear(")
    assert culprit.moved is not None
    assert culprit.moved.text == "model.to(device)"
    assert (at(failed), failed.text) == (("ch04.py", 103), "self.out_head(x)")
    assert set(finding.devices) == {"cpu", "cuda:0"}
    assert finding.cause == "attached-after-move"
    assert "add `model.to(device)`" in finding.help
    assert "llms-from-scratch 1.0.19" in finding.message
    again = repaired(warm, "book_classifier", finding, tmp_path)
    assert (again.raised, again.alarms) == ("", [])


def test_ai_toolkits_image_ids_come_without_a_device_from_a_dependency(warm: Warm) -> None:
    finding, culprit, failed = only_error(outcome_of(warm, "ai_toolkit/sampling", "cuda:0"))
    assert culprit.name == "torch.arange(height)[:, None]"
    assert (culprit.device, culprit.shape, culprit.dtype) == ("cpu", (4, 1), "int64")
    assert at(culprit.born) == at(failed) == ("pipeline_flux.py", 13)
    assert finding.cause == "created-without-device"
    assert set(finding.devices) == {"cpu", "cuda:0"}
    assert "diffusers 0.32.0.dev0. You called it in sampling.py line 18: `self.prepare_latents(" in finding.message
    assert "torch.arange(height, device=device)" in finding.help
    assert "in a copy of your own" in finding.help
    assert not finding.edits  # an installed package is not the user's to edit


def test_ai_toolkits_vae_was_loaded_on_the_cpu_and_never_moved(tmp_path: Path, warm: Warm) -> None:
    outcome = outcome_of(warm, "ai_toolkit/control", "cuda:0")
    finding, culprit, failed = only_error(outcome)
    assert culprit.name == "vae.encoder.weight"
    assert "img_cond_seq" in culprit.names
    assert "`img_cond_seq` is on cpu because it was computed from `vae.encoder.weight`;" in finding.message
    assert "Nothing moved `vae` to cuda:0." in finding.message
    assert culprit.shape == (16, 3, 3, 3)
    assert culprit.born is not None
    assert culprit.born.text == "self.encoder = nn.Conv2d(3, 16, 3, padding=1)"
    assert failed.text == "torch.cat((img_input, img_cond_seq), dim=1)"
    assert finding.cause == "never-moved"
    guard = next(other for other in outcome.findings if other.rule == "device-comparison")
    assert '`self.vae.device == "cpu"` is never true' in guard.message
    again = repaired(warm, "ai_toolkit/control", finding, tmp_path)
    assert (again.raised, again.errors) == ("", [])


@pytest.mark.parametrize(("name", "change"), [("ai_toolkit/sampling", "pinned"), ("ai_toolkit/control", "moved")])
def test_ai_toolkit_with_its_authors_fix_runs(name: str, change: str, warm: Warm) -> None:
    outcome = outcome_of(warm, name, "cuda:0", change)
    assert (outcome.raised, outcome.errors) == ("", [])


def test_recognize_anything_moves_two_of_the_four_tensors_of_a_batch(tmp_path: Path, warm: Warm) -> None:
    finding, culprit, failed = only_error(outcome_of(warm, "tagging_finetune", "cuda:0"))
    assert (culprit.name, culprit.shape, culprit.dtype) == ("image_tag", (4, 20), "int64")
    assert "y" in culprit.names
    assert culprit.born is not None
    assert culprit.born.text == "for image, image_224, caption, image_tag, parse_tag in data_loader:"
    assert culprit.moved is not None
    assert culprit.moved.text == "image = image.to(device, non_blocking=True)"
    assert failed.text == "y * torch.log(x_sigmoid.clamp(min=1e-8))"
    assert finding.cause == "never-moved"
    assert "image_tag = image_tag.to(device, non_blocking=True)" in finding.help
    again = repaired(warm, "tagging_finetune", finding, tmp_path)
    assert (again.raised, again.alarms) == ("", [])


def test_what_the_issue_of_recognize_anything_proposes_buys_a_round_trip(warm: Warm) -> None:
    outcome = outcome_of(warm, "tagging_finetune", "cuda:0", "issue")
    assert (outcome.raised, outcome.errors) == ("", [])
    (back,) = [finding for finding in outcome.findings if finding.rule == "device-to-host-copy"]
    assert (back.severity, back.count, back.site and back.site.text) == ("warning", 6, "parse_tag.cpu()")
    assert re.search(
        r": `\S+` was sent to the device \(tagging_finetune.py line \d+\) and not used there", back.message
    )
    assert outcome.alarms == [f"{back.rule} at {back.site}: {back.message}"]


def test_distributed_data_parallel_hides_the_bug_of_recognize_anything(warm: Warm) -> None:
    outcome = outcome_of(warm, "tagging_finetune", "cuda:0", "ddp")
    assert (outcome.raised, outcome.errors) == ("", [])
    hidden = next(finding for finding in outcome.findings if "DistributedDataParallel moves them" in finding.message)
    assert (hidden.rule, hidden.severity, hidden.count) == ("host-to-device-copy", "warning", 12)
    assert "other inputs are moved by hand (tagging_finetune.py line" in hidden.message


@installed("keras")
def test_keras_replicas_share_the_variables_that_dataparallel_does_not_copy(warm: Warm) -> None:
    finding, culprit, failed = only_error(outcome_of(warm, "keras_replicas", "cuda:0", "cuda:1"))
    assert culprit.name == "sequential/dense/kernel"
    assert (culprit.device, culprit.shape) == ("cuda:0", (32, 16))
    assert finding.devices == ("cuda:1", "cuda:0")
    assert failed.text == "torch.matmul(x1, x2)"
    assert ("dense.py", 144) in map(at, culprit.chain)
    assert "keras 3.6.0, at work in dense.py line 144: `ops.matmul(inputs, self.kernel)`" in finding.message
    assert "You called it in keras_replicas.py line 18: `net(inputs)`" in finding.message
    assert "DataParallel on cuda:1 (Thread-2 (_worker), replica 1)" in finding.message
    assert "through one `Variable`" in finding.message
    assert "DistributedDataParallel" in finding.help
    assert ("keras_replicas.py", 15) in map(at, culprit.chain)
