"""What IPython calls: the only module that may import it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def load(shell: InteractiveShell) -> None:
    """Add devtrace's magics to a shell."""


def unload(shell: InteractiveShell) -> None:
    """Take them out again."""
