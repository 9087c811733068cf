"""device-to-device-copy: data that a line copies between devices.

for x in batches: y = x @ weight.to("cuda:1")       # bad: the same weight each time
weight = weight.to("cuda:1")                        # good: once, above the loop
"""

from typing import Final

from devtrace.costs.copies import find_copies, of_single_elements
from devtrace.costs.same_tensor import of_one_tensor

device_to_device_copies: Final = find_copies("device-to-device-copy", "d2d", of_one_tensor, of_single_elements)
