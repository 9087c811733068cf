"""devtrace in a project's own tests: a marker that records a test, and a fixture with devtrace's functions.

    @pytest.mark.devices(simulate="cuda:2", errors=0, syncs=0)
    def test_training_step(devtrace): ...

    pytest --devtrace=cuda:2 --devtrace-json findings.json      the whole suite, without a marker
    pytest --devtrace=cuda:2 --devtrace-try                     says of a failed test whether it passes with its fix

The findings of tests that failed are written as JSON, as SARIF, and as annotations where GitHub Actions runs the tests.
A test's findings travel with its report, from the workers of pytest-xdist too.
Loaded by pytest in every project of the environment, so that it imports nothing until a test asks for it.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from devtrace.api.recording import record
    from devtrace.api.results import Report
    from devtrace.recording.peak import Peak
    from devtrace.runtime.simulated import Simulation

_SETTING: Final = "devtrace_explain"
_SETTING_MEANING: Final = "let devtrace explain the device errors of tests that it does not record"
_DEVICES_MEANING: Final = "run every test on N simulated CUDA devices, and explain the device errors that fail a test"
_TRY_MEANING: Final = "run a test that fails with a device error again, with each edit of its report, in a fork"
_ATTRIBUTE: Final = "devtrace_findings"
_LIMITS: Final = {"errors": 0, "warnings": None, "syncs": None, "copies": None}
_FORM: Final = "devices(simulate=None, expect=None, errors=0, warnings=None, syncs=None, copies=None, memory=None)"


class Handle:
    """Gives the fixture's user devtrace's public functions, and the recording of a marked test."""

    recording: record | None = None

    def __getattr__(self, name: str) -> Any:
        import devtrace

        return getattr(devtrace, name)


class MarkerOptions:
    """Arguments of a test's marker."""

    def __init__(self, *unnamed: Any, **arguments: Any) -> None:
        unknown = set(arguments) - {"simulate", "expect", "memory", *_LIMITS}
        if unnamed or unknown:
            from devtrace.words.catalogue import comma, sentence

            words = comma().join(sorted(unknown)) or sentence("pytest.unnamed")
            raise pytest.UsageError(sentence("pytest.got", words=words, form=_FORM, help=sentence("pytest.marker")))
        self.simulate: str | None = arguments.get("simulate")
        self.expect: str | None = arguments.get("expect")
        self.memory: str | None = arguments.get("memory")
        self.peak: Peak | None = None
        self.limits: dict[str, int | None] = {key: arguments.get(key, most) for key, most in _LIMITS.items()}

    def begin(self) -> None:
        """Count the test's memory from here on."""
        if self.memory is not None:
            from devtrace.recording.peak import Peak

            self.peak = Peak.of(self.memory)

    def exceeded(self, recording: record) -> dict[str, str]:
        """Return a sentence for each limit that the recorded test exceeded, by the limit's name, with the lines."""
        from devtrace.api.expectation_check import peak_error

        limits = [(name, most) for name, most in self.limits.items() if most is not None]
        sentences = {name: text for name, most in limits if (text := _excess(recording, name, most))}
        error = peak_error(self.peak)
        return sentences if error is None else {**sentences, "memory": str(error)}


def _excess(recording: record, name: str, most: int) -> str:
    """Return the sentence on a limit that the test exceeded, with the lines that did; "" if it kept the limit."""
    from devtrace.api.expectation_check import lines_that
    from devtrace.contract.entries import COUNTED
    from devtrace.words.catalogue import sentence

    if name in COUNTED:
        key, by_line = COUNTED[name], lines_that(recording.trace, name)
        count, lines = by_line.total(), [f"  {times:,}×  {line}" for line, times in by_line.most_common()]
    else:
        key, lines = "pytest.errors" if name == "errors" else "pytest.warnings", []
        count = sum(finding.severity == name.removesuffix("s") for finding in recording.report.findings)
    if count <= most:
        return ""
    return "\n".join([sentence("pytest.beyond", found=sentence(key, count=count), most=most), *lines])


