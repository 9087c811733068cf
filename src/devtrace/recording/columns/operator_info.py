"""Reads from an operator's schema how to record it: once per operator, looked up by the operator's id.

An `OperatorInfo` keeps its OpOverload alive, so that the id stays its own; hashing an OpOverload is slow Python.
"""

from math import prod
from typing import Any, Final

import torch
from torch._ops import OpOverload

from devtrace.recording.columns.chunk import OPERATOR_SHIFT
from devtrace.runtime.quiet import device_of, dtype_of, is_tensor, shape_of
from devtrace.trace.columns import OP_KINDS
from devtrace.trace.op_kinds import CARRIERS, SYNCS, kind_of

COMPUTE, VIEW, CREATE, COPY, SYNC = range(len(OP_KINDS))

# Read a tensor's description and not its data: no row.
_SILENT: Final = frozenset({
    "is_pinned", "dim", "size", "stride", "numel", "storage_offset", "sym_size", "sym_stride", "sym_numel",
    "sym_storage_offset", "is_contiguous", "is_same_size", "is_floating_point", "is_complex",
    "_has_compatible_shallow_copy_type", "is_non_overlapping_and_dense", "is_strides_like_format", "_version",
    "retain_grad", "requires_grad_", "output_nr", "is_leaf",
})  # fmt: skip
_INDEXING: Final = frozenset({"index", "index_put_", "index_put", "_index_put_impl_", "_unsafe_index"})
_REGIONS: Final = {"profiler::_record_function_enter_new": 1, "profiler::_record_function_exit": -1}

OTHER, ONE, FIRST_ARGUMENT, NOTHING = range(4)
"""Values of `result_kind`. OTHER: several tensors, or a copy. ONE: one new tensor, or a view. NOTHING: no tensor."""

DIRECT: Final = frozenset({
    "aten.view", "aten.expand", "aten.t", "aten.transpose.int", "aten.permute", "aten.detach",
    "aten.unsqueeze", "aten.squeeze.dim", "aten.select.int", "aten.clone", "aten.sqrt", "aten.relu",
    "aten.add_.Tensor", "aten.sub_.Tensor", "aten.mul_.Tensor", "aten.div_.Tensor", "aten.addcmul_", "aten.addcdiv_",
    "aten.lerp_.Scalar", "aten.add.Tensor", "aten.sub.Tensor", "aten.mul.Tensor", "aten.div.Tensor",
})  # fmt: skip
"""Operators that torch's own method of that name runs 0.3 to 0.5 us sooner than the operator's entry does.

Not others: the method must choose the same overload for the same arguments, and the kernel must never warn, because a
warning would get the line at which the method is called.
"""
_NUMBERS: Final = frozenset((int, float, bool, complex))
_NO_TENSOR: Final = frozenset(
    (int, float, bool, complex, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format)
)
_NO_TENSOR_LIST: Final = _NO_TENSOR | {list, tuple}


