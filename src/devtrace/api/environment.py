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
    return table((sentence(key), text) for key, text in _lines())


def _lines() -> Iterator[tuple[str, str]]:
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
        yield from _devices(torch)
    yield "check.jupyter", comma().join(f"{name} {_version(name)}" for name in _PACKAGES)


def _version(package: str) -> str:
    return installed(package) or sentence("check.not-installed")


def _build(torch: ModuleType) -> str:
    if torch.version.cuda:
        return sentence("check.cuda", version=torch.version.cuda)
    if getattr(torch.version, "hip", None):
        return sentence("check.rocm", version=torch.version.hip)
    return sentence("check.no-cuda")


def _devices(torch: ModuleType) -> Iterator[tuple[str, str]]:
    simulation = running_simulation()
    accelerator = _accelerator(torch)
    kinds = dict.fromkeys(("cuda", "xpu", accelerator))
    found = [device for kind in kinds if kind not in ("", "mps") for device in _indexed(torch, kind)]
    if torch.backends.mps.is_available():
        found.append("mps")
    if simulation:
        yield "check.real", sentence("check.hidden")
        yield "check.simulated", comma().join(found)
    else:
        yield "check.real", comma().join(["cpu", *found])
        yield "check.simulated", sentence("check.not-needed" if found else "check.none-simulated")
    yield "check.default", sentence("check.new-tensors", device=str(torch.get_default_device()))
    chosen = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    for name in simulation.kept_answers if simulation else ():
        yield "check.remembered", sentence("check.kept-answer", name=name)
    is_other = accelerator not in ("", chosen)
    key = "check.usual-and-torch" if is_other else "check.usual"
    yield "check.chosen", sentence(key, device=chosen, **({"accelerator": accelerator} if is_other else {}))


def running_simulation() -> Any:
    """Return the simulation that runs now, None where none does; its module may not load where torch has changed."""
    simulations = sys.modules.get("devtrace.simulation.simulation")
    return None if simulations is None else simulations.active()


def is_simulated(device: str) -> bool:
    """Return whether a device is none of this machine's: a torch without CUDA has no real one of this kind."""
    is_on = running_simulation() is not None or sys.modules["torch"].version.cuda is None
    return device.partition(":")[0] == "cuda" and is_on


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
        return [sentence("check.no-answer", device=kind, fault=str(error).splitlines()[0])]
