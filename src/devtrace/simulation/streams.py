"""Streams and events: work on a simulated device is done when the call returns, so there is nothing to wait for."""

import itertools
import threading
import time
from typing import Any, Final

import torch

from devtrace.runtime.patches import Call, Patches
from devtrace.runtime.torch_names import returning
from devtrace.simulation.devices import DEVICES
from devtrace.simulation.refusals import report_wait

_CUDA = 1  # c10::DeviceType::CUDA
_numbers: Final = itertools.count(3)  # 1 and 2 are the default streams of CUDA


class _Streams(threading.local):
    """Keeps the current stream of each device in this thread; the default stream where none was set."""

    def __init__(self) -> None:
        self.current: dict[int, Any] = {}


_of_thread = _Streams()


def install(patches: Patches) -> None:
    """`torch.Stream`, `torch.Event`, their torch.cuda versions, and what asks for the current stream."""
    global _of_thread
    _of_thread = _Streams()
    for owner in (torch.cuda, torch.cuda.streams, torch):
        patches.set(owner, "Stream", Stream)
        patches.set(owner, "Event", Event)
    for name, value in _ANSWERS.items():
        patches.set(torch._C, name, value)


def _current_stream(index: int) -> Any:
    return _of_thread.current.get(index) or Stream(stream_id=0, device_index=index)


def _set_stream(stream: Any) -> None:
    _of_thread.current[stream.device_index] = stream
    DEVICES.set_current(stream.device_index)


_ANSWERS: Final[dict[str, Call]] = {
    "_accelerator_getStream": _current_stream,
    "_accelerator_setStream": _set_stream,
    "_cuda_getCurrentStream": lambda index: (_current_stream(index).stream_id, index, _CUDA),
    "_cuda_getDefaultStream": lambda index: (0, index, _CUDA),
    "_cuda_getCurrentRawStream": lambda index: _current_stream(index).stream_id,
    "_cuda_setStream": lambda **which: _set_stream(Stream(**which)),
    "_cuda_getStreamFromExternal": lambda pointer, index: (pointer, index, _CUDA),
}


class Stream:
    """`torch.cuda.Stream`: a queue that is always empty."""

    device_type = _CUDA

    def __init__(self, device: Any = None, priority: int = 0, **known: int) -> None:
        self.device_index = known.get("device_index", DEVICES.find(device).index)
        self.stream_id = known["stream_id"] if "stream_id" in known else known.get("stream_ptr", next(_numbers))
        self.priority = priority
        self._entered: list[Any] = []

    device = property(lambda self: torch.device("cuda", self.device_index))
    cuda_stream = native_handle = property(lambda self: self.stream_id)
    priority_range = staticmethod(returning((0, -3)))  # least and greatest
    query, is_capturing = returning(True), returning(False)  # nothing is under way
    wait_event = wait_stream = returning(None)

    def synchronize(self, *_: Any, **__: Any) -> None:
        """Return at once, and say so where a program asks for waits."""
        report_wait()

    def record_event(self, event: Any = None) -> Any:
        event = Event() if event is None else event
        event.record(self)
        return event

    def __enter__(self) -> Any:
        self._entered.append((DEVICES.current, _current_stream(self.device_index)))
        _set_stream(self)
        return self

    def __exit__(self, *_: object) -> None:
        index, before = self._entered.pop()
        _set_stream(before)
        DEVICES.set_current(index)

    def __eq__(self, other: object) -> bool:
        key = (self.device_index, self.stream_id)
        return isinstance(other, Stream) and key == (other.device_index, other.stream_id)

    def __hash__(self) -> int:
        return hash((self.device_index, self.stream_id))

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.stream_id:#x}>"


class Event:
    """`torch.cuda.Event`: keeps the moment at which it was recorded."""

    def __init__(self, *args: Any, enable_timing: bool = False, **kwargs: Any) -> None:
        device = next((arg for arg in (*args[:1], kwargs.get("device")) if isinstance(arg, str | torch.device)), None)
        self.enable_timing = enable_timing or bool(args and args[0] is True)
        self.device = DEVICES.find(device).device if device is not None else None
        self._number = 0
        self._seconds: float | None = None

    event_id = cuda_event = property(lambda self: self._number)
    query, synchronize, wait = returning(True), returning(None), returning(None)  # nothing is under way

    def record(self, stream: Any = None) -> None:
        stream_device = stream.device if stream is not None else torch.device("cuda", DEVICES.current)
        self.device = self.device or stream_device
        if self.device != stream_device:
            words = f"Event device {self.device.index} does not match recording stream's device {stream_device.index}."
            raise RuntimeError(words)
        self._number = self._number or next(_numbers)
        self._seconds = time.perf_counter()

    def elapsed_time(self, end_event: Any) -> float:
        """Milliseconds between two recorded events."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._seconds is None or end_event._seconds is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if self.device != end_event.device:
            raise torch.AcceleratorError("CUDA error: invalid resource handle")
        return float(end_event._seconds - self._seconds) * 1000

    def __repr__(self) -> str:
        return f"<torch.cuda.Event {self.event_id:#x}>"
