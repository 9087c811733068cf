"""JupyterLab's display language, as its settings have it.

The panel tells the kernel, but not before the cells of a Run All have run: the first reports of a notebook go by this.
"""

import json
import os
from pathlib import Path
from typing import Final

from jupyter_core.paths import jupyter_config_dir

from devtrace.words.language import Language, of_tag

_FILE: Final = Path("@jupyterlab", "translation-extension", "plugin.jupyterlab-settings")
_OF_A_SERVER: Final = "JPY_SESSION_NAME"
"""A Jupyter server sets this for the kernels of its notebooks; other front ends have their own language."""


def chosen() -> Language | None:
    """Return the language that the user has set in JupyterLab, None where no language of ours is set."""
    if not os.environ.get(_OF_A_SERVER):
        return None
    folder = os.environ.get("JUPYTERLAB_SETTINGS_DIR") or Path(jupyter_config_dir(), "lab", "user-settings")
    try:
        lines = Path(folder, _FILE).read_text("utf-8").splitlines()
        settings = json.loads("\n".join(line for line in lines if not line.lstrip().startswith("//")))
    except (OSError, ValueError):
        return None
    locale = settings.get("locale") if isinstance(settings, dict) else None
    return of_tag(locale) if isinstance(locale, str) else None
