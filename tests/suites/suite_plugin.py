"""A plugin of pytest that runs one file of PyTorch's own tests, on simulated devices or on the CPU, for a while.

SUITE_DEVICE is `cuda` or `cpu`, SUITE_SECONDS the time after which no test begins, SUITE_OUT a file of JSON lines, one
a test. Tests come in the order of a hash of SUITE_SEED and their names: what ran is a fair sample. First come those
that SUITE_FIRST names.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

DEVICE = os.environ["SUITE_DEVICE"]
LIMIT = 30  # seconds for a test

if DEVICE == "cuda":
    import devtrace

    devtrace.simulate("cuda:2").start()

import torch  # noqa: E402 (after the simulation has begun)
from torch.nn.attention import flex_attention  # noqa: E402
from torch.testing._internal import (  # noqa: E402
    common_cuda,
    common_device_type,
    common_methods_invocations,
    common_mkldnn,
    common_utils,
)
from torch.utils import _dtype_abbrs  # noqa: E402

torch.set_num_threads(1)
os.environ["PYTORCH_TESTING_DEVICE_ONLY_FOR"] = DEVICE
sys.modules["torchvision"] = None  # type: ignore[assignment]
# Names that torch.testing has no more and the older tests import.
for name in ("skipIfTorchInductor", "skipIfTorchDynamo", "xfailIfTorchDynamo", "skipIfNoDynamoSupport"):
    vars(common_utils).setdefault(name, lambda *_, **__: lambda test: test)
vars(common_mkldnn).setdefault("bf32_on_and_off", common_mkldnn.reduced_f32_on_and_off)
vars(common_cuda).setdefault("tf32_is_not_fp32", lambda: False)
vars(common_cuda).setdefault("PLATFORM_SUPPORTS_FLASH_ATTENTION_XPU", False)
vars(flex_attention).setdefault("create_nested_block_mask", None)
vars(common_utils).setdefault("dtype_abbrs", _dtype_abbrs.dtype_abbrs)
vars(common_device_type).setdefault("TEST_CUDA", common_utils.TEST_CUDA)
for name in ("skip", "xfail"):
    vars(common_methods_invocations).setdefault(name, vars(common_device_type).get(name))
vars(common_methods_invocations).setdefault("skipOps", lambda *named: common_device_type.skipOps(named[-1]))
vars(common_methods_invocations).setdefault("binary_ufuncs_and_refs", common_methods_invocations.binary_ufuncs)


def plain_name(name: str) -> str:
    """Return the name of a test, the same on both devices."""
    return re.sub(r"(?i)(cuda|cpu)(?=_|\b|::)", "DEVICE", name.rpartition("/")[2])


BEGUN: list[float] = []  # when the sample began; then once for each stopped test that was not charged to it


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    BEGUN.append(time.monotonic())
    first = set(os.environ.get("SUITE_FIRST", "").split("\n"))
    seed = os.environ.get("SUITE_SEED", "")
    items.sort(key=lambda item: hashlib.sha256((seed + plain_name(item.nodeid)).encode()).digest())
    items.sort(key=lambda item: plain_name(item.nodeid) not in first)


def _too_long(*_: object) -> None:
    if len(BEGUN) < 4:  # a test that is stopped, of three at most, is not charged to the sample, which it would end
        BEGUN.append(BEGUN[0])
        BEGUN[0] += LIMIT
    raise TimeoutError(f"Timeout of {LIMIT} s")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(LIMIT)
    yield
    signal.alarm(0)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if time.monotonic() - BEGUN[0] > float(os.environ["SUITE_SECONDS"]):
        pytest.exit("the sample is complete", returncode=0)


def _was_stopped(error: BaseException | None) -> bool:
    """Return whether a test's limit is behind its error, which a comparison may have made another of."""
    while error is not None and not isinstance(error, TimeoutError):
        error = error.__cause__ or error.__context__
    return error is not None


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Iterator[None]:
    outcome: Any = yield
    report = outcome.get_result()
    if report.when == "call" or report.outcome != "passed":
        error = call.excinfo
        words = "" if error is None else f"{error.type.__name__}: {error.value}".partition("To execute this test")[0]
        words = ("Timeout: " if error is not None and _was_stopped(error.value) else "") + words
        line = {"test": plain_name(item.nodeid), "outcome": report.outcome, "words": words[:300]}
        with Path(os.environ["SUITE_OUT"]).open("a") as file:
            file.write(json.dumps(line) + "\n")
