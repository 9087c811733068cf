"""What this Python has for devices: the answer to "why is it on the CPU?" before anything runs."""

import platform
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Final

from devtrace.runtime.requirements import installed, need_torch, untested, versions
from devtrace.words.catalogue import comma, sentence
from devtrace.words.errors import DevtraceError, SetupError, named
from devtrace.words.wrapping import table

_PACKAGES: Final = ("numpy", "ipython", "ipykernel", "ipywidgets", "jupyterlab", "notebook", "plotly")


def describe() -> str:
    """A few lines: versions, torch's build, devices real and simulated, what a program would choose."""
    return table((sentence(key), text) for key, text in _labelled_lines())


def _labelled_lines() -> Iterator[tuple[str, str]]:
    ours, python, system = _version("devtrace"), platform.python_version(), platform.system()
    yield "check.devtrace", sentence("check.versions", version=ours, python=python, system=system)
    try:
        need_torch()
        import torch
    except SetupError as error:
        yield "check.torch", str(error)
    except Exception as error:  # noqa: BLE001 (a broken torch fails in many ways, and this command is where one asks)
        yield "check.torch", sentence("check.not-imported", version=_version("torch"), fault=named(error))
    else:
        yield "check.torch", sentence("check.build", version=str(torch.__version__), build=_build(torch))
        yield "check.tested", untested() or sentence("check.tested-range", **versions())
        yield from _device_lines(torch)
    yield "check.jupyter", comma().join(f"{name} {_version(name)}" for name in _PACKAGES)


def _version(package: str) -> str:
    return installed(package) or sentence("check.not-installed")


def _build(torch: ModuleType) -> str:
    if torch.version.cuda:
        return sentence("check.cuda", version=torch.version.cuda)
    if getattr(torch.version, "hip", None):
        return sentence("check.rocm", version=torch.version.hip)
    return sentence("check.no-cuda")


def _device_lines(torch: ModuleType) -> Iterator[tuple[str, str]]:
    simulation = running_simulation()
    accelerator = _accelerator_kind(torch)
    kinds = dict.fromkeys(("cuda", "xpu", accelerator))
    devices = [device for kind in kinds if kind not in ("", "mps") for device in _devices_of_kind(torch, kind)]
    if torch.backends.mps.is_available():
        devices.append("mps")
    if simulation:
        yield "check.real", sentence("check.hidden")
        yield "check.simulated", comma().join(devices)
    else:
        yield "check.real", comma().join(["cpu", *devices])
        yield "check.simulated", sentence("check.not-needed" if devices else "check.none-simulated")
    yield "check.default", sentence("check.new-tensors", device=str(torch.get_default_device()))
    usual = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    for name in simulation.kept_answers if simulation else ():
        yield "check.remembered", sentence("check.kept-answer", name=name)
    differs = accelerator not in ("", usual)
    key = "check.usual-and-torch" if differs else "check.usual"
    yield "check.chosen", sentence(key, device=usual, **({"accelerator": accelerator} if differs else {}))


def running_simulation() -> Any:
    """Return the running simulation or None, without importing its module: it may not load where torch has changed."""
    simulations = sys.modules.get("devtrace.simulation.simulation")
    return None if simulations is None else simulations.active()


def is_simulated(device: str) -> bool:
    """Return whether `cuda:0` is simulated: a simulation runs, or this torch has no CUDA and so no real one."""
    none_is_real = running_simulation() is not None or sys.modules["torch"].version.cuda is None
    return device.partition(":")[0] == "cuda" and none_is_real


def _accelerator_kind(torch: ModuleType) -> str:
    """Return the kind of device that torch.accelerator stands for, by torch's own name; empty if there is none."""
    try:
        device = torch.accelerator.current_accelerator(check_available=True)
    except (RuntimeError, AssertionError):  # a backend that is registered without a module
        return ""
    return "" if device is None else str(device.type)


def _devices_of_kind(torch: Any, kind: str) -> list[str]:
    module = getattr(torch, kind)
    name = getattr(module, "get_device_name", None)  # a backend from outside of torch need not have it
    try:
        return [f"{kind}:{index}" + (f" ({name(index)})" if name else "") for index in range(module.device_count())]
    except (RuntimeError, AssertionError, DevtraceError) as error:
        return [sentence("check.no-answer", device=kind, fault=str(error).splitlines()[0])]
