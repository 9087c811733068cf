"""The same causes by two names: of a dtype, and of a device."""

from collections.abc import Mapping
from typing import Final

from devtrace.diagnosis.slugs import CauseSlug

CASTS: Final[Mapping[CauseSlug, CauseSlug]] = {
    "attached-after-move": "attached-after-cast",
    "created-without-device": "created-without-dtype",
    "never-moved": "never-cast",
    "wrong-device": "wrong-dtype",
}
"""What the causes of a device are called for a dtype; the others are called alike."""
MOVES: Final[Mapping[CauseSlug, CauseSlug]] = {cast: move for move, cast in CASTS.items()}
