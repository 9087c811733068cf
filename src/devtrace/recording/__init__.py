"""Everything between a running PyTorch program and the trace."""

from devtrace.runtime.requirements import versions
from devtrace.runtime.torch_names import fault_of
from devtrace.words.errors import SetupError

if fault_of("runtime"):
    raise SetupError.of("torch-unfit", fault=fault_of("runtime"), **versions())
