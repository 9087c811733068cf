"""Requirements of the environment, checked on first use, so that `import devtrace` is free and never fails for torch.

A check raises one sentence (`SetupError`) instead of the traceback that the missing piece would cause.
"""

from functools import cache
from importlib.metadata import PackageNotFoundError, version

from devtrace.words.catalogue import sentence
from devtrace.words.errors import SetupError, named

# The first whose torch.compile passes over a dispatch mode that asks for it; an older one compiles again.
OLDEST_TORCH = (2, 10)
NEWEST_TORCH = (2, 15)
"""The newest that devtrace was tested with; a newer one may have changed what devtrace builds upon."""


def need_torch() -> None:
    """Raise unless a torch that devtrace works with is installed; reads its version without importing it."""
    oldest, present = _dotted(OLDEST_TORCH), installed("torch")
    if not present:
        raise SetupError.of("torch-missing", oldest=oldest)
    if release_of(present) < OLDEST_TORCH:
        raise SetupError.of("torch-too-old", found=present, oldest=oldest)


def installed(package: str) -> str:
    """Return the version of a package; empty where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


@cache
def own_version() -> str:
    """Return devtrace's version; "0" for a bare folder in the path, which has none."""
    return installed("devtrace") or "0"


def release_of(text: str) -> tuple[int, int]:
    major, minor = text.split("+")[0].split(".")[:2]
    return int(major), int(minor)


def versions() -> dict[str, str]:
    """Return the installed versions and the tested ones, by the names that sentences have for them."""
    tested = {"oldest": _dotted(OLDEST_TORCH), "newest": _dotted(NEWEST_TORCH)}
    return {"own": own_version(), "torch": version("torch"), **tested}


def untested() -> str:
    """Say which range was tested, where the installed torch is newer."""
    present = installed("torch")
    return sentence("torch.untested", **versions()) if present and release_of(present) > NEWEST_TORCH else ""


def sentence_of_fault(key: str, fault: BaseException) -> str:
    """Return the sentence of a fault of our own; on a torch that nobody tested, with what to do below it."""
    return "\n".join(filter(None, (sentence(key, fault=named(fault)), untested())))


def _dotted(release: tuple[int, int]) -> str:
    return ".".join(map(str, release))
