"""Code that nobody here wrote: old releases with a device bug, and healthy programs that use them as intended.

What needs large packages is in `tests/real/large`, for `make real`.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy
import pytest

import needs
from devtrace.diagnosis.findings import Finding, Site
from failing import birth_of, culprit_of
from folders import TESTS
from programs import Outcome, run
from warm import Warm

pytestmark = [pytest.mark.slow, pytest.mark.one_in(6)]

REAL = TESTS / "real"


class Bug(NamedTuple):
    """A release: the line that fails or costs, the tensor, and why."""

    name: str
    package: str
    site: tuple[str, str]
    culprit: str = ""
    born: str = ""
    cause: str = ""
    rule: str = "device-mismatch"
    times: int = 1


BUGS = [
    Bug(
        "captum_saliency",
        "captum",
        ("common.py", "torch.gather(output, 1, torch.tensor(target)"),
        "torch.tensor(target)",
        "torch.tensor(target)",
        "created-without-device",
    ),
    Bug("kornia_jitter", "kornia", ("planckian_jitter.py", "* r_w"), "brighten.pl", "stack(", "never-moved"),
    Bug("ema_before_the_move", "torch_ema", ("ema.py", "s_param - param"), "s_param", "p.clone()", "stale-copy"),
    Bug(
        "prodigy_resumed",
        "pytorch_optimizer",
        ("prodigy.py", "d_numerator.add_("),
        "d_numerator",
        "second.load_state_dict(",
        "never-moved",
    ),
    Bug(
        "schedulefree_restored",
        "schedulefree",
        ("adamw_schedulefree.py", "p.data.lerp_("),
        'averaging.state[again.weight]["z"]',
        "torch.load(",
        "never-moved",
    ),
    Bug(
        "summary_on_a_gpu",
        "torchsummary",
        ("summary_on_a_gpu.py", "self.first(images)"),
        "model.first.weight",
        "self.first = nn.Conv2d(",
        "never-moved",
    ),
    Bug(
        "fair_constraint",
        "fairtorch",
        ("constraint.py", "torch.mv(self.M, mu)"),
        "fairness.M",
        "self.M = torch.zeros(",
        "not-registered",
    ),
    Bug("prodigy_reads", "prodigyopt", ("prodigy.py", "torch.dot("), rule="host-sync", times=24),
    Bug(
        "accuracy_of_zero",
        "torchmetrics",
        ("compute.py", "torch.tensor(zero_division)"),
        rule="host-to-device-copy",
        times=40,
    ),
    Bug(
        "proxies_copied",
        "pytorch_metric_learning",
        ("proxy_losses.py", "self.proxy_labels.to("),
        "distance.proxy_labels",
        "torch.arange(num_classes)",
        rule="host-to-device-copy",
        times=12,
    ),
    Bug(
        "margin_copied",
        "pytorch_metric_learning",
        ("margin_loss.py", "beta.to("),
        "distance.beta",
        "torch.tensor([float(beta)])",
        rule="host-to-device-copy",
        times=12,
    ),
    Bug(
        "rotary_dry_run",
        "rotary_embedding_torch",
        ("rotary_embedding_torch.py", "freqs.to(t)"),
        "freqs",
        rule="host-to-device-copy",
        times=12,
    ),
]

HEALTHY = {
    "attention": "torch",
    "attributions": "captum",
    "augmentation": "kornia",
    "average_of_weights": "torch_ema",
    "decoder": "x_transformers",
    "flows": "zuko",
    "metric_of_an_epoch": "torchmetrics",
    "ode": "torchdiffeq",
    "optimizers": "torch_optimizer",
    "schedule_free": "schedulefree",
    "sharded": "torch",
}


def is_at(site: Site | None, file: str, words: str) -> bool:
    return site is not None and Path(site.file).name == file and words in site.text


def finding_of(outcome: Outcome, bug: Bug) -> Finding:
    """Return the one finding of this bug; an error is the only one."""
    found = [each for each in outcome.findings if each.severity != "note" and is_at(each.site, *bug.site)]
    assert len(found) == 1, outcome.text
    assert outcome.errors in ([], found)
    return found[0]


@pytest.mark.parametrize("bug", [pytest.param(bug, id=bug.name, marks=needs.installed(bug.package)) for bug in BUGS])
def test_a_released_device_bug_is_explained(bug: Bug, warm: Warm) -> None:
    finding = finding_of(run(warm, REAL / "releases" / f"{bug.name}.py"), bug)
    assert (finding.rule, finding.cause, finding.count) == (bug.rule, bug.cause, bug.times)
    if bug.culprit:
        assert bug.culprit in culprit_of(finding).name
        assert bug.born in birth_of(finding).text


def assert_healthy(warm: Warm, path: Path) -> None:
    plain, simulated = run(warm, path, mode="plain"), run(warm, path)
    assert (simulated.raised, simulated.alarms, simulated.notes) == ("", [], ())
    assert len(plain.values) == len(simulated.values) > 0
    for one, other in zip(plain.values, simulated.values, strict=True):
        numpy.testing.assert_array_equal(other, one)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=needs.installed(package)) for name, package in HEALTHY.items()]
)
def test_a_healthy_program_gives_the_cpus_values_and_no_alarm(name: str, warm: Warm) -> None:
    assert_healthy(warm, REAL / "healthy" / f"{name}.py")


LARGE = sorted((REAL / "large").rglob("*.py"))


@pytest.mark.real
@pytest.mark.parametrize("path", [path for path in LARGE if path.parent.name == "healthy"], ids=lambda path: path.stem)
def test_a_healthy_program_of_a_large_framework_gives_the_cpus_values_and_no_alarm(path: Path, warm: Warm) -> None:
    assert_healthy(warm, path)


LARGE_BUGS = [
    Bug(
        "fastai-2.2.7/hidden_state",
        "fastai",
        ("awdlstm.py", "self.module(*args)"),
        "hidden[0][0]",
        "new_zeros(",
        "not-registered",
    ),
    Bug(
        "transformers-4.27.4/rotary_tables",
        "transformers",
        ("modeling_gpt_neox.py", "self.cos_cached[:seq_len, ...].to("),
        "cos_cached",
        rule="host-to-device-copy",
        times=24,
    ),
    Bug(
        "costs/structural_similarity",
        "pytorch_msssim",
        ("ssim.py", "win.to(X.device"),
        "several.win",
        rule="host-to-device-copy",
        times=20,
    ),
    Bug("costs/stochastic_ode", "torchsde", ("base_solver.py", "min(curr_t"), rule="host-sync", times=15),
    Bug(
        "costs/vector_quantized",
        "vector_quantize_pytorch",
        ("vector_quantize_pytorch.py", "self.initted"),
        rule="host-sync",
        times=12,
    ),
]


@pytest.mark.real
@pytest.mark.parametrize("bug", LARGE_BUGS, ids=lambda bug: bug.name)
def test_what_a_release_does_wrong_or_in_each_step_is_explained(bug: Bug, warm: Warm) -> None:
    finding = finding_of(run(warm, REAL / "large" / f"{bug.name}.py"), bug)
    assert (finding.rule, finding.cause, finding.count) == (bug.rule, bug.cause, bug.times)
    assert bug.culprit in (finding.culprit.name if finding.culprit else "")


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "failed", "culprit", "born"),
    [
        ("fitted", "weight=self.weights)", "model.weights", "self.weights = torch.tensor("),
        ("accelerated", "self.layer(x) * self.table", "model.table", "self.table = torch.arange(4.0)"),
    ],
)
def test_what_a_framework_runs_is_explained_without_a_trace_as_with_one(
    name: str, failed: str, culprit: str, born: str, warm: Warm
) -> None:
    path = REAL / "large" / "bugs" / f"{name}.py"
    for outcome in (run(warm, path), run(warm, path, mode="untraced")):
        (finding,) = outcome.errors
        assert (finding.cause, {*finding.devices}) == ("not-registered", {"cpu", "cuda:0"})
        assert is_at(finding.site, path.name, failed)
        assert culprit_of(finding).name == culprit
        assert is_at(culprit_of(finding).born, path.name, born)
