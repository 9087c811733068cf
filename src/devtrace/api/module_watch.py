"""Light hooks for what is not recorded: `%load_ext devtrace`, a suite of tests, `devtrace.install()`."""

from collections.abc import Callable
from contextlib import ExitStack

from devtrace.runtime.import_hook import ImportWatcher
from devtrace.runtime.watching import MODULES


def watch_modules() -> Callable[[], None]:
    """Note where modules are attached and moved, from torch's import on; the returned function ends that."""
    undo = ExitStack()

    def hook() -> None:
        """Within the user's `import torch`, into which no exception of ours may come."""
        with MODULES:
            from devtrace.recording.context import hooks

            hooks.install()
            undo.callback(hooks.uninstall)

    watcher = ImportWatcher("torch")
    undo.callback(watcher.cancel, hook)
    watcher.call_when_imported(hook)
    return undo.close
