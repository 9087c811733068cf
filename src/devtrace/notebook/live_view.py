"""A cell's timeline while the cell runs: `devtrace.LiveView()`, an ipywidget; its view is in our JupyterLab extension.

What is said (custom messages of the widget; columns are the message's buffers, little-endian typed arrays):

    to the view
        {"type": "begin", "title": str}                            a recording began: forget what was there
        {"type": "append", "length": int,                          ops since the last message, and what they name first
         "columns": [["start", "float64"], ["duration", "float64"], ["name", "uint32"], ["device", "int16"],
                     ["thread", "uint16"], ["phase", "uint8"]],
         "names": [str], "devices": [str], "threads": [str],       new ones: an index counts all so far
         "simulated": [str],                                       those of the new devices that are pretended
         "ops": int, "seconds": float, "copies": int, "copied": int, "counts": {device: [ops, bytes]}}
        {"type": "end", "ops": int, "seconds": float}              the recording ended; its report is in the cell
        {"type": "idle"}                                           nothing runs
    from the view
        {"type": "ready"}                                          it is there: tell all of the recording that runs
        {"type": "stop"}                                           interrupt the cell

`start` and `duration` are ns (duration -1: the op raised), `phase` is 1 in a backward pass, 2 in an optimizer. At most
eight messages a second leave, from a thread of their own. A busy kernel hears "stop" only where comms have a subshell
(JupyterLab 4.4 on): the view interrupts through the kernel's own channel too.
"""

from __future__ import annotations

import _thread
import threading
from importlib.metadata import version
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from ipywidgets import DOMWidget
from traitlets import Unicode

from devtrace.api.recording import watch
from devtrace.notebook.panel.feed import Feed
from devtrace.recording.progress.growth import COLUMNS

if TYPE_CHECKING:
    from devtrace.api.recording import record
    from devtrace.recording.progress.counts import Counter
    from devtrace.recording.progress.growth import Growth

_MODULE: Final = "devtrace"
_VERSION: Final = f"^{version('devtrace')}"


class LiveView(DOMWidget):  # type: ignore[misc]  # ipywidgets has no types
    """Shows every recording of this process while it runs, until `close()`."""

    _model_name = Unicode("DevtraceLiveModel").tag(sync=True)
    _model_module = Unicode(_MODULE).tag(sync=True)
    _model_module_version = Unicode(_VERSION).tag(sync=True)
    _view_name = Unicode("DevtraceLiveView").tag(sync=True)
    _view_module = Unicode(_MODULE).tag(sync=True)
    _view_module_version = Unicode(_VERSION).tag(sync=True)

    def __init__(self, **traits: Any) -> None:
        super().__init__(**traits)
        self._lock = threading.RLock()
        self._seen: _Seen | None = None
        self._feed = Feed(self._look, lambda: self._seen is not None)
        self._unwatch = watch(self._recording)
        self.on_msg(self._heard)

    def __repr__(self) -> str:
        return "devtrace.LiveView: the timeline of a traced cell while it runs, in JupyterLab"

    def close(self) -> None:
        """Show nothing more."""
        self._unwatch()
        self._feed.close()
        super().close()

    def _recording(self, what: str, recording: record) -> None:
        with self._lock:
            if what == "began":
                self._seen = _Seen(recording)
                self.send({"type": "begin", "title": recording.name})
            elif self._seen is not None and self._seen.recording is recording:
                self._look()
                self.send({"type": "end"} | self._seen.progress())
                self._seen = None
        self._feed.wake()

    def _look(self) -> int:
        """Tell what is new; the number of messages sent."""
        with self._lock:
            if self._seen is None:
                return 0
            content, buffers = self._seen.news()
            self.send(content, buffers)
            return 1

    def _heard(self, _: object, content: Any, buffers: object) -> None:
        kind = content.get("type") if isinstance(content, dict) else None
        if kind == "ready":
            self._tell_all()
        elif kind == "stop" and self._seen is not None:
            _thread.interrupt_main()

    def _tell_all(self) -> None:
        """A view that comes late is told the whole; views that were there begin again with it."""
        with self._lock:
            if self._seen is None:
                self.send({"type": "idle"})
                return
            self._seen = self._seen.again()
            self.send({"type": "begin", "title": self._seen.recording.name})
        self._feed.wake()


class _Seen:
    """How much of a recording was told."""

    def __init__(self, recording: record, begun: float | None = None) -> None:
        growth, counter = recording.growth(), recording.counter()
        assert growth is not None
        assert counter is not None
        self.recording = recording
        self.begun = monotonic() if begun is None else begun
        self._growth: Growth = growth
        self._counter: Counter = counter

    def again(self) -> _Seen:
        return _Seen(self.recording, self.begun)

    def progress(self) -> dict[str, Any]:
        return {"ops": self._counter.look().ops, "seconds": monotonic() - self.begun}

    def news(self) -> tuple[dict[str, Any], list[bytes]]:
        new, counts = self._growth.new(), self._counter.look()
        content = {
            "type": "append",
            "length": len(new),
            "columns": [[name, kind.__name__] for name, kind in COLUMNS.items()],
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
        return content, [new.columns[name].tobytes() for name in COLUMNS]
