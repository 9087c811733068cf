"""What `budget` offers to the kernel."""

from typing import Final

from devtrace.features import Feature

FEATURE: Final[Feature] = {"sampler": {"budget": "devtrace.budget.budget:Budget"}}
