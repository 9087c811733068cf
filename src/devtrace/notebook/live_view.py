"""A cell's timeline while the cell runs: `devtrace.LiveView()`, an ipywidget; its view is in our JupyterLab extension.

Where no extension of ours can be (marimo, VS Code, Colab), it is an anywidget, which brings its view along, if that is
installed: `pip install "devtrace[live]"`. Both speak the same messages.

Its custom messages are those of `panel/messages.json`, `to_view` and `from_view`. "begin" forgets what was there.
"append" brings the ops since the last message and the names that they bring; an index counts all names so far. Its
columns are the message's buffers, those of `COLUMNS` in their order, each of little-endian float64: `start` and
`duration` are ns (duration -1: the op raised), `phase` is 1 in a backward pass, 2 in an optimizer. `counts` are ops
and bytes by device. "ready" comes from a view that has nothing yet: it is sent all of the recording that runs. "stop"
interrupts the cell.

At most eight messages a second leave, from a thread of their own. A busy kernel hears "stop" only where comms have a
subshell (JupyterLab 4.4 on): the view interrupts through the kernel's own channel too. An anywidget has no such
channel, and so no button: its front end has one for the cell. It may begin to look after the recording began, and a
busy kernel does not hear its "ready": until one is heard, all is sent again after one second, two, four, and so on. A
recording that ended before that is sent to the first view that comes.
"""

from __future__ import annotations

import _thread
import logging
import threading
from functools import cache
from importlib.util import find_spec
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from ipywidgets import DOMWidget
from traitlets import Unicode, default

from devtrace.api.recording import watch
from devtrace.notebook.panel.feed import PERIOD, Feed
from devtrace.notebook.panel.messages import refusal
from devtrace.recording.progress import COLUMNS
from devtrace.report import renderer
from devtrace.report.page import STATIC
from devtrace.runtime.requirements import own_version
from devtrace.words import language

if TYPE_CHECKING:
    from devtrace.api.recording import record

log = logging.getLogger("devtrace")

_MODULE: Final = "devtrace"
_VERSION: Final = f"^{own_version()}"
Message = tuple[dict[str, Any], list[bytes]]
_SCRIPT: Final = STATIC / "live.js"


class LiveView(DOMWidget):  # type: ignore[misc]  # ipywidgets has no types
    """Show each recording of this process, until `close()` is called."""

    _model_name = Unicode("DevtraceLiveModel").tag(sync=True)
    _model_module = Unicode(_MODULE).tag(sync=True)
    _model_module_version = Unicode(_VERSION).tag(sync=True)
    _view_name = Unicode("DevtraceLiveView").tag(sync=True)
    _view_module = Unicode(_MODULE).tag(sync=True)
    _view_module_version = Unicode(_VERSION).tag(sync=True)

    _is_seen = True
    """Whether a view gets what is sent now; a view of ours is there before the cell that makes it has ended."""

    def __new__(cls, **traits: Any) -> LiveView:
        can_bring_its_view = cls is LiveView and find_spec("anywidget") and _SCRIPT.exists()
        chosen = _with_its_view() if can_bring_its_view and renderer.is_without_extension() else cls
        view: LiveView = super().__new__(chosen, **traits)
        return view

    def __init__(self, **traits: Any) -> None:
        super().__init__(**traits)
        self._lock = threading.RLock()
        self._reader: _RecordingReader | None = None
        self._ended_messages: list[Message] = []
        self._feed = Feed(self._look, lambda: PERIOD if self._reader is not None else None)
        self._unwatch = watch(self._on_recording)
        self.on_msg(self._receive)

    def __repr__(self) -> str:
        return "devtrace.LiveView: the timeline of a traced cell while it runs"

    def close(self) -> None:
        """Show nothing more."""
        self._unwatch()
        self._feed.close()
        super().close()

    def _on_recording(self, what: str, recording: record) -> None:
        if getattr(self.comm, "_closed", False):
            self.close()  # marimo closes what a cell showed when it runs again, and tells nobody
            return
        with self._lock:
            if what == "began":
                self._reader, self._ended_messages = _RecordingReader(recording), []
                self.send(self._reader.begin)
            elif self._reader is not None and self._reader.recording is recording:
                self._look()
                end = {"kind": "end"} | self._reader.progress()
                self.send(end)
                if not self._is_seen:
                    from_beginning = self._reader.from_beginning()
                    self._ended_messages = [(from_beginning.begin, []), from_beginning.unsent(), (end, [])]
                self._reader = None
        self._feed.wake()

    def _look(self) -> int:
        """Send what is new; return the number of messages sent."""
        with self._lock:
            if self._reader is None:
                return 0
            if not self._is_seen and self._reader.is_time_to_start_again():
                self._start_again(self._reader)
            content, buffers = self._reader.unsent()
            self.send(content, buffers)
            return 1

    def _receive(self, _: object, content: Any, buffers: object) -> None:
        if reason := refusal("from_view", content):
            log.warning("refused from a LiveView: %s", reason)
        elif content["kind"] == "ready":
            self._is_seen = True
            self._send_all()
        elif self._reader is not None and self._reader.is_of_main_thread:
            _thread.interrupt_main()

    def _send_all(self) -> None:
        """Send the whole recording to a view that comes late; views that were there begin again with it."""
        with self._lock:
            if self._reader is None:
                for content, buffers in self._ended_messages or [({"kind": "idle"}, [])]:
                    self.send(content, buffers)
                self._ended_messages = []
                return
            self._start_again(self._reader)
        self._feed.wake()

    def _start_again(self, reader: _RecordingReader) -> None:
        self._reader = reader.from_beginning()
        self.send(self._reader.begin)


