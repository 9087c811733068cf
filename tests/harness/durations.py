"""What each test takes, kept in `build/durations.json`; the file that took longest begins first in the next run.

    python tests/harness/durations.py      the longest tests and files of the last runs; 1 where one is over its limit

Seconds are the processor's, of a test and of all it started: a busy machine does not change them by much. Browsers and
kernels of a server are not among them; their tests wait, and have time limits of their own. What fixtures take is the
file's, since one of a module or session would else be its first test's.
"""

from __future__ import annotations

import fcntl
import json
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

import warm
from folders import ROOT

FILE: Final = ROOT / "build" / "durations.json"
LONGEST_TEST: Final = 20.0
LONGEST_FILE: Final = 90.0
PHASES: Final = ("setup", "call", "teardown")
SET_UP: Final = "(set-up)"
_MARK: Final = pytest.StashKey[float]()


class Durations:
    """Plugin that measures tests, in each worker, and keeps what they took, where there is a terminal."""

    def __init__(self, config: pytest.Config) -> None:
        given: Mapping[str, Any] = getattr(config, "workerinput", {})
        self._is_worker = bool(given)
        self._before: Mapping[str, float] = given.get("durations", {}) if given else read()
        self._took: dict[str, float] = {}

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Give every worker the same durations: all must collect in one order."""
        node.workerinput["durations"] = dict(self._before)

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Begin with the longest file, and with what is new: the end of a run is then made of short ones.

        Files that are named stay in their order: `make near` begins with the nearest.
        """
        if any(file_of(argument).endswith(".py") for argument in config.args):
            return
        files = of_files(self._before)
        items.sort(key=lambda item: -files.get(file_of(item.nodeid), LONGEST_FILE * bool(slow(item))))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        item.stash[_MARK] = spent()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        report = yield
        now = spent()
        # The list is the item's: its last report has what all three phases took.
        item.user_properties.append((call.when, now - item.stash[_MARK]))
        report.user_properties = list(item.user_properties)  # type: ignore[attr-defined]
        item.stash[_MARK] = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            seconds = {name: float(str(value)) for name, value in report.user_properties if name in PHASES}
            of_fixtures = f"{file_of(report.nodeid)}::{SET_UP}"
            self._took[report.nodeid] = seconds.get("call", 0.0)
            self._took[of_fixtures] = self._took.get(of_fixtures, 0.0) + seconds["setup"] + seconds["teardown"]

    def pytest_sessionfinish(self) -> None:
        if not self._is_worker and self._took:
            keep(self._took)


def slow(item: pytest.Item) -> bool:
    return item.get_closest_marker("slow") is not None


def spent() -> float:
    """Return the processor's seconds of this process, of those that it started and that have ended, and of forks."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime + warm.SPENT.seconds


def read() -> dict[str, float]:
    """Return what each test took when it last ran."""
    took: dict[str, float] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    return took


def keep(took: Mapping[str, float]) -> None:
    """Write what tests took beside what others did; of a file that ran, tests that are gone are forgotten."""
    FILE.parent.mkdir(exist_ok=True)
    with FILE.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = {test: seconds for test, seconds in read().items() if (ROOT / file_of(test)).exists()}
        joined = {test: round(seconds, 2) for test, seconds in (known | dict(took)).items()}
        part = FILE.with_suffix(".part")
        part.write_text(json.dumps(dict(sorted(joined.items())), indent=1) + "\n", encoding="utf-8")
        part.replace(FILE)


def file_of(test: str) -> str:
    return test.partition("::")[0]


def of_files(took: Mapping[str, float]) -> Counter[str]:
    """Return the sum of each file."""
    files: Counter[str] = Counter()
    for test, seconds in took.items():
        files[file_of(test)] += seconds  # type: ignore[assignment]
    return files


def main() -> int:
    tests = Counter(read())
    print(f"{tests.total():.0f} s of the processor for {len(tests)} tests; the longest files and tests:")
    over = False
    of_tests = Counter({test: seconds for test, seconds in tests.items() if not test.endswith(SET_UP)})
    for limit, found in ((LONGEST_FILE, of_files(tests)), (LONGEST_TEST, of_tests)):
        for name, seconds in found.most_common(8):
            over |= seconds > limit
            print(f"{seconds:8.1f} s{f' > {limit:.0f}' if seconds > limit else '':6} {name}")
    return int(over)


if __name__ == "__main__":
    sys.exit(main())