_OPTIONS: Final = pytest.StashKey[MarkerOptions]()
_UNDO: Final = pytest.StashKey[ExitStack]()
_HANDLE: Final = pytest.StashKey[Handle]()
_RECORDING: Final = pytest.StashKey["record"]()
_OF_THE_TRACE: Final[tuple[pytest.StashKey[Any], ...]] = (_RECORDING, _HANDLE)
_EXCEEDED: Final = pytest.StashKey[Mapping[str, int]]()
_SUITE: Final = pytest.StashKey["Simulation"]()
"""Devices of `--devtrace`, simulated for the whole suite from before it is collected."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(_SETTING, _SETTING_MEANING, "bool", True)
    group = parser.getgroup("devtrace")
    group.addoption("--devtrace", metavar="cuda:N", help=_DEVICES_MEANING)
    group.addoption("--devtrace-try", action="store_true", help=_TRY_MEANING)
    group.addoption("--devtrace-json", metavar="FILE", help="write the findings of failed tests as JSON")
    group.addoption("--devtrace-sarif", metavar="FILE", help="write the findings of failed tests as SARIF 2.1.0")
    group.addoption("--devtrace-notes", action="store_true", help="put notes, too, into annotations and SARIF")


def pytest_configure(config: pytest.Config) -> None:
    meaning = ""
    if config.getoption("markers", False):
        from devtrace.words.catalogue import sentence

        meaning = f": {sentence('pytest.marker')}"
    config.addinivalue_line("markers", f"{_FORM}{meaning}")
    if config.getini(_SETTING):
        from devtrace.api.module_watch import watch_modules

        config.add_cleanup(watch_modules())
    config.pluginmanager.register(TestFindings(config), "devtrace-findings")
    devices = config.getoption("--devtrace")
    if devices:
        _simulate_for_the_suite(config, devices)


def _simulate_for_the_suite(config: pytest.Config, devices: str) -> None:
    from devtrace.api.module_watch import watch_modules
    from devtrace.runtime.requirements import need_torch
    from devtrace.runtime.simulated import simulate
    from devtrace.words.errors import DevtraceError

    try:
        need_torch()
        suite = config.stash[_SUITE] = simulate(devices).start()
    except DevtraceError as error:
        raise pytest.UsageError(str(error)) from None
    config.add_cleanup(suite.stop)
    config.add_cleanup(watch_modules())


@pytest.fixture
def devtrace(request: pytest.FixtureRequest) -> Handle:
    """devtrace's functions; `.recording` is that of the test's `devices` marker."""
    handle = Handle()
    request.node.stash[_HANDLE] = handle
    return handle


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    """Simulate before the fixtures that use the devices, and watch what they attach and move."""
    marker = item.get_closest_marker("devices")
    if marker is not None:
        options = item.stash[_OPTIONS] = MarkerOptions(*marker.args, **marker.kwargs)
        from devtrace.api.module_watch import watch_modules
        from devtrace.runtime.requirements import need_torch

        need_torch()
        undo = item.stash[_UNDO] = ExitStack()
        undo.callback(watch_modules())
        if options.simulate:
            _simulate_for_a_test(item.config, options.simulate, undo)
    return (yield)


def _simulate_for_a_test(config: pytest.Config, devices: str, undo: ExitStack) -> None:
    """Give one test its marker's devices, in the place of the suite's."""
    from devtrace.runtime.simulated import simulate

    suite: Simulation | None = config.stash.get(_SUITE, None)
    if suite is not None and suite.spec == devices:
        return
    if suite is not None:
        suite.stop()
        undo.callback(suite.start)
    undo.enter_context(simulate(devices))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """End the test's simulation and forget its trace: a suite would keep them all."""
    try:
        return (yield)
    finally:
        item.stash.get(_UNDO, ExitStack()).close()
        for key in _OF_THE_TRACE:
            if key in item.stash:
                del item.stash[key]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Record the test; its own failure is its own, with the report beside it."""
    if _OPTIONS not in item.stash and _SUITE not in item.config.stash:
        return (yield)
    from devtrace.api.recording import record

    options = item.stash.get(_OPTIONS, MarkerOptions(errors=None))
    options.begin()
    recording = item.stash[_RECORDING] = record(
        name=item.nodeid, expect=options.expect, namespace=getattr(item, "module", item).__dict__
    )
    if _HANDLE in item.stash:
        item.stash[_HANDLE].recording = recording
    with recording:
        result = yield
    if exceeded := options.exceeded(recording):
        item.stash[_EXCEEDED] = {name: options.limits.get(name) or 0 for name in exceeded}
        pytest.fail("\n".join([*exceeded.values(), "", recording.report.text]), pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Add our report to the failure of a test: to a marked one always, to others if a device error failed them."""
    test_report: pytest.TestReport = yield
    if not test_report.failed:
        return test_report
    from devtrace.runtime.watching import ERRORS

    with ERRORS:  # the test's error is its own
        report = _report_on(item, call)
        if report is not None:
            from devtrace.contract.entries import entries_of_test
            from devtrace.features import need

            if item.config.getoption("--devtrace-try"):
                report = need("trial", "test")(item, report, call.duration)
            if _EXCEEDED not in item.stash:
                test_report.sections.append((f"Captured devtrace {call.when}", report.text))
            entries = entries_of_test(report, test_report.nodeid, item.stash.get(_EXCEEDED, {}))
            setattr(test_report, _ATTRIBUTE, [entry.to_json() for entry in entries])
    return test_report


def _report_on(item: pytest.Item, call: pytest.CallInfo[None]) -> Report | None:
    """Return the report on a failure: of the recorded test, or of a device error that nobody recorded."""
    recording = item.stash.get(_RECORDING, None)
    if call.when == "call" and recording is not None:
        has_error = any(finding.severity == "error" for finding in recording.report.findings)
        return recording.report if has_error or _OPTIONS in item.stash else None
    if call.excinfo is None or not (item.config.getini(_SETTING) or _SUITE in item.config.stash):
        return None
    from devtrace.features import find

    explain = find("function", "explain") if "torch" in sys.modules else None
    report: Report | None = explain(call.excinfo.value) if explain is not None else None
    return report if report is not None and report.findings else None


class TestFindings:
    """Collects findings as tests end, and writes them after the last."""

    __test__ = False

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._findings: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._findings += getattr(report, _ATTRIBUTE, [])

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Write the files and annotations; a worker has no terminal, and so writes none."""
        option = self._config.getoption
        json_file, sarif_file, notes = (option(f"--devtrace-{name}") for name in ("json", "sarif", "notes"))
        if not self._findings and not json_file and not sarif_file:
            return
        from devtrace.contract import code_scanning, findings_json
        from devtrace.contract.entries import read_entries, worth_showing

        entries = read_entries(self._findings)
        shown = worth_showing(entries, notes=notes)
        root = code_scanning.project_folder(self._config.invocation_params.dir)
        if json_file:
            findings_json.write(findings_json.of_tests(entries), Path(json_file))
        if sarif_file:
            findings_json.write(code_scanning.sarif(shown, (), root), Path(sarif_file))
        if code_scanning.in_github_actions():
            for line in code_scanning.github_annotations(shown, root):
                terminalreporter.write_line(line)
