"""Everything between a running PyTorch program and the trace."""

from devtrace.runtime.torch_names import need_names

need_names()
