"""What is known of an operator before it runs, from its schema: read once per operator, looked up by its id.

An OpOverload is kept alive by its plan, so that the id stays its own; hashing one is slow Python.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch._ops import OpOverload

from devtrace.trace.columns import OP_KINDS

COMPUTE, VIEW, CREATE, COPY, SYNC = range(len(OP_KINDS))

_COPIES: Final = frozenset(
    (
        "_to_copy",
        "copy_",
        "copy",
        "clone",
        "_pin_memory",
        "pin_memory",
        "_foreach_copy_",
        "_foreach_copy",
        "to",
        "contiguous",
        "cpu",
        "cuda",
        "lift_fresh_copy",
        "_copy_from",
        "_copy_from_and_resize",
    )
)
# Of these, those that may carry data to another device.
_CARRIERS: Final = _COPIES - {"clone", "contiguous", "lift_fresh_copy"}
_SYNCS: Final = frozenset(
    (
        "_local_scalar_dense",
        "item",
        "equal",
        "is_nonzero",
        "nonzero",
        "nonzero_numpy",
        "argwhere",
        "masked_select",
        "_unique",
        "_unique2",
        "unique_dim",
        "unique_consecutive",
        "unique_dim_consecutive",
        "allclose",
        "bincount",
        "tolist",
        "_nested_tensor_size",
    )
)
_VIEWS: Final = frozenset(
    (
        "reshape",
        "flatten",
        "lift",
        "_unsafe_view",
        "_reshape_alias",
    )
)
_CREATES: Final = frozenset(
    (
        "lift_fresh",
        "set_",
        "scalar_tensor",
    )
)
# Read what a tensor is, not what it holds: no row.
_SILENT: Final = frozenset(
    (
        "is_pinned",
        "dim",
        "size",
        "stride",
        "numel",
        "storage_offset",
        "sym_size",
        "sym_stride",
        "sym_numel",
        "sym_storage_offset",
        "is_contiguous",
        "is_same_size",
        "is_floating_point",
        "is_complex",
        "_has_compatible_shallow_copy_type",
        "is_non_overlapping_and_dense",
        "is_strides_like_format",
        "_version",
        "retain_grad",
        "requires_grad_",
        "output_nr",
        "is_leaf",
    )
)

# A region of torch's profiler begins or ends.
_REGIONS: Final = {"profiler::_record_function_enter_new": 1, "profiler::_record_function_exit": -1}

OTHER, ONE, IN_PLACE = range(3)
"""What an op gives back: several tensors, none or a copy; one tensor; its first argument."""

_NO_TENSOR: Final = frozenset(
    (int, float, bool, complex, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format)
)
_NO_TENSOR_LIST: Final = _NO_TENSOR | {list, tuple}

HEAD_SHIFT: Final = 37
"""An op's head: plan id above bit 37, 12 bits of autograd node class, 20 bits of input count, 5 bits of flags."""


class Plan:
    """How to record one operator."""

    __slots__ = (
        "births",
        "call",
        "copies",
        "func",
        "head",
        "id",
        "keywords",
        "kind",
        "masks",
        "name",
        "plain",
        "region",
        "silent",
        "special",
        "way",
    )

    def __init__(self, func: Any, id: int) -> None:
        self.func = func
        self.id = id
        self.head = id << HEAD_SHIFT
        # An OpOverload's own __call__ is a Python frame that only forwards to this.
        self.call = func._op if type(func) is OpOverload else func
        self.name = str(func)
        self.kind = COMPUTE
        self.silent = self.copies = self.masks = self.births = False
        self.region = 0
        self.keywords = True
        self.way = OTHER
        self.plain = _NO_TENSOR
        if isinstance(func, OpOverload):
            self._read(func)
        self.special = self.keywords or self.masks or self.births

    def _read(self, func: OpOverload[..., Any]) -> None:
        schema = func._schema
        base = schema.name.split("::")[1]
        self.name = _name(func)
        tensors = [argument for argument in schema.arguments if "Tensor" in str(argument.type)]
        returns = [result for result in schema.returns if "Tensor" in str(result.type)]
        self.silent = base in _SILENT or (base not in _SYNCS and not returns and not tensors)
        self.region = _REGIONS.get(schema.name, 0)
        self.kind = _kind(func, base, takes=bool(tensors), gives=bool(returns))
        self.copies = base in _CARRIERS
        # The tensor handed in is only being made: torch.tensor, from_numpy, torch.load.
        self.births = base in ("lift_fresh", "set_")
        self.masks = base in ("index", "index_put_", "index_put", "_index_put_impl_", "_unsafe_index")
        self.keywords = any(argument.kwarg_only for argument in tensors)
        if not any("List[" in str(argument.type) for argument in tensors):
            self.plain = _NO_TENSOR_LIST
        single = len(schema.returns) == 1 and str(schema.returns[0].type) == "Tensor"
        first = schema.arguments[0].alias_info if schema.arguments else None
        result = schema.returns[0].alias_info if single else None
        if first and result and first.is_write and first.before_set == result.before_set and not self.births:
            self.way = IN_PLACE
        elif single:
            self.way = ONE
        if self.copies:
            self.way = OTHER


def _name(func: OpOverload[..., Any]) -> str:
    """aten.addmm, aten.add.Tensor: the overload is named unless it is the default one."""
    return str(func).removesuffix(".default")


def _kind(func: OpOverload[..., Any], base: str, *, takes: bool, gives: bool) -> int:
    if base in _SYNCS or str(func).startswith("aten.repeat_interleave.Tensor"):
        return SYNC
    if base in _COPIES:
        return COPY
    if base in _CREATES or (gives and not takes) or base.endswith("_like") or base.startswith("new_"):
        return CREATE
    if func.is_view or base in _VIEWS:
        return VIEW
    return COMPUTE


plans: dict[int, Plan] = {}
"""By the operator's id. Grows with the operators that the process has used."""
by_id: list[Plan] = []


def plan_for(func: Any) -> Plan:
    """Make the plan of an operator seen for the first time."""
    plan = Plan(func, len(by_id))
    by_id.append(plan)
    plans[id(func)] = plan
    return plan


_named: dict[str, Plan] = {}


def named_plan(name: str) -> Plan:
    """The plan of what is no operator, for a row all the same."""
    if name not in _named:
        plan = _named[name] = Plan(name, len(by_id))
        by_id.append(plan)
    return _named[name]


def mask_among(args: tuple[Any, ...]) -> bool:
    """Whether an indexing op is given a mask, whose True elements the device must count before the host can go on."""
    indices = args[1] if len(args) > 1 else ()
    return any(isinstance(index, torch.Tensor) and index.dtype in (torch.bool, torch.uint8) for index in indices)
