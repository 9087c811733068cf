"""Everything between a running PyTorch program and the trace."""

import torch  # noqa: F401 (first, as in simulation)

from devtrace.runtime.torch_names import need_names

need_names()
