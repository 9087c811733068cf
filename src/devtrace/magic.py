"""What IPython calls: the only module that may import it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from IPython.display import display

from devtrace.display import bundle
from devtrace.record.counting import CountOps

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def load(shell: InteractiveShell) -> None:
    """Add devtrace's magics to a shell."""

    def devtrace(line: str, cell: str) -> None:
        with CountOps() as mode:
            shell.run_cell(cell)
        display(bundle(f"In[{shell.execution_count}]", mode.counts), raw=True)

    shell.register_magic_function(devtrace, "cell")  # type: ignore[arg-type]  # its stub is for the method unbound


def unload(shell: InteractiveShell) -> None:
    """Take them out again."""
    shell.magics_manager.magics["cell"].pop("devtrace", None)
