"""Owners of files: the user, an installed package, or code that no report shows (torch, Python, Jupyter, devtrace)."""

import os
import re
import sys
import sysconfig
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, distributions, packages_distributions, version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from devtrace.source.saved_files import CodeOwner, saved_file
from devtrace.source.stand_ins import TORCHS

OWN_PACKAGES: Final = "DEVTRACE_OWN_PACKAGES"
"""Environment variable: installed packages by their import names, whose code counts as the user's own."""
_INSTALLED: Final = re.compile(r"[/\\](?:site|dist)-packages[/\\]")
# Packages that run a cell or a test and never are where somebody works.
_RUN_PROGRAMS: Final = "torchgen|functorch|IPython|ipykernel|traitlets|tornado|jupyter_client|debugpy|_?pytest|pluggy"
_HOSTS: Final = re.compile(rf"{_INSTALLED.pattern}(?:{_RUN_PROGRAMS})[/\\]")
OF_HOSTS: Final = re.compile(rf"(?:devtrace|{_RUN_PROGRAMS})(?:\.|$)")
"""Modules by name, devtrace's too, whose objects lead to a program's variables and are no part of it."""
_STANDARD: Final = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")})
# Code without a file that is a person's: typed at a prompt, timed by %%time, passed with -c. Otherwise "<string>" is
# what a program makes for itself: the `__init__` of a dataclass.
_TYPED = (
    *("<timed exec>", "<timed eval>", "<magic-timeit>", "<ipython-input-", "<stdin>", "<console>"),
    *(("<string>",) if sys.argv[:1] == ["-c"] else ()),
)
_distributions = cache(packages_distributions)


def owner_of(file: str) -> CodeOwner:
    """Return whose code a file is, by the name that its code objects carry."""
    if (saved := saved_file(file)) is not None:
        return saved.owner
    if file.startswith("<"):
        return "user" if file.startswith(_TYPED) else "hidden"
    if is_torch_or_ours(file) or _HOSTS.search(file):
        return "hidden"
    if _INSTALLED.search(file):
        return "user" if import_name_of(file) in os.environ.get(OWN_PACKAGES, "").split(",") else "package"
    return "hidden" if file.startswith(_STANDARD) else "user"


def is_torch_or_ours(file: str) -> bool:
    saved = saved_file(file)
    return file == TORCHS or (saved.is_torchs if saved is not None else file.startswith(_hidden_roots()))


@cache
def _hidden_roots() -> tuple[str, ...]:
    """Return the folders of torch and of devtrace, the latter by both names where the package is a link."""
    torch = find_spec("torch")
    ours = (Path(__file__).parents[1], Path(__file__).resolve().parents[1])
    return tuple({f"{path}{os.sep}" for path in (*ours, *((torch and torch.submodule_search_locations) or ()))})


def import_name_of(file: str) -> str:
    """Return the name by which the package of an installed file is imported."""
    return re.split(r"[/\\]", _INSTALLED.split(file)[-1])[0].removesuffix(".py")


def folder_of_packages(file: str) -> str:
    """Return the folder into which the package of a file was installed."""
    return file[: [match.end() for match in _INSTALLED.finditer(file)][-1]]


@lru_cache(maxsize=256)
def package_of(file: str) -> str:
    """Return the package of an installed file with its version: "recbole 1.2.0"."""
    name = import_name_of(file)
    packages = _distributions().get(name)
    try:
        return f"{packages[0]} {version(packages[0])}" if packages else _distribution_beside(file, name)
    except PackageNotFoundError:
        return name


def _distribution_beside(file: str, name: str) -> str:
    """Return the package and version that lie beside a file, in a folder that is not on this process's path."""
    for distribution in distributions(path=[folder_of_packages(file)]) if _INSTALLED.search(file) else ():
        if name in (distribution.name.replace("-", "_"), *(distribution.read_text("top_level.txt") or "").split()):
            return f"{distribution.name} {distribution.version}"
    return name
