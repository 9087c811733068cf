"""What `costs` offers to the kernel."""

from typing import Final

from devtrace.features import Feature

FEATURE: Final[Feature] = {
    "cost rule": {
        "host-sync": "devtrace.costs.rules.host_sync:host_syncs",
        "host-to-device-copy": "devtrace.costs.rules.copies:host_to_device_copies",
        "device-to-host-copy": "devtrace.costs.rules.copies:device_to_host_copies",
        "device-to-device-copy": "devtrace.costs.rules.copies:device_to_device_copies",
        "cpu-compute": "devtrace.costs.rules.cpu_compute:left_on_host",
        "split-module": "devtrace.costs.rules.split_module:split_modules",
        "device-comparison": "devtrace.costs.rules.device_comparison:compared_with_a_string",
    },
    "findings": {"costs": "devtrace.costs.cost_findings:told_once"},
}
