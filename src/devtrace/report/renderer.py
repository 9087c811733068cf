"""Who draws a report: html with the views as a script, or our renderer with a static picture for all who have none.

    DEVTRACE_RENDERER=auto | script | static        %devtrace renderer auto | script | static

`script` is for front ends that run a script in html and have no renderer of ours. What cleans html may show a script as
text. So `auto` sends one only where such a front end is known, by the marks that its kernels carry.
"""

import os
import sys
from typing import Final

CHOICES: Final = ("auto", "script", "static")
_VARIABLES: Final = {
    "COLAB_RELEASE_TAG": "Colab",
    "KAGGLE_KERNEL_RUN_TYPE": "Kaggle",
    "DATABRICKS_RUNTIME_VERSION": "Databricks",
    # VS Code takes these away from its terminals, so that a Jupyter server started there has none of them. The first is
    # not set where VS Code runs on another machine; the others are, in the process that starts kernels.
    "VSCODE_PID": "VS Code",
    "VSCODE_ESM_ENTRYPOINT": "VS Code",
    "VSCODE_HANDLES_UNCAUGHT_ERRORS": "VS Code",
}
FRAME_HEIGHT: Final = 640
"""Pixels that a report in a frame takes from the beginning: what frames it may look once, when it loads."""
_chosen: str | None = None


def choose(name: str) -> None:
    """Choose for the rest of the session, over what the environment asks for; "auto" goes back to what is found."""
    global _chosen
    if name not in CHOICES:
        raise ValueError(f"{name!r} is not one of {', '.join(CHOICES)}")
    _chosen = name


def choice() -> str:
    """Return what the user asked for; what is no choice of ours is "auto"."""
    asked = _chosen or os.environ.get("DEVTRACE_RENDERER", "")
    return asked if asked in CHOICES else "auto"


def sends_script() -> bool:
    asked = choice()
    return asked == "script" or (asked == "auto" and front_end() != "")


def is_without_extension() -> bool:
    """Return whether a view that is no report has to bring its script along, however reports are sent."""
    return choice() == "script" or front_end() != ""


def front_end() -> str:
    """Name the front end that runs scripts and has no renderer of ours; "" where none is known."""
    if "google.colab" in sys.modules:
        return "Colab"
    # VS Code tells each kernel of a notebook its file, wherever the kernel runs.
    if hasattr(sys.modules.get("__main__"), "__vsc_ipynb_file__"):
        return "VS Code"
    if "marimo" in sys.modules and sys.modules["marimo"].running_in_notebook():
        return "marimo"
    return next((name for variable, name in _VARIABLES.items() if variable in os.environ), "")


def for_marimo(html: str) -> object:
    """Give html to the marimo that shows it: if it has a script, in a frame, with a margin for the page in it."""
    marimo = sys.modules["marimo"]
    return marimo.iframe(html, height=f"{FRAME_HEIGHT + 40}px") if "<script" in html else marimo.Html(html)
