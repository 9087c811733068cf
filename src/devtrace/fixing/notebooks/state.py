"""What a job that fixes a notebook says of itself, as it goes from process to process and to the page.

`panel/messages.json` has its fields: those of `Fixing`. `run` is what has to run, in order, `needed` only for the
others. Texts of bugs have the numbers of a fresh kernel, in which `cells` run one after the other. The lines of a hunk
are those of the cell as earlier fixes left it; a `file` instead of a cell is a module's.
"""

from typing import Any

State = dict[str, Any]


def beginning() -> State:
    return {
        "state": "running", "round": 0, "cells": [], "cell": "", "bugs": [], "closing": "", "changed": [], "run": [],
        "needed": [],
    }  # fmt: skip
