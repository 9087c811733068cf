"""Streams and events: work on a simulated device is done when the call returns, so there is nothing to wait for.

The stream of a backward is that of its forward, as autograd's engine arranges it for CUDA. A function of the program's
own runs on it, and so does a hook of a tensor: the engine is on the stream of the node that made the tensor. Of torch's
own nodes their numbers tell which stream was current when they were made.
"""

from __future__ import annotations

import functools
import itertools
import threading
import time
from bisect import bisect
from collections.abc import Iterator
from typing import Any, Final

import torch
from torch.multiprocessing.reductions import reduce_event

from devtrace.runtime.patches import Call, Patches
from devtrace.runtime.torch_names import take
from devtrace.simulation.devices import Devices
from devtrace.simulation.refusals import waited

_CUDA = 1  # c10::DeviceType::CUDA
_MOST: Final = 10_000
"""Switches that are remembered; nodes from before those have the default stream."""
_next_node: Final = take("_C._autograd._get_sequence_nr", "backward", instead=lambda: 0)


class _Streams(threading.local):
    """Keeps the current stream of each device in this thread; the default stream where none was set.

    And those that were current, in their order, each with the number of the next node when it became that.
    """

    def __init__(self) -> None:
        self.current: dict[int, Any] = {}
        self.numbers: list[int] = []
        self.streams: list[Any] = []


_of_thread = _Streams()


def install(patches: Patches, devices: Devices) -> None:
    """`torch.Stream`, `torch.Event`, their torch.cuda versions, and what asks for the current stream."""
    global _of_thread
    _of_thread = _Streams()
    patches.wrap(torch.Tensor, "register_hook", _register_hook)
    scope = {"devices": devices, "numbers": itertools.count(1)}
    event: type = type("Event", (SimulatedEvent,), scope)
    stream: type = type("Stream", (SimulatedStream,), {**scope, "event_class": event})

    def current_stream(index: int) -> Any:
        return _of_thread.current.get(index) or stream(stream_id=0, device_index=index, device_type=_CUDA)

    def set_stream(made: Any) -> None:
        _of_thread.current[made.device_index] = made
        if made.stream_id or _of_thread.numbers:  # a switch to be remembered
            _of_thread.numbers.append(_next_node())
            _of_thread.streams.append(made)
            del _of_thread.numbers[:-_MOST], _of_thread.streams[:-_MOST]
        devices.set_current(made.device_index)

    def describe(index: int) -> tuple[int, int, int]:
        made = current_stream(index)
        return made.stream_id, made.device_index, made.device_type

    for owner in (torch.cuda, torch.cuda.streams, torch):
        patches.set(owner, "Stream", stream)
        patches.set(owner, "Event", event)
    for name, value in {
        "_accelerator_getStream": current_stream,
        "_accelerator_setStream": set_stream,
        "_cuda_getCurrentStream": describe,
        "_cuda_getDefaultStream": lambda index: (0, index, _CUDA),
        "_cuda_getCurrentRawStream": lambda index: current_stream(index).stream_id,
        "_cuda_setStream": lambda **which: set_stream(stream(**which)),
        "_cuda_getStreamFromExternal": lambda pointer, index: (pointer, index, _CUDA),
    }.items():
        patches.set(torch._C, name, value)


class SimulatedStream:
    """A queue that is always empty; each simulation subclasses it with its devices."""

    devices: Devices
    numbers: Iterator[int]
    event_class: type

    def __init__(self, device: Any = None, priority: int = 0, **known: int) -> None:
        self.device_index = known.get("device_index", self.devices.find(device).index)
        self.stream_id = known["stream_id"] if "stream_id" in known else known.get("stream_ptr", next(self.numbers))
        self.device_type = _CUDA
        self.priority = priority
        self._entered: list[Any] = []

    @property
    def device(self) -> torch.device:
        return torch.device("cuda", self.device_index)

    cuda_stream = native_handle = property(lambda self: self.stream_id)

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """Least and greatest priority."""
        return 0, -3

    def query(self) -> bool:
        return True

    def is_capturing(self) -> bool:
        return bool(torch._C._cuda_isCurrentStreamCapturing())

    def synchronize(self, *_: Any, **__: Any) -> None:
        """Return at once: nothing is under way."""
        waited()

    def wait_event(self, *_: Any, **__: Any) -> None:
        """Nothing is under way."""

    wait_stream = wait_event

    def record_event(self, event: Any = None) -> Any:
        event = self.event_class() if event is None else event
        event.record(self)
        return event

    def __enter__(self) -> Any:
        self._entered.append((self.devices.current, torch._C._accelerator_getStream(self.device_index)))
        torch._C._accelerator_setStream(self)
        return self

    def __exit__(self, *_: object) -> None:
        index, before = self._entered.pop()
        torch._C._accelerator_setStream(before)
        self.devices.set_current(index)

    def __eq__(self, other: object) -> bool:
        mine = (self.device_index, self.stream_id)
        return isinstance(other, SimulatedStream) and mine == (other.device_index, other.stream_id)

    def __hash__(self) -> int:
        return hash((self.device_index, self.stream_id))

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.stream_id:#x}>"


