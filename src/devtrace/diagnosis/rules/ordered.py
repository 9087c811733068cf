"""All rules, in the order in which they are asked; those for errors are in `error_rules`."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from devtrace.costs.rules.cpu_compute import left_on_host
from devtrace.costs.rules.device_comparison import compared_with_a_string
from devtrace.costs.rules.device_to_device_copy import device_to_device_copies
from devtrace.costs.rules.device_to_host_copy import device_to_host_copies
from devtrace.costs.rules.host_sync import host_syncs
from devtrace.costs.rules.host_to_device_copy import host_to_device_copies
from devtrace.costs.rules.idle_optimizer import idle_optimizers
from devtrace.costs.rules.moved_after_wrap import moved_after_wrap
from devtrace.costs.rules.split_module import split_modules
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Finding
from devtrace.diagnosis.ledger import Tally
from devtrace.diagnosis.rules.cuda_graph import numbers_in_graphs
from devtrace.diagnosis.rules.dtype_cost import dtype_costs
from devtrace.diagnosis.rules.error_rules import ERROR_RULES
from devtrace.diagnosis.slugs import RuleSlug
from devtrace.jobs.ranks import Ranks
from devtrace.jobs.rules.rank_device import on_the_device_of_another
from devtrace.jobs.rules.ranks_differ import differing_tensors
from devtrace.memory.rules.memory_growth import growing_memory, highest_memory

COST_RULES: Final[Mapping[RuleSlug, Callable[[TraceQueries, Tally], Iterable[Finding]]]] = {
    "host-sync": host_syncs,
    "host-to-device-copy": host_to_device_copies,
    "device-to-host-copy": device_to_host_copies,
    "device-to-device-copy": device_to_device_copies,
    "cpu-compute": left_on_host,
    "split-module": split_modules,
    "dtype-cost": dtype_costs,
    "cuda-graph": numbers_in_graphs,
    "idle-optimizer": idle_optimizers,
    "memory-growth": growing_memory,
    "memory-peak": highest_memory,
    "device-comparison": compared_with_a_string,
    "moved-after-wrap": moved_after_wrap,
}
"""Each finds sites that cost time, by the counts of the ledger."""

JOB_RULES: Final[Mapping[RuleSlug, Callable[[TraceQueries, Ranks], Iterable[Finding]]]] = {
    "rank-device": on_the_device_of_another,
    "ranks-differ": differing_tensors,
}
"""Each finds what only the ranks of a job together show."""

RULES: Final[tuple[RuleSlug, ...]] = (*ERROR_RULES, *COST_RULES, *JOB_RULES)
