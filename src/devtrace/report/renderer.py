"""Who draws a report: html with the views as a script, or our renderer with a static picture for all who have none.

    DEVTRACE_RENDERER=auto | script | static        %devtrace renderer auto | script | static

`script` is for front ends that run a script in html and have no renderer of ours. What cleans html may show a script as
text. So `auto` sends one only where such a front end is known, by the marks that its kernels carry.
"""

import os
import sys
from typing import Final

CHOICES: Final = ("auto", "script", "static")
_VARIABLES: Final = (
    "COLAB_RELEASE_TAG",
    "KAGGLE_KERNEL_RUN_TYPE",
    "DATABRICKS_RUNTIME_VERSION",
    # VS Code takes these away from its terminals, so that a Jupyter server started there has none of them. The first is
    # not set where VS Code runs on another machine; the others are, in the process that starts kernels.
    "VSCODE_PID",
    "VSCODE_ESM_ENTRYPOINT",
    "VSCODE_HANDLES_UNCAUGHT_ERRORS",
)
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
    name = _chosen or os.environ.get("DEVTRACE_RENDERER", "")
    return name if name in CHOICES else "auto"


def sends_script() -> bool:
    name = choice()
    return name == "script" or (name == "auto" and runs_scripts())


def is_without_extension() -> bool:
    """Return whether a view that is no report has to bring its script along, however reports are sent."""
    return choice() == "script" or runs_scripts()


def runs_scripts() -> bool:
    """Return whether a front end is known that runs scripts and has no renderer of ours."""
    # VS Code tells each kernel of a notebook its file, wherever the kernel runs.
    is_known = "google.colab" in sys.modules or hasattr(sys.modules.get("__main__"), "__vsc_ipynb_file__")
    is_marimo = "marimo" in sys.modules and sys.modules["marimo"].running_in_notebook()
    return is_known or is_marimo or any(variable in os.environ for variable in _VARIABLES)


def for_marimo(html: str) -> object:
    """Return html as marimo shows it: with a script in a frame, which leaves a margin for the page in it."""
    marimo = sys.modules["marimo"]
    return marimo.iframe(html, height=f"{FRAME_HEIGHT + 40}px") if "<script" in html else marimo.Html(html)