class SimulatedEvent:
    """Keeps the moment at which it was recorded."""

    devices: Devices
    numbers: Iterator[int]

    def __init__(self, *args: Any, enable_timing: bool = False, **kwargs: Any) -> None:
        given = next((each for each in (*args[:1], kwargs.get("device")) if isinstance(each, str | torch.device)), None)
        self.enable_timing = enable_timing or bool(args and args[0] is True)
        self.device = torch.device("cuda", self.devices.find(given).index) if given is not None else None
        self._number = 0
        self._at: float | None = None

    event_id = cuda_event = property(lambda self: self._number)

    def record(self, stream: Any = None) -> None:
        there = stream.device if stream is not None else torch.device("cuda", self.devices.current)
        self.device = self.device or there
        if self.device != there:
            both = f"Event device {self.device.index} does not match recording stream's device {there.index}."
            raise RuntimeError(both)
        self._number = self._number or next(self.numbers)
        self._at = time.perf_counter()

    def synchronize(self, stream: Any = None) -> None:
        """Return at once: nothing is under way."""

    wait = synchronize

    def query(self) -> bool:
        return True

    def ipc_handle(self) -> bytes:
        """As many bytes as CUDA's; who opens them finds an event that is over."""
        self._number = self._number or next(self.numbers)
        return self._number.to_bytes(64, "little")

    @classmethod
    def from_ipc_handle(cls, device: Any, handle: bytes) -> SimulatedEvent:
        event = cls()
        event.device = torch.device("cuda", cls.devices.find(device).index)
        event._number = int.from_bytes(handle, "little")
        return event

    # By torch's own way to another process, which knows the class that this one stands for.
    __reduce__ = reduce_event

    def elapsed_time(self, end_event: Any) -> float:
        """Milliseconds between two recorded events."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._at is None or end_event._at is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if self.device != end_event.device:
            raise torch.AcceleratorError("CUDA error: invalid resource handle")
        return float(end_event._at - self._at) * 1000

    def __repr__(self) -> str:
        return f"<torch.cuda.Event {self.event_id:#x}>"


def _register_hook(own: Call, tensor: torch.Tensor, hook: Any) -> Any:
    """Let a tensor's hook find the stream on which the tensor was made."""
    stream = _stream_of(tensor.grad_fn) if _of_thread.numbers and tensor.grad_fn is not None else None
    return own(tensor, hook if stream is None else _on(stream, hook))


def _stream_of(node: Any) -> Any:
    """Return the stream on which a node was made; None for the default one."""
    at = bisect(_of_thread.numbers, node._sequence_nr()) - 1
    stream = _of_thread.streams[at] if at >= 0 else None
    return stream if stream is not None and stream.stream_id else None


def _on(stream: Any, hook: Call) -> Call:
    @functools.wraps(hook)
    def run(*args: Any) -> Any:
        with stream:
            return hook(*args)

    return run


def follow(node: Any) -> None:
    """Let a function's backward find the current stream again, unless that is the default one."""
    stream = torch.cuda.current_stream()
    before: list[Any] = []

    def enter(_: Any) -> None:
        before.append(torch.cuda.current_stream())
        torch.cuda.set_stream(stream)

    def leave(*_: Any) -> None:
        torch.cuda.set_stream(before.pop())

    if stream.stream_id:
        node.register_prehook(enter)
        node.register_hook(leave)