class OperatorInfo:
    """One operator, and how to record it.

    `call` takes all arguments; `direct` a plain tensor, then plain tensors and what has a class in `plain`, which are
    those without tensors. `special` is true if the hot path must ask `Recorder.special`. `profiler_region` is 1 or -1
    where a region of torch's profiler begins or ends.
    """

    __slots__ = (
        "call", "creates_from_host", "direct", "func", "head", "id", "keywords", "kind", "lifts", "may_carry",
        "may_index_by_mask", "name", "plain", "profiler_region", "result_kind", "silent", "special",
    )  # fmt: skip

    def __init__(self, func: Any, id: int) -> None:
        self.func = func
        self.id = id
        self.head = id << OPERATOR_SHIFT
        # An OpOverload's own __call__ is a Python frame that only forwards to this, if nothing is in between.
        forwards = type(func) is OpOverload and func._op is getattr(func, "_cpp_dispatch_handle", func._op)
        self.call = func._op if forwards else func
        self.name = str(func)
        self.kind = COMPUTE
        self.silent = self.may_carry = self.may_index_by_mask = self.creates_from_host = self.lifts = False
        self.profiler_region = 0
        self.keywords = True
        self.result_kind = OTHER
        self.plain = _NO_TENSOR
        if isinstance(func, OpOverload):
            self._read_schema(func)
        self.special = self.keywords or self.may_index_by_mask or self.creates_from_host
        self.direct = self._torch_method() if self.name in DIRECT else self.call

    def _read_schema(self, func: OpOverload[..., Any]) -> None:
        schema = func._schema
        base = schema.name.split("::")[1]
        self.name = self.name.removesuffix(".default")  # aten.addmm, but aten.add.Tensor
        tensors = [argument for argument in schema.arguments if "Tensor" in str(argument.type)]
        returns = [result for result in schema.returns if "Tensor" in str(result.type)]
        self.silent = base in _SILENT or (base not in SYNCS and not returns and not tensors)
        self.profiler_region = _REGIONS.get(schema.name, 0)
        self.kind = OP_KINDS.index(kind_of(base, is_view=func.is_view, is_factory=bool(returns) and not tensors))
        if self.name.startswith("aten.repeat_interleave.Tensor"):
            self.kind = SYNC
        self.may_carry = base in CARRIERS
        # The tensor handed in is only being made: torch.tensor, from_numpy, torch.load.
        self.creates_from_host = base in ("lift_fresh", "set_")
        self.lifts = base == "lift_fresh"
        self.may_index_by_mask = base in _INDEXING
        self.keywords = any(argument.kwarg_only for argument in tensors)
        if not any("List[" in str(argument.type) for argument in tensors):
            self.plain = _NO_TENSOR_LIST
        self.result_kind = self._result_kind(schema)

    def _torch_method(self) -> Any:
        """Return torch's method of the same name as the operator; let `plain` fit that method."""
        if self.name.endswith(".Tensor") and not self.name.endswith("_.Tensor"):
            self.plain -= _NUMBERS  # a number may stand where the method wants its tensor
        base = self.name.split(".")[1]
        return getattr(torch._C.TensorBase, base, self.call)

    def _result_kind(self, schema: Any) -> int:
        if not self.may_carry and not any("Tensor" in str(result.type) for result in schema.returns):
            return NOTHING
        if self.may_carry or len(schema.returns) != 1 or str(schema.returns[0].type) != "Tensor":
            return OTHER
        first = schema.arguments[0].alias_info if schema.arguments else None
        result = schema.returns[0].alias_info
        returns_first = first and result and first.is_write and first.before_set == result.before_set
        return FIRST_ARGUMENT if returns_first and not self.creates_from_host else ONE


operators: Final[dict[int, OperatorInfo]] = {}
"""By the id of the OpOverload. Grows with the operators that the process has used."""
by_id: Final[list[OperatorInfo]] = []
_by_name: Final[dict[str, OperatorInfo]] = {}


def learn_operator(func: Any) -> OperatorInfo:
    operator = operators[id(func)] = _new_operator(func)
    return operator


def operator_by_name(name: str, kind: int = COMPUTE) -> OperatorInfo:
    """Return an entry for a function that is no operator but gets a row all the same."""
    if name not in _by_name:
        _by_name[name] = _new_operator(name)
        _by_name[name].kind = kind
    return _by_name[name]


def _new_operator(func: Any) -> OperatorInfo:
    by_id.append(OperatorInfo(func, len(by_id)))
    return by_id[-1]


_BOOLEAN = (torch.bool, torch.uint8)


def mask_among(args: tuple[Any, ...], *, lists_are_on_device: bool = False) -> bool:
    """Return whether an indexing op is given a mask: the host must wait until the device has counted its True.

    `lists_are_on_device`: a list among the indexes was copied to the device, and so is a mask there that was a list.
    """
    indices = args[1] if len(args) > 1 else ()
    masks = [index for index in indices if is_tensor(index) and dtype_of(index) in _BOOLEAN]
    if not masks or (not lists_are_on_device and device_of(masks[0]).type != device_of(args[0]).type):
        return False  # one on the CPU is counted there
    return not (len(masks) == 1 and _runs_masked_fill(args, indices))


def _runs_masked_fill(args: tuple[Any, ...], indices: Any) -> bool:
    """Return whether an op is like `x[mask] = 0.5`, for which torch runs masked_fill_: then nothing is counted.

    See canDispatchToMaskedFill in torch's TensorAdvancedIndexingUtils.h.
    """
    index_count = sum(index is not None for index in indices)
    value = args[2] if len(args) > 2 else None
    accumulates = len(args) > 3 and args[3]
    is_number = is_tensor(value) and prod(shape_of(value)) == 1 and device_of(value).type == "cpu"
    return index_count == 1 and is_number and not accumulates
