"""What each test takes, kept in `build/durations.json`; the file that took longest begins first in the next run.

    python tests/harness/durations.py      the longest tests and files of the last runs; 1 where one is over its limit

Seconds are the processor's, of a test and of all it started: a busy machine does not change them by much. Browsers and
kernels of a server are not among them; their tests wait, and have time limits of their own.
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
_BEGAN: Final = pytest.StashKey[float]()
_NAME: Final = "seconds"


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

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Begin with the longest file, and with what is new: the end of a run is then made of short ones."""
        files = of_files(self._before)
        items.sort(key=lambda item: -files.get(file_of(item.nodeid), LONGEST_FILE * bool(slow(item))))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        item.stash[_BEGAN] = spent()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        report = yield
        if call.when == "teardown":
            report.user_properties.append((_NAME, spent() - item.stash[_BEGAN]))  # type: ignore[attr-defined]
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties:
            if name == _NAME:
                self._took[report.nodeid] = float(str(value))

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
    for limit, found in ((LONGEST_FILE, of_files(tests)), (LONGEST_TEST, tests)):
        for name, seconds in found.most_common(8):
            over |= seconds > limit
            print(f"{seconds:8.1f} s{f' > {limit:.0f}' if seconds > limit else '':6} {name}")
    return int(over)


if __name__ == "__main__":
    sys.exit(main())
