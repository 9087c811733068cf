"""Devtrace on a torch whose private names have changed: run as a script, which prints what becomes of each as JSON.

A name is deleted or replaced by something of another kind, in a fork that has torch but not yet devtrace. Some cannot
be: torch's own C++ keeps them, or the program below fails without them by itself. There devtrace alone is misled.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch._dynamo  # every optimizer imports it
from torch.utils._python_dispatch import TorchDispatchMode

from devtrace.runtime import torch_names
from devtrace.runtime.patches import Patches

WRONG = object()
HOW = ("missing", "wrong")


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return 2 * x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return 2 * grad


def train(device: str) -> float:
    """Do a little of what the parts of devtrace watch or replace."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=True)
    batch = torch.ones(2, 3, device=device)
    doubled: Any = Doubled
    for _ in range(2):
        optimizer.zero_grad()
        loss = doubled.apply(model(batch)).square().sum() + torch.linalg.matrix_norm(batch)
        loss.backward()
        optimizer.step()
    texts: list[str] = []
    worker = threading.Thread(target=lambda: texts.append(str(batch + 1)))
    worker.start()
    worker.join()
    return float(loss) + len(texts)


def script() -> object:
    return torch.jit.trace(torch.nn.Linear(2, 2), torch.ones(1, 2))


def mix() -> torch.Tensor:
    model = torch.nn.Linear(2, 2).to("cuda")
    batch = torch.ones(1, 2)
    answer: torch.Tensor = model(batch)
    return answer


def outcome() -> dict[str, Any]:
    """Record the training, the same on simulated devices, and a mix of devices, which is then explained as well."""
    import devtrace

    plain = train("cpu")
    with devtrace.record() as recording:
        same = train("cpu") == plain and script() is not None
    with devtrace.record("cuda:2") as simulated:
        same = train("cuda") == plain and same
    found = []
    with contextlib.suppress(RuntimeError), devtrace.record("cuda:2") as mixed:
        mix()
    with devtrace.simulate("cuda:2"):
        try:
            mix()
        except RuntimeError as error:
            found = [finding.message for finding in devtrace.explain(error).findings]
    notes = {note for each in (recording, simulated, mixed) for note in each.report.notes}
    return {"same": same, "found": [[each.message for each in mixed.report.findings], found], "notes": sorted(notes)}


@contextlib.contextmanager
def broken(path: str, how: str) -> Iterator[bool]:
    """Break a name of torch for a while; False where it cannot be, or where programs then fail without devtrace."""
    owner_path, _, name = path.rpartition(".")
    owner = torch_names.found(owner_path) if owner_path else torch
    patches = Patches(always_restore=True)
    try:
        patches.set(owner, name, WRONG)
        if how == "missing":
            delattr(owner, name)
        works = is_broken(path) and script() is not None
        with Watching():  # type: ignore[no-untyped-call]
            train("cpu")
    except Exception:  # noqa: BLE001 (of C's, or needed by torch itself)
        works = False
    if not works:
        restore(patches)
    try:
        yield works
    finally:
        restore(patches)


def is_broken(path: str) -> bool:
    """Return whether a name that was taken out stays away: torch makes operators again."""
    try:
        return torch_names.found(path) is WRONG
    except AttributeError:
        return True


class Watching(TorchDispatchMode):
    """Does nothing; under a mode torch needs more of its names."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def restore(patches: Patches) -> None:
    with contextlib.suppress(AttributeError, TypeError):
        patches.undo()


def mislead(paths: dict[str, str]) -> None:
    """Let devtrace find some names missing or wrong."""
    found: Callable[[str], Any] = torch_names.found

    def misled(path: str) -> Any:
        if paths.get(path) == "missing":
            raise AttributeError(path)
        return WRONG if path in paths else found(path)

    torch_names.found = misled
    torch_names.fault_of.cache_clear()


def without(paths: dict[str, str]) -> dict[str, Any]:
    """Return what becomes of the programs on a torch that lacks some names, or has something else there."""
    with contextlib.ExitStack() as stack:
        mislead({path: how for path, how in paths.items() if not stack.enter_context(broken(path, how))})
        return outcome()


def refusals(names: list[tuple[str, str]]) -> dict[str, str]:
    """Return the sentence for each essential name: missing, or of another kind, to the package that needs it."""
    entries = {"recording": "devtrace.recording.recording", "simulation": "devtrace.simulation.entry"}
    found, sentences = torch_names.found, {}
    for path, package in names:
        for how in HOW:
            torch_names.found = found
            mislead({path: how})
            for module in [each for each in sys.modules if each.startswith(f"devtrace.{package}")]:
                del sys.modules[module]
            try:
                __import__(entries[package])
            except Exception as error:  # noqa: BLE001 (the test asks which)
                sentences[f"{how} {path}"] = f"{type(error).__name__}: {error}"
    return sentences


def in_a_fork(call: Callable[[], Any]) -> Any:
    reading, writing = os.pipe()
    if os.fork() == 0:
        with contextlib.redirect_stderr(io.StringIO()):
            try:
                answer = call()
            except BaseException as error:  # noqa: BLE001 (what comes through to the program)
                answer = "".join(traceback.format_exception(error)[-3:])
        os.write(writing, json.dumps(answer).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer_of_child:
        answer = json.load(answer_of_child)
    os.wait()
    return answer


if __name__ == "__main__":
    essential, optional = json.loads(sys.argv[1])
    whole, refused = in_a_fork(outcome), in_a_fork(lambda: refusals(essential))
    broken_ones = [in_a_fork(lambda paths=paths: without(paths)) for paths in optional]  # type: ignore[misc]
    print(json.dumps({"whole": whole, "refusals": refused, "without": broken_ones}))
