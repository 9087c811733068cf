"""What this Python has for devices: the answer to "why is it on the CPU?" before anything runs."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any, Final

from devtrace.runtime.requirements import need_torch
from devtrace.words.errors import DevtraceError, SetupError

_PACKAGES: Final = ("numpy", "ipython", "ipykernel", "ipywidgets", "jupyterlab", "notebook", "plotly")
_OFFER: Final = "`--simulate cuda:2` gives a program two pretended CUDA devices"
_NOT_NEEDED: Final = "`--simulate` is for a machine without devices of its own"


def describe() -> str:
    """A few lines: versions, torch's build, devices real and simulated, what a program would choose."""
    return "\n".join(f"{label:<11}{text}" for label, text in _lines())


def _lines() -> Iterator[tuple[str, str]]:
    yield "devtrace", f"{_version('devtrace')}, Python {platform.python_version()}, {platform.system()}"
    try:
        need_torch()
        import torch
    except SetupError as error:
        yield "torch", str(error)
    except Exception as error:  # noqa: BLE001 (a broken torch fails in many ways, and this command is where one asks)
        yield "torch", f"{_version('torch')} cannot be imported ({type(error).__name__}: {error})"
    else:
        yield "torch", f"{torch.__version__}, {_build(torch)}"
        yield from _devices(torch)
    yield "jupyter", ", ".join(f"{name} {_version(name)}" for name in _PACKAGES)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _build(torch: ModuleType) -> str:
    if torch.version.cuda:
        return f"built for CUDA {torch.version.cuda}"
    if getattr(torch.version, "hip", None):
        return f"built for ROCm {torch.version.hip}"
    return "built without CUDA"


def _devices(torch: ModuleType) -> Iterator[tuple[str, str]]:
    from devtrace.simulation.simulation import active

    simulation = active()
    accelerator = _accelerator(torch)
    kinds = dict.fromkeys(("cuda", "xpu", accelerator))
    found = [device for kind in kinds if kind not in ("", "mps") for device in _indexed(torch, kind)]
    if torch.backends.mps.is_available():
        found.append("mps")
    if simulation:
        yield "real", "hidden by the simulation"
        yield "simulated", ", ".join(found)
    else:
        yield "real", ", ".join(["cpu", *found])
        yield "simulated", f"none now; {_NOT_NEEDED if found else _OFFER}"
    yield "default", f"{torch.get_default_device()} for new tensors (torch.get_default_device())"
    chosen = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    for name in simulation.kept_answers if simulation else ():
        yield "remembered", f"{name} keeps an answer from before the simulation: import it after that has begun"
    by_torch = (
        f"; {accelerator} by `torch.accelerator.current_accelerator()`" if accelerator not in ("", chosen) else ""
    )
    yield "chosen", f"{chosen} by the usual `cuda if torch.cuda.is_available() else ...`{by_torch}"


def _accelerator(torch: ModuleType) -> str:
    """Return the kind of device that torch.accelerator stands for, by torch's own name; empty if there is none."""
    try:
        found = torch.accelerator.current_accelerator(check_available=True)
    except (RuntimeError, AssertionError):  # a backend that is registered without a module
        return ""
    return "" if found is None else str(found.type)


def _indexed(torch: Any, kind: str) -> list[str]:
    module = getattr(torch, kind)
    name = getattr(module, "get_device_name", None)  # a backend from outside of torch need not have it
    try:
        return [f"{kind}:{index}" + (f" ({name(index)})" if name else "") for index in range(module.device_count())]
    except (RuntimeError, AssertionError, DevtraceError) as error:
        return [f"{kind} (does not answer: {str(error).splitlines()[0]})"]
