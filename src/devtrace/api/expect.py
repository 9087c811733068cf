"""`devtrace.expect`: raises for every tensor that is on another device than expected, now or in a block.

devtrace.expect(model, optimizer, batch, device="cuda:0")        # now: DeviceError names all that is elsewhere

with devtrace.expect("cuda:0", syncs=0, copies=1): ...           # what the block computes with, waits for, copies

with devtrace.expect(peak="cuda:0 <= 20GB"): ...                 # the most memory that it has

@devtrace.expect("cuda:0")
def train_step(...): ...
"""

from __future__ import annotations

import ast
import sys
from contextlib import ContextDecorator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import FrameType, TracebackType
from typing import overload

from devtrace.api.expectation_check import count_error, device_error, peak_error
from devtrace.api.recording import record
from devtrace.diagnosis.evidence.tensors_off_device import elsewhere
from devtrace.diagnosis.findings import Site
from devtrace.recording.columns import stamps
from devtrace.recording.peak import Peak
from devtrace.runtime.quiet import Quiet
from devtrace.source.matching import star_at
from devtrace.source.parsing import node_of
from devtrace.trace.builder import TraceBuilder
from devtrace.words.catalogue import comma, sentence
from devtrace.words.errors import DeviceError, UsageError


@overload
def expect(device: str, /, *, syncs: int | None = None, copies: int | None = None, peak: str = "") -> Expectation: ...
@overload
def expect(
    *, device: object = None, syncs: int | None = None, copies: int | None = None, peak: str = ""
) -> Expectation: ...
@overload
def expect(*objects: object, device: object) -> None: ...
def expect(
    *objects: object, device: object = None, syncs: int | None = None, copies: int | None = None, peak: str = ""
) -> Expectation | None:
    """Raise DeviceError if a tensor of the objects is not on `device`.

    Without objects, check each op of a `with` block, or of a function that is decorated with `@devtrace.expect(...)`.

        device="cuda"            expect any CUDA device
        syncs=0, copies=1        allow no wait of the CPU for a device, and at most one copy between devices
        peak="cuda:0 <= 20GB"    allow the block 20 GB of memory on cuda:0 (calls torch.cuda.reset_peak_memory_stats)
    """
    __tracebackhide__ = True  # pytest shows the test's own line
    if device is None and len(objects) == 1 and type(objects[0]) is str:
        return Expectation(objects[0], syncs, copies, peak)
    if not objects:
        return Expectation(None if device is None else _device_name(device), syncs, copies, peak)
    if device is None:
        raise UsageError.of("expect-device")
    if syncs is not None or copies is not None or peak:
        raise UsageError.of("expect-counts")
    check(dict(zip(_argument_texts(sys._getframe(1), len(objects)), objects, strict=True)), _device_name(device))
    return None


def check(objects: dict[str, object], device: str) -> None:
    """Raise DeviceError with every tensor of the named objects that is on another device."""
    __tracebackhide__ = True
    with Quiet():
        tensors = elsewhere(list(objects.items()), device, _birth_site)
    if tensors:
        devices, names = sorted({tensor.device for tensor in tensors}), comma().join(objects)
        error = DeviceError.of("tensors-elsewhere", count=len(tensors), devices=devices, names=names, expected=device)
        raise error.with_tensors(tensors)


@dataclass(eq=False)
class Expectation(ContextDecorator):
    """Checks a block or function. The block's own exception passes through unchanged."""

    device: str | None
    syncs: int | None
    copies: int | None
    peak: str = ""
    _recording: record | None = field(default=None, init=False)
    _peak: Peak | None = field(default=None, init=False)

    def _recreate_cm(self) -> Expectation:  # for each call of a decorated function
        return replace(self)

    def __enter__(self) -> record:
        self._peak = Peak.of(self.peak) if self.peak else None
        self._recording = record(namespace=sys._getframe(1).f_globals)
        return self._recording.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        __tracebackhide__ = True
        recording, self._recording = self._recording, None
        assert recording is not None
        recording.__exit__(kind, error, traceback)
        if error is None and (failure := self.failure(recording)):
            raise failure

    def failure(self, recording: record) -> DeviceError | None:
        """Return the first error of a recording that does not keep to the expectation; the others are its notes."""
        trace = recording.trace
        checks = [device_error(trace, self.device)] if self.device else []
        limits = (("syncs", self.syncs), ("copies", self.copies))
        checks += [count_error(trace, what, most) for what, most in limits if most is not None]
        checks.append(peak_error(self._peak))
        errors = [error for error in checks if error is not None]
        for further in errors[1:]:
            errors[0].add_note(str(further))
        return errors[0] if errors else None


def _device_name(device: object) -> str:
    text = str(device)
    if not text:
        raise UsageError.of("expect-device.empty")
    return text


def _argument_texts(frame: FrameType, count: int) -> list[str]:
    """Return `model` and `batch` for a caller's `expect(model, batch, device=...)`, else `object 1` and so on."""
    _, node = node_of(frame.f_code, frame.f_lasti)
    if isinstance(node, ast.Call) and len(node.args) == count:
        texts = [ast.unparse(argument) for argument in node.args]
        if len(set(texts)) == count and star_at(node.args) == count:  # no text twice, no `*objects`
            return texts
    return [sentence("expectation.object", number=number) for number in range(1, count + 1)]


def _birth_site(tensor: object) -> Site | None:
    """Return where a recording, or the light hooks of `%load_ext devtrace`, saw the birth of a tensor."""
    birth = stamps.get(tensor)[2]
    return None if birth < 0 else _site_of_birth(birth)


@lru_cache(maxsize=4096)
def _site_of_birth(birth: int) -> Site:
    from devtrace.recording.finish.site_rows import add_sites

    builder = TraceBuilder()
    site_id = add_sites(builder, [birth])[birth]
    return Site.of(builder.build().sites[site_id])
