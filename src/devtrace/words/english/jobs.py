"""Sentences about jobs of several ranks."""

from __future__ import annotations

from typing import Final

SENTENCES: Final[dict[str, str]] = {
    "job.gloo": "simulated devices use `gloo` where the program asks for `nccl`; the values are the same",
}
