"""devtrace shows exactly where a CPU tensor entered a GPU computation.

    with devtrace.record(simulate="cuda:2") as recording: ...
    print(devtrace.diagnose(recording.trace))

The public names are found on first use, so that `import devtrace` costs nothing and imports neither torch nor IPython.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

if sys.version_info < (3, 11):  # noqa: UP036 (where pip was not asked: PYTHONPATH, a copied folder)
    raise ImportError(
        f"python-too-old: got Python {sys.version.split()[0]}; devtrace needs Python 3.11 or newer; "
        "install it into an environment of a newer Python."
    )

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from IPython.core.interactiveshell import InteractiveShell

    from devtrace.api.expect import expect as expect
    from devtrace.api.recording import record as record
    from devtrace.api.results import Report as Report
    from devtrace.api.results import Trace as Trace
    from devtrace.api.results import diagnose as diagnose
    from devtrace.api.results import load as load
    from devtrace.diagnosis.findings import Culprit as Culprit
    from devtrace.diagnosis.findings import Edit as Edit
    from devtrace.diagnosis.findings import Finding as Finding
    from devtrace.diagnosis.findings import Site as Site
    from devtrace.notebook.live_view import LiveView as LiveView
    from devtrace.runtime.simulated import simulate as simulate
    from devtrace.words.errors import DeviceError as DeviceError
    from devtrace.words.errors import DevtraceError as DevtraceError
    from devtrace.words.errors import FormatError as FormatError
    from devtrace.words.errors import SetupError as SetupError
    from devtrace.words.errors import SimulateError as SimulateError
    from devtrace.words.errors import UsageError as UsageError

    # Of features, which nothing here imports; any other name of theirs is Any.
    def explain(error: BaseException | None = None) -> Report: ...
    def install() -> None: ...
    def uninstall() -> None: ...


# Each public name of the kernel and the module that it is taken from on first use.
_NAMES = {
    "api.recording": ("record",),
    "api.expect": ("expect",),
    "runtime.simulated": ("simulate",),
    "api.results": ("diagnose", "load", "Trace", "Report"),
    "diagnosis.findings": ("Finding", "Culprit", "Site", "Edit"),
    "notebook.live_view": ("LiveView",),
    "words.errors": ("DevtraceError", "DeviceError", "FormatError", "SetupError", "SimulateError", "UsageError"),
}
_TAKEN_FROM = {name: module for module, names in _NAMES.items() for name in names}

_NEED_TORCH = ("record", "expect", "explain", "simulate")


if "DEVTRACE_OVERLAY" in os.environ:  # a round of `devtrace fix`, or a process that one started
    from devtrace.runtime import overlay

    overlay.use_from_environment()


def load_ipython_extension(shell: InteractiveShell) -> None:
    """`%load_ext devtrace`."""
    from devtrace.notebook import magic
    from devtrace.runtime import requirements

    requirements.need_torch()
    magic.load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """`%unload_ext devtrace`."""
    from devtrace.notebook import magic

    magic.unload(shell)


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    """Say to `jupyter-builder develop` which folder the built extension is in."""
    return [{"src": "labextension", "dest": "devtrace"}]


def __getattr__(name: str) -> Any:
    if name in _NEED_TORCH:
        importlib.import_module("devtrace.runtime.requirements").need_torch()
    if name == "__version__":
        value: Any = importlib.import_module("devtrace.runtime.requirements").own_version()
    elif name == "__all__":
        value = ["__version__", "load_ipython_extension", "unload_ipython_extension", *_TAKEN_FROM, *_of_features()]
    elif name in _TAKEN_FROM:
        value = getattr(importlib.import_module(f"devtrace.{_TAKEN_FROM[name]}"), name)
    elif name in _of_features():
        value = _of_features()[name]()
    else:
        raise AttributeError(f"module 'devtrace' has no attribute {name!r}")
    globals()[name] = value
    return value


def _of_features() -> Mapping[str, Callable[[], Any]]:
    """Return what loads each public name that a feature offers."""
    from devtrace.features import offers

    return offers("function")


def __dir__() -> list[str]:
    return sorted({*__getattr__("__all__"), *globals()})