@cache
def _with_its_view() -> type[LiveView]:
    """Make the class whose instances bring their view along."""
    from anywidget import AnyWidget

    class LiveViewAnywhere(AnyWidget, LiveView):  # type: ignore[misc]  # anywidget may be missing
        _esm = _SCRIPT.read_text(encoding="utf-8")
        language = Unicode().tag(sync=True)
        __repr__ = LiveView.__repr__
        _is_seen = False

        @default("language")
        def _current_language(self) -> str:
            return language.current()

    return LiveViewAnywhere


class _RecordingReader:
    """Reads a running recording: each op once."""

    def __init__(self, recording: record) -> None:
        growth, counter = recording.growth(), recording.counter()
        assert growth is not None
        assert counter is not None
        self.recording = recording
        self.begun = monotonic()
        self._start_again_at = self.begun + 1
        self.is_of_main_thread = threading.current_thread() is threading.main_thread()
        self._growth, self._counter = growth, counter

    def from_beginning(self) -> _RecordingReader:
        """Return a reader of the same recording that begins again with its first op."""
        reader = _RecordingReader(self.recording)
        reader._start_again_at = reader.begun + reader.begun - self.begun
        reader.begun, reader.is_of_main_thread = self.begun, self.is_of_main_thread
        return reader

    @property
    def begin(self) -> dict[str, Any]:
        return {"kind": "begin", "title": self.recording.name}

    def is_time_to_start_again(self) -> bool:
        """Return whether the recording has run twice as long as at the last start: each op is sent twice at most."""
        return monotonic() >= self._start_again_at

    def progress(self) -> dict[str, Any]:
        return {"ops": self._counter.look().ops, "seconds": monotonic() - self.begun}

    def unsent(self) -> Message:
        new, counts = self._growth.new(), self._counter.look()
        content = {
            "kind": "append",
            "length": len(new),
            "names": new.names,
            "devices": new.devices,
            "threads": new.threads,
            "simulated": [device for device in new.devices if self.recording.is_simulated(device)],
            "ops": counts.ops,
            "seconds": monotonic() - self.begun,
            "copies": counts.copies,
            "copied": counts.copied,
            "counts": {device: list(numbers) for device, numbers in counts.devices.items()},
        }
        return content, [new.columns[name].astype("<f8").tobytes() for name in COLUMNS]
