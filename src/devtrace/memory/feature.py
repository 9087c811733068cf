"""What `memory` offers to the kernel."""

from typing import Final

from devtrace.features import Feature

FEATURE: Final[Feature] = {
    "observer": {"memory": "devtrace.memory.observer:MemoryObserver"},
    "error rule": {"out-of-memory": "devtrace.memory.rules.out_of_memory:out_of_memory"},
    "cost rule": {
        "memory-growth": "devtrace.memory.rules.memory_growth:growing_memory",
        "memory-peak": "devtrace.memory.rules.memory_growth:highest_memory",
    },
    "fact": {name: f"devtrace.memory.shortage:{name}" for name in ("Height", "Holding", "Shortage")},
    "inventory": {"memory": "devtrace.memory.inventory:listing_with_memory"},
    "report part": {"memory": "devtrace.memory.report:peaks"},
}
