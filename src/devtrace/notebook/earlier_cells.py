"""Cells that ran before devtrace was loaded, out of IPython's own memory: the order of loading does not matter.

IPython names a cell's code after its text and keeps the code under that name in `linecache`. Asked for the name, it
answers with the cell's number, as in a traceback. Its history has the text as it was typed, which shows on which line
the code begins. The front end's ids of these cells are not known here: the page finds them by number and text.
"""

import linecache
import re
from collections.abc import Iterator
from typing import Any, Final

from devtrace.notebook.cells import Cell

_NUMBER: Final = re.compile(r"\d+")


def earlier_cells(shell: Any) -> Iterator[Cell]:
    """Yield the cells that this shell has run, and the code that their magics ran as cells."""
    history = shell.history_manager
    if history is None:
        return
    typed, ran = history.input_hist_raw, history.input_hist_parsed
    for file, code in list(_compiled_code()):
        number = _number_of(shell, file)
        # `%%capture` gives the number of the next cell to the code that it runs.
        for count in (number, number - 1):
            if 0 < count < min(len(typed), len(ran)):
                first = _first_line(code, typed[count], ran[count])
                if first:
                    yield Cell(file, code, count, first=first)
                    break


def earlier_texts(shell: Any) -> dict[str, tuple[str, str]]:
    """Return label and text of the cells that this shell has run, by label: their ids are not known."""
    typed = shell.history_manager.input_hist_raw if shell.history_manager is not None else []
    return {f"In[{count}]": (f"In[{count}]", text) for count, text in enumerate(typed) if count and text.strip()}


def _compiled_code() -> Iterator[tuple[str, str]]:
    """Yield the names and texts of code that has no file."""
    for name, entry in list(linecache.cache.items()):
        if len(entry) == 4 and (entry[1] is None or name.startswith("<")):  # IPython 7 gives a time
            yield name, "".join(entry[2])


def _number_of(shell: Any, file: str) -> int:
    """Return the number of the cell that ran code of this name last, 0 for no cell's."""
    # IPython 7, which Colab has, answers for no name: the number is in `<ipython-input-3-0a1b>` itself.
    label = getattr(shell.compile, "format_code_name", re.compile(r"(ipython-input-\d+)").search)(file)
    number = _NUMBER.search(label[1]) if label else None
    return int(number[0]) if number else 0


def _first_line(code: str, typed: str, ran: str) -> int:
    """Return the line of the typed cell on which the code begins, 0 if the cell does not have this code."""
    if code.strip() == ran.strip():
        return 1 + typed[: len(typed) - len(typed.lstrip())].count("\n")
    position = typed.rfind(code.strip()) if code.strip() else -1
    return 1 + typed[:position].count("\n") if position >= 0 else 0
