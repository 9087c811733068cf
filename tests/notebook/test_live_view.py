"""LiveView: what its messages say of a recording agrees with the trace that it becomes."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from itertools import pairwise
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from ipywidgets import DOMWidget
from traitlets import Unicode

import devtrace
from built import stale
from devtrace.api.recording import record, watch
from devtrace.notebook import live_view
from devtrace.notebook.live_view import LiveView
from devtrace.notebook.panel import feed
from devtrace.notebook.panel.messages import refusal
from devtrace.recording.progress import COLUMNS
from devtrace.report import renderer
from devtrace.report.mime import MIME_TYPE
from devtrace.trace.format import decode
from kernels import Kernel, new_kernel


def test_the_ops_sent_piece_by_piece_are_those_of_the_trace() -> None:
    with record(simulate="cuda:2") as recording:
        growth = recording.growth()
        assert growth is not None
        parts = [growth.new()]
        for step in range(300):
            x = torch.rand(4, requires_grad=True).to(f"cuda:{step % 2}")
            x.mul(2).sum().backward()
            if step % 50 == 0:
                parts.append(growth.new())
        parts.append(growth.new())
        parts.append(growth.new())
    trace = recording.trace
    columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in COLUMNS}
    names, devices = ([text for part in parts for text in getattr(part, key)] for key in ("names", "devices"))
    assert len(parts[-1]) == 0
    assert [names[name] for name in columns["name"]] == [op.name for op in trace.ops]
    assert [devices[device] for device in columns["device"]] == [str(op.device) for op in trace.ops]
    assert columns["start"].tolist() == [op.start for op in trace.ops]
    assert columns["duration"].tolist() == [op.duration for op in trace.ops]
    assert [["", "backward", "optimizer"][phase] for phase in columns["phase"]] == [
        op.phase if op.phase == "backward" else "" for op in trace.ops
    ]


def test_each_chunk_and_what_is_not_packed_yet_is_sent_once() -> None:
    with record() as recording:
        growth = recording.growth()
        assert growth is not None
        sizes = []
        for count in (10, 4090, 20, 9000, 0, 1):
            for _ in range(count):
                torch.ones(2)
            sizes.append(len(growth.new()))
    assert sizes == [10, 4090, 20, 9000, 0, 1]


def test_what_is_watched_begins_and_ends_with_each_recording_and_a_failing_watcher_is_let_go() -> None:
    seen: list[str] = []

    def failing(what: str, recording: record) -> None:
        raise ValueError

    undo, undo_failing = watch(lambda what, recording: seen.append(f"{what} {recording.name}")), watch(failing)
    with pytest.raises(KeyError), record(name="a"):
        raise KeyError
    undo_failing()
    undo()
    with record(name="b"):
        pass
    assert seen == ["began a", "ended a"]


class Heard(LiveView):
    """A view whose messages are kept instead of sent; each of them fits the list."""

    def __init__(self) -> None:
        self.messages: list[tuple[dict[str, Any], list[bytes]]] = []
        super().__init__()

    def send(self, content: dict[str, Any], buffers: list[bytes] | None = None) -> None:
        assert refusal("to_view", content) is None
        self.messages.append((content, buffers or []))


def columns(messages: list[tuple[dict[str, Any], list[bytes]]]) -> dict[str, Any]:
    """All columns, put together as a browser does."""
    found: dict[str, list[Any]] = {}
    for content, buffers in messages:
        if content["kind"] == "begin":
            found = {}
        if content["kind"] == "append":
            for name, data in zip(COLUMNS, buffers, strict=True):
                column = np.frombuffer(data, "<f8")
                assert len(column) == content["length"]
                found.setdefault(name, []).append(column)
    return {name: np.concatenate(parts) for name, parts in found.items()}


@pytest.fixture
def view() -> Iterator[Heard]:
    heard = Heard()
    yield heard
    heard.close()


def test_a_view_hears_of_a_recording_from_its_beginning_to_its_end(view: Heard) -> None:
    with devtrace.record(name="In[3]") as recording:
        torch.ones(4).add_(1)
    kinds = [content["kind"] for content, _ in view.messages]
    assert kinds[0] == "begin"
    assert kinds[-1] == "end"
    assert set(kinds[1:-1]) == {"append"}
    assert view.messages[0][0]["title"] == "In[3]"
    last = view.messages[-2][0]
    assert (last["ops"], last["counts"]) == (2, {"cpu": [2, 16]})
    assert columns(view.messages)["start"].tolist() == [op.start for op in recording.trace.ops]


def test_a_view_that_comes_late_gets_all_and_one_that_comes_when_nothing_runs_gets_that(view: Heard) -> None:
    view._receive(view, {"kind": "ready"}, [])
    assert [content["kind"] for content, _ in view.messages] == ["idle"]
    with devtrace.record() as recording:
        for _ in range(5000):
            torch.ones(4)
        view._look()
        view.messages.clear()
        view._receive(view, {"kind": "ready"}, [])
        torch.ones(4)
    assert len(columns(view.messages)["start"]) == len(recording.trace.ops) == 5001


@pytest.mark.parametrize("content", [None, 3, "stop", {}, {"kind": "other"}, {"kind": ["stop"]}, {"kind": "stop"}])
def test_what_is_not_understood_or_comes_when_nothing_runs_does_nothing(view: Heard, content: Any) -> None:
    view._receive(view, content, [])
    assert view.messages == []


def test_a_view_looks_each_period_while_something_is_recorded_and_sleeps_otherwise(view: Heard) -> None:
    assert view._feed._pace() is None
    with devtrace.record():
        assert view._feed._pace() == feed.PERIOD
    assert view._feed._pace() is None


CLOSED = SimpleNamespace(_closed=True, comm_id="1", on_msg=lambda _: None, close=lambda **_: None)


@pytest.mark.parametrize("close", [Heard.close, lambda view: setattr(view, "comm", CLOSED)])
def test_a_view_that_was_closed_or_whose_channel_was_by_another_is_sent_nothing(view: Heard, close: Any) -> None:
    close(view)
    with devtrace.record():
        torch.ones(1)
    assert view.messages == []


def test_until_a_view_is_heard_of_all_is_sent_again_each_time_the_recording_has_run_twice_as_long(
    view: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    view._is_seen = False
    view._feed.close()  # the test itself looks, when its clock says so
    seconds = 0.0
    monkeypatch.setattr(live_view, "monotonic", lambda: seconds)
    begun = []
    with devtrace.record():
        for seconds in (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 7.0, 8.0, 9.0):
            torch.ones(1)
            view.messages.clear()
            view._look()
            if view.messages[0][0]["kind"] == "begin":
                begun.append((seconds, len(columns(view.messages)["start"])))
        view._receive(view, {"kind": "ready"}, [])
        seconds = 16.0
        view.messages.clear()
        view._look()
        assert {content["kind"] for content, _ in view.messages} == {"append"}
    assert begun == [(1.0, 2), (2.0, 4), (4.0, 6), (8.0, 8)]


def test_a_recording_that_ends_before_any_view_is_there_is_sent_to_the_first_that_comes(view: Heard) -> None:
    view._is_seen = False
    with devtrace.record(name="In[3]") as recording:
        torch.ones(4).add_(1)
    view.messages.clear()
    view._receive(view, {"kind": "ready"}, [])
    assert [content["kind"] for content, _ in view.messages] == ["begin", "append", "end"]
    assert (view.messages[0][0]["title"], view.messages[2][0]["ops"]) == ("In[3]", 2)
    assert columns(view.messages)["start"].tolist() == [op.start for op in recording.trace.ops]
    view.messages.clear()
    view._receive(view, {"kind": "ready"}, [])
    assert [content["kind"] for content, _ in view.messages] == ["idle"]


def test_stop_interrupts_no_recording_of_another_thread(view: Heard) -> None:
    """marimo runs an app's cells in a thread: an interrupt would end its server."""
    began, ends = threading.Event(), threading.Event()

    def work() -> None:
        with devtrace.record():
            began.set()
            ends.wait()

    thread = threading.Thread(target=work)
    thread.start()
    began.wait()
    view._receive(view, {"kind": "stop"}, [])
    ends.set()
    thread.join()


