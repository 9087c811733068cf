"""Requirements of the environment, checked on first use, so that `import devtrace` is free and never fails for torch.

A check raises one sentence (`SetupError`) instead of the traceback that the missing piece would cause.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from devtrace.words.errors import SetupError

# The first whose torch.compile passes over a dispatch mode that asks for it; an older one compiles again.
OLDEST_TORCH = (2, 10)


def need_torch() -> None:
    """Raise unless a torch that devtrace works with is installed; reads its version without importing it."""
    oldest = ".".join(map(str, OLDEST_TORCH))
    try:
        found = version("torch")
    except PackageNotFoundError:
        raise SetupError.of("torch-missing", oldest=oldest) from None
    if _release(found) < OLDEST_TORCH:
        raise SetupError.of("torch-too-old", found=found, oldest=oldest)


def _release(text: str) -> tuple[int, int]:
    major, minor = text.split("+")[0].split(".")[:2]
    return int(major), int(minor)
