"""All rules, in the order in which they are asked; those for errors are in `error_rules`."""

from typing import Final

from devtrace.diagnosis.rules import (
    cpu_compute,
    device_comparison,
    device_to_device_copy,
    device_to_host_copy,
    host_sync,
    host_to_device_copy,
    idle_optimizer,
    moved_after_wrap,
    rank_device,
    ranks_differ,
    split_module,
)
from devtrace.diagnosis.rules.error_rules import ERROR_RULES
from devtrace.diagnosis.rules.rule import CostRule, JobRule, Rule

COST_RULES: Final[tuple[CostRule, ...]] = (
    host_sync.RULE,
    host_to_device_copy.RULE,
    device_to_host_copy.RULE,
    device_to_device_copy.RULE,
    cpu_compute.RULE,
    split_module.RULE,
    idle_optimizer.RULE,
    device_comparison.RULE,
    moved_after_wrap.RULE,
)

JOB_RULES: Final[tuple[JobRule, ...]] = (
    rank_device.RULE,
    ranks_differ.RULE,
)

RULES: Final[tuple[Rule, ...]] = (*ERROR_RULES, *COST_RULES, *JOB_RULES)
