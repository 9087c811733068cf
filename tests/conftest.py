"""Every Python that a test starts (kernel, server, script) sees this checkout's sources, and speaks English."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from choosing import mark_breadth, sample
from warm import SHARED, Warm

SOURCES = str(Path(__file__).parents[1] / "src")
os.environ["DEVTRACE_LANGUAGE"] = "en"
# Workers share the processors. Threads of torch's wait for each other at full speed: a test that computes would take
# three times as much of the processor, and six times as long beside another such.
os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # jsonschema's, for addresses: 1.5 s to import
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # as CI and users have it: a stale compiled file is found here too
os.environ["PYTHONPATH"] = os.pathsep.join([SOURCES, *filter(None, [os.environ.get("PYTHONPATH")])])

# How long an example takes is the machine's. The rest is as hypothesis has it: in CI each run draws the same ones.
settings.register_profile("any machine", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "of each test with parameters, one case in N, whatever its own marks leave to `make breadth`"
    parser.addoption("--one-in", type=int, default=0, metavar="N", help=text)


@pytest.hookimpl(tryfirst=True)  # before the marks are asked for
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    one_in = config.getoption("one_in")
    if not one_in:
        mark_breadth(items)
    kept = {*sample(items, one_in or 1)}
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    # Files that take long come first, so that no worker is left alone with one.
    items[:] = sorted((item for item in items if item in kept), key=lambda item: not item.get_closest_marker("slow"))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    pass_over_what_is_there()
    if workers := sys.modules.get("torch.utils.data._utils"):
        workers.MP_STATUS_CHECK_INTERVAL = 0.5  # type: ignore[attr-defined]  # seconds: torch waits 5 for a failed one


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    if nextitem is not None and nextitem.path != item.path:
        pass_over_what_is_there()


def pass_over_what_is_there() -> None:
    """Let the collector, and who asks it for all objects, not walk what was imported and what earlier files left."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _shared_runs(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let all workers of a session have what the run of a program gave to one of them."""
    own = tmp_path_factory.getbasetemp()
    SHARED.folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "runs"
    SHARED.folder.mkdir(exist_ok=True)


@pytest.fixture(scope="session")
def warm() -> Iterator[Warm]:
    """A Python with torch loaded, whose forks run programs."""
    with Warm() as warm:
        yield warm


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which the test runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def two() -> Iterator[None]:
    import devtrace

    with devtrace.simulate("cuda:2"):
        yield
