"""devtrace in a project's own tests: a marker that records a test, and a fixture with devtrace's functions.

    @pytest.mark.devices(simulate="cuda:2", errors=0, syncs=0)
    def test_training_step(devtrace): ...

Loaded by pytest in every project of the environment, so that it imports nothing until a test asks for it.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from devtrace.api.recording import record

_SETTING: Final = "devtrace_explain"
_SETTING_MEANING: Final = "let devtrace explain the device errors of tests that it does not record"
_LIMITS: Final = {"errors": 0, "warnings": None, "syncs": None, "copies": None}
_FORM: Final = "devices(simulate=None, expect=None, errors=0, warnings=None, syncs=None, copies=None)"


class Handle:
    """Gives the fixture's user devtrace's public functions, and the recording of a marked test."""

    recording: record | None = None

    def __getattr__(self, name: str) -> Any:
        import devtrace

        return getattr(devtrace, name)


class MarkerOptions:
    """Arguments of a test's marker."""

    def __init__(self, marker: pytest.Mark) -> None:
        unknown = set(marker.kwargs) - {"simulate", "expect", *_LIMITS}
        if marker.args or unknown:
            from devtrace.words.catalogue import comma, sentence

            words = comma().join(sorted(unknown)) or sentence("pytest.unnamed")
            raise pytest.UsageError(sentence("pytest.got", words=words, form=_FORM, help=sentence("pytest.marker")))
        self.simulate: str | None = marker.kwargs.get("simulate")
        self.expect: str | None = marker.kwargs.get("expect")
        self.limits: dict[str, int | None] = {key: marker.kwargs.get(key, most) for key, most in _LIMITS.items()}

    def exceeded(self, recording: record) -> list[str]:
        """Make a sentence for each limit that the recorded test went beyond, with the lines that did."""
        limits = [(name, most) for name, most in self.limits.items() if most is not None]
        return [words for name, most in limits if (words := _beyond(recording, name, most))]


def _beyond(recording: record, name: str, most: int) -> str:
    """Make the sentence for one limit; "" where the test kept it."""
    from devtrace.api.expectation_check import lines_that
    from devtrace.words.catalogue import sentence

    if name in ("syncs", "copies"):
        key, by_line = f"{name}-unexpected.got", lines_that(recording.trace, name)
        count, lines = by_line.total(), [f"  {made:,}×  {line}" for line, made in by_line.most_common()]
    else:
        key, lines = f"pytest.{name}", []
        count = sum(finding.severity == name.removesuffix("s") for finding in recording.report.findings)
    if count <= most:
        return ""
    return "\n".join([sentence("pytest.beyond", found=sentence(key, count=count), most=most), *lines])


_OPTIONS: Final = pytest.StashKey[MarkerOptions]()
_UNDO: Final = pytest.StashKey[ExitStack]()
_HANDLE: Final = pytest.StashKey[Handle]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(_SETTING, _SETTING_MEANING, "bool", True)


def pytest_configure(config: pytest.Config) -> None:
    meaning = ""
    if config.getoption("markers", False):
        from devtrace.words.catalogue import sentence

        meaning = f": {sentence('pytest.marker')}"
    config.addinivalue_line("markers", f"{_FORM}{meaning}")
    if config.getini(_SETTING):
        from devtrace.api.installation import watch_modules

        config.add_cleanup(watch_modules())


def _explain(item: pytest.Item, when: str, error: BaseException) -> None:
    """Put the report on a device error beside a test that nobody recorded; nothing beside any other error."""
    if not item.config.getini(_SETTING):
        return
    from devtrace.api.installation import explained

    with suppress(Exception):  # the test's error is its own
        if text := explained(error):
            item.add_report_section(when, "devtrace", text)


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
        options = item.stash[_OPTIONS] = MarkerOptions(marker)
        from devtrace.runtime.requirements import need_torch

        need_torch()
        from devtrace.recording.context import hooks

        undo = item.stash[_UNDO] = ExitStack()
        hooks.install()
        undo.callback(hooks.uninstall)
        if options.simulate:
            from devtrace.simulation.simulation import simulate

            undo.enter_context(simulate(options.simulate))
    try:
        return (yield)
    except BaseException as error:
        _explain(item, "setup", error)
        raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    try:
        return (yield)
    finally:
        item.stash.get(_UNDO, ExitStack()).close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Record the test; its own failure is its own, with the report beside it."""
    options = item.stash.get(_OPTIONS, None)
    if options is None:
        try:
            return (yield)
        except BaseException as error:
            _explain(item, "call", error)
            raise
    from devtrace.api.recording import record

    recording = record(name=item.nodeid, expect=options.expect, namespace=getattr(item, "module", item).__dict__)
    if _HANDLE in item.stash:
        item.stash[_HANDLE].recording = recording
    try:
        with recording:
            result = yield
    except BaseException:
        item.add_report_section("call", "devtrace", recording.report.text)
        raise
    exceeded = options.exceeded(recording)
    if exceeded:
        pytest.fail("\n".join([*exceeded, "", recording.report.text]), pytrace=False)
    return result