class AnyWidget(DOMWidget):  # type: ignore[misc]
    """As much of anywidget's as says that it is one."""

    _model_module = Unicode("anywidget").tag(sync=True)


@pytest.fixture
def anywidget(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    assert not (reason := stale()), reason
    monkeypatch.setattr(renderer, "_chosen", None)
    monkeypatch.delenv("DEVTRACE_RENDERER", raising=False)
    installed = ModuleType("anywidget")
    installed.__spec__ = ModuleSpec("anywidget", None)
    monkeypatch.setattr(installed, "AnyWidget", AnyWidget, raising=False)
    monkeypatch.setitem(sys.modules, "anywidget", installed)
    live_view._with_its_view.cache_clear()
    yield
    live_view._with_its_view.cache_clear()


@pytest.mark.usefixtures("anywidget")
def test_where_no_extension_of_ours_can_be_the_view_is_an_anywidget_in_the_language_of_its_reader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KAGGLE_KERNEL_RUN_TYPE", "Interactive")
    monkeypatch.setenv("DEVTRACE_LANGUAGE", "zh")
    view = devtrace.LiveView()
    assert isinstance(view, AnyWidget)
    assert isinstance(view, devtrace.LiveView)
    assert (view._model_module, view.language) == ("anywidget", "zh")
    assert "export" in view._esm
    assert str(view).startswith("devtrace.LiveView: ")
    view.close()


@pytest.mark.usefixtures("anywidget")
def test_in_jupyterlab_or_without_anywidget_the_view_is_that_of_our_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    assert type(devtrace.LiveView()) is LiveView
    monkeypatch.setenv("DEVTRACE_RENDERER", "script")
    assert type(devtrace.LiveView()) is not LiveView
    monkeypatch.setattr(live_view, "find_spec", lambda name: None)
    assert type(devtrace.LiveView()) is LiveView


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    with new_kernel() as started:
        yield started


@pytest.mark.slow
def test_in_a_kernel_at_most_ten_messages_a_second_leave_while_a_cell_runs(kernel: Kernel) -> None:
    kernel.run("%load_ext devtrace", "import devtrace, torch", "view = devtrace.LiveView()")
    kernel.run("sent, send = [], view.send", "view.send = lambda *message: (sent.append(message), send(*message))")
    # Only the period keeps messages apart: a feed that rests as well makes the cell longer, and its report larger.
    kernel.run("from devtrace.notebook.panel import feed", "feed.REST = 0")
    sent = kernel.run("%%devtrace", "while len(sent) < 12: torch.ones(1 << 20).add_(1)")
    sent_messages = [
        output["data"]["content"]
        for output in sent.outputs
        if output["type"] == "comm_msg" and output["data"].get("method") == "custom"
    ]
    kinds = Counter(content["kind"] for content in sent_messages)
    assert kinds["begin"] == kinds["end"] == 1
    *times, _ = [
        content["seconds"] for content in sent_messages if content["kind"] == "append"
    ]  # the last is the end's
    assert len(times) >= 10
    assert min(later - earlier for earlier, later in pairwise(times)) >= 0.1
    trace = decode(sent.reports[0][MIME_TYPE])
    assert sent_messages[-1]["ops"] == trace.truncated + len(trace.ops)


@pytest.mark.slow
def test_in_a_kernel_a_view_is_a_widget_of_our_extension(kernel: Kernel) -> None:
    sent = kernel.run("import devtrace", "devtrace.LiveView()")
    [shown] = [output["data"] for output in sent.outputs if output["type"] == "execute_result"]
    assert "application/vnd.jupyter.widget-view+json" in shown
    assert shown["text/plain"].startswith("devtrace.LiveView: the timeline of a traced cell")
    [opened] = [
        output["data"]["state"]
        for output in sent.outputs
        if output["type"] == "comm_open" and "Live" in str(output["data"])
    ]
    assert (opened["_model_name"], opened["_view_name"], opened["_view_module"]) == (
        "DevtraceLiveModel",
        "DevtraceLiveView",
        "devtrace",
    )
