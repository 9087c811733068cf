"""Rows of a trace's tables, by table: a signature that takes an op does not take a tensor. -1 is none."""

from typing import Final, NewType

OpId = NewType("OpId", int)
"""Row of `ops`; also how many ops came before something."""

TensorId = NewType("TensorId", int)
"""Row of `tensors`."""

SiteId = NewType("SiteId", int)
"""Row of `sites`."""

CallId = NewType("CallId", int)
"""Row of `calls`."""

ModuleId = NewType("ModuleId", int)
"""Row of `modules`."""

NO_OP: Final = OpId(-1)
NO_CALL: Final = CallId(-1)
NO_MODULE: Final = ModuleId(-1)
NO_SITE: Final = SiteId(-1)
NO_TENSOR: Final = TensorId(-1)
