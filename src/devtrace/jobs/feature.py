"""What `jobs` offers to the kernel."""

from typing import Final

from devtrace.features import Feature

FEATURE: Final[Feature] = {
    "error rule": {"collective-device": "devtrace.jobs.rules.collective_device:refused_by_nccl"},
    "job rule": {"rank-device": "devtrace.jobs.rules.rank_device:on_the_device_of_another"},
    "loader": {"job": "devtrace.jobs.merge:load"},
    "ranks": {"launched": "devtrace.jobs.launched:Job"},
    "report": {"job": "devtrace.jobs.ranks:with_findings_of_the_job"},
}
