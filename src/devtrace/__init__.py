"""devtrace shows exactly where a CPU tensor entered a GPU computation.

    with devtrace.record(simulate="cuda:2") as recording: ...
    print(devtrace.diagnose(recording.trace))

The public names are found on first use, so that `import devtrace` costs nothing and imports neither torch nor IPython.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if sys.version_info < (3, 11):  # noqa: UP036 (where pip was not asked: PYTHONPATH, a copied folder)
    raise ImportError(
        f"python-too-old: got Python {sys.version.split()[0]}; devtrace needs Python 3.11 or newer; "
        "install it into an environment of a newer Python."
    )

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from devtrace.diagnose import diagnose as diagnose
    from devtrace.diff import diff as diff
    from devtrace.errors import DeviceError as DeviceError
    from devtrace.errors import DevtraceError as DevtraceError
    from devtrace.errors import FormatError as FormatError
    from devtrace.errors import SetupError as SetupError
    from devtrace.errors import SimulateError as SimulateError
    from devtrace.errors import UsageError as UsageError
    from devtrace.expect import expect as expect
    from devtrace.live_view import LiveView as LiveView
    from devtrace.profiler import from_profiler as from_profiler
    from devtrace.ranks import load as load
    from devtrace.report import Culprit as Culprit
    from devtrace.report import Edit as Edit
    from devtrace.report import Finding as Finding
    from devtrace.report import Report as Report
    from devtrace.report import Site as Site
    from devtrace.session import record as record
    from devtrace.simulate import simulate as simulate
    from devtrace.trace import Trace as Trace

# Each public name and the module that it is taken from on first use; type checkers read the imports above.
_HOME = {
    "record": "session",
    "expect": "expect",
    "simulate": "simulate",
    "diagnose": "diagnose",
    "load": "ranks",
    "diff": "diff",
    "from_profiler": "profiler",
    "Trace": "trace",
    "Report": "report",
    "Finding": "report",
    "Culprit": "report",
    "Site": "report",
    "Edit": "report",
    "LiveView": "live_view",
    "DevtraceError": "errors",
    "DeviceError": "errors",
    "FormatError": "errors",
    "SetupError": "errors",
    "SimulateError": "errors",
    "UsageError": "errors",
}

_NEED_TORCH = ("record", "expect", "simulate")

__all__ = ["__version__", "load_ipython_extension", "unload_ipython_extension", *_HOME]


def load_ipython_extension(shell: InteractiveShell) -> None:
    """`%load_ext devtrace`."""
    from devtrace import gates, magic

    gates.need_torch()
    magic.load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """`%unload_ext devtrace`."""
    from devtrace import magic

    magic.unload(shell)


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    """Where `jupyter-builder develop` finds the built extension."""
    return [{"src": "labextension", "dest": "devtrace"}]


def _version() -> str:
    from importlib.metadata import version

    return version("devtrace")


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value: Any = _version()
    elif name in _HOME:
        if name in _NEED_TORCH:
            importlib.import_module("devtrace.gates").need_torch()
        value = getattr(importlib.import_module(f"devtrace.{_HOME[name]}"), name)
    else:
        raise AttributeError(f"module 'devtrace' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(__all__) | set(globals()))


class _Package(ModuleType):
    """Keeps `devtrace.record` the function.

    `record`, `simulate` and `diagnose` are functions to the user and packages within; the import system would bind the
    package to the name as soon as one of its modules is imported. `from devtrace.record.x import y` still works.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
