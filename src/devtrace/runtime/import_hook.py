"""Waits until a package is imported, so that `%load_ext devtrace` need not import torch, which takes a second.

Each callback is called once, in the importing thread, as soon as the package's own code has run. The `import` statement
goes on after that, so ops in the rest of the same cell are seen.
"""

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from devtrace.runtime.watching import MODULES


class ImportWatcher(MetaPathFinder):
    """A finder that waits for `package`; it is in `sys.meta_path` only while there are callbacks."""

    def __init__(self, package: str) -> None:
        self.package = package
        self._waiting: list[Callable[[], None]] = []

    @property
    def is_imported(self) -> bool:
        """True if the package has been imported to its end."""
        module = sys.modules.get(self.package)
        return module is not None and not getattr(module.__spec__, "_initializing", False)

    def call_when_imported(self, call: Callable[[], None]) -> None:
        """Call now if the package is imported, else once it is."""
        if self.is_imported:
            call()
            return
        self._waiting.append(call)
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def cancel(self, call: Callable[[], None]) -> None:
        if call in self._waiting:
            self._waiting.remove(call)
        if not self._waiting and self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        """Return the other finders' answer; for the package, with a loader that calls us at its end."""
        if fullname != self.package:
            return None
        others = (finder for finder in sys.meta_path if not isinstance(finder, ImportWatcher))
        specs = (finder.find_spec(fullname, path, target) for finder in others)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None and hasattr(spec.loader, "__dict__"):
            self._listen(spec.loader)
        return spec

    def _listen(self, loader: Loader) -> None:
        # On the loader itself, which is made anew for each search: a wrapper would stay behind as torch.__loader__.
        load = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            vars(loader).pop("exec_module", None)
            load(module)
            for watcher in [finder for finder in sys.meta_path if isinstance(finder, ImportWatcher)]:
                if watcher.package == self.package:  # the first of them finds the package for all
                    for call in watcher.cancel_all():
                        with MODULES:  # no exception of ours may come into the program's `import`
                            call()

        vars(loader)["exec_module"] = exec_module

    def cancel_all(self) -> list[Callable[[], None]]:
        """Forget all calls that wait; return them."""
        calls = list(self._waiting)
        for call in calls:
            self.cancel(call)
        return calls
