"""CUDA's device rules: which mixes of devices an operator accepts, and torch's own words for the rest.

Used only when an operator's tensors are on several devices. Two tables hold the rules as data. `cuda_rules.tsv` is
derived from torch's own description of its operators. `cuda_rules_by_hand.tsv` is read from the kernels that check
devices by themselves, and wins.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from devtrace.runtime.requirements import release_of
from devtrace.runtime.tables import rows_of
from devtrace.runtime.torch_names import returning, take
from devtrace.simulation.devices import CPU, DEVICES, SimulatedDevice
from devtrace.simulation.storage_tags import HOST, given_to, tag_of, type_name


class Arg(NamedTuple):
    """One tensor argument of a call; `listed` is the number of the list that it came in, to pair lists by element.

    `keyword` says that it cannot be given by position.
    """

    name: str
    tensor: torch.Tensor
    owner: SimulatedDevice
    written: bool
    listed: int
    keyword: bool = False

    @property
    def device(self) -> torch.device:
        return self.owner.device or CPU

    @property
    def host_scalar(self) -> bool:
        return self.owner is HOST and self.tensor.dim() == 0


class Rule(NamedTuple):
    check: str
    detail: str


_DERIVED = "cuda_rules.tsv"


@functools.cache
def table() -> dict[str, Rule]:
    """Operator with overload -> its rule."""
    rules = {}
    for name in (_DERIVED, "cuda_rules_by_hand.tsv"):
        for row in rows_of(f"simulation/{name}"):
            op, check, detail, before = [*row, "", "", ""][:4]
            if name != _DERIVED or not before or release_of(torch.__version__) < release_of(before):
                rules[op] = Rule(check, detail)
    return rules


def rule_of(func: torch._ops.OpOverload) -> Rule:
    """Return the rule of an operator; one that is not torch's own may mix what it likes."""
    if func.namespace != "aten":
        return Rule("none", "")
    name, overload = func._schema.name.partition("::")[2], func._schema.overload_name
    return table().get(f"{name}.{overload}" if overload else name, Rule("inner", ""))


def arguments(func: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Arg]:
    """List tensor arguments in the order in which CUDA's wrappers compare them: those of `out=`, then by position."""
    result: list[Arg] = []
    for place, (spec, value) in enumerate(given_to(func, args, kwargs)):
        written = spec.alias_info is not None and spec.alias_info.is_write
        if isinstance(value, torch.Tensor):
            result.append(Arg(spec.name, value, tag_of(value).owner, written, -1, spec.kwarg_only))
        elif isinstance(value, (list, tuple)):
            result += [Arg(spec.name, v, tag_of(v).owner, written, place) for v in value if isinstance(v, torch.Tensor)]
    return sorted(result, key=lambda arg: not (arg.written and arg.name in kwargs))


def rule_of_call(func: torch._ops.OpOverload, operands: list[Arg], args: tuple[Any, ...]) -> Rule:
    """Return the rule of an operator, or that of the kernel which these arguments choose."""
    rule = rule_of(func)
    if rule.check == "convolution":
        return table().get(_native_kernel(args, on_host=operands[0].owner is HOST), rule)
    if rule.check == "index" and args[3:] and args[3]:
        return Rule("index", "accumulate")
    return rule


def judge(func: torch._ops.OpOverload, operands: list[Arg], args: tuple[Any, ...]) -> SimulatedDevice:
    """Return the owner of the result of a legal mix; raise what CUDA raises for an illegal one."""
    rule = rule_of_call(func, operands, args)
    if not DEVICES.are_one:
        CHECKS[rule.check](func, rule, operands)
    return operands[0].owner if rule.check == "leading" else first_device(operands)


def first_device(operands: list[Arg]) -> SimulatedDevice:
    """Return the device that a mixed call runs on: the first simulated one among its tensors."""
    return next((arg.owner for arg in operands if arg.owner is not HOST), HOST)


def exact(func: torch._ops.OpOverload, rule: Rule, operands: list[Arg]) -> None:
    """Compare as torchgen writes it into a CUDA kernel's wrapper.

    The rule's detail names that wrapper, then arguments that have other names there: `attn_mask=attn_bias`. Words
    after a colon are the kernel's own, for arguments that a call must name: the wrapper leaves those out.
    """
    first = operands[0]
    names, _, words = rule.detail.partition(": ")
    wrapper, *renames = names.split()
    renamed = dict(rename.split("=") for rename in renames)
    for arg in operands:
        if arg.owner is not first.owner and (arg.written or not arg.keyword or arg.name in renamed):
            name = renamed.get(arg.name, arg.name)
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but got {name} is on {arg.device}, different from "
                f"other tensors on {first.device} (when checking argument in method {wrapper})"
            )
    other = next((arg for arg in operands if arg.owner is not first.owner), None)
    if words and other:
        raise RuntimeError(words.format_map({"name": other.name, **{arg.name: arg.device for arg in operands}}))


def output(func: torch._ops.OpOverload, rule: Rule, operands: list[Arg]) -> None:
    """Compare as a structured kernel does with the tensors of `out=` before it changes their shapes."""
    source = next(arg for arg in operands if not arg.written)
    for arg in operands:
        if arg.owner is not source.owner:
            raise RuntimeError(f"Expected out tensor to have device {source.device}, but got {arg.device} instead")


def iterator(func: torch._ops.OpOverload, rule: Rule, operands: list[Arg]) -> None:
    """Compare as TensorIterator does. One 0-dimensional host tensor counts as a number, as any argument.

    The rule's detail may change that. `any`: several may; `weight: words`: only the weight, else `words`; `:` none.
    Words for the first argument and for others are parted by a bar.
    `restrided:` none either, and the kernel changes shapes before they are compared.
    """
    common = first_device(operands)
    if common is HOST:
        return
    scalar_name, colon, words = rule.detail.partition(":")
    scalars = 0
    for arg in operands:
        if arg.host_scalar and not arg.written and (not colon or arg.name == scalar_name):
            scalars += 1
            if scalars > 1 and rule.detail != "any":
                raise RuntimeError("Trying to pass too many CPU scalars to non-CPU kernel!")
        elif arg.owner is not common:
            if scalar_name != "restrided":
                _compare_shapes(operands)
                _compare_dtypes(func, operands, common)
            if arg.host_scalar and words:
                place = operands.index(arg)
                template = words.strip().split(" | ")[-1 if place else 0]
                devices = {operand.name: operand.device for operand in operands}
                raise RuntimeError(template.format_map({**devices, "name": arg.name, "at": place + 1}))
            raise two_devices(common.device or CPU, arg.device)


def _compare_shapes(operands: list[Arg]) -> None:
    """Raise for shapes that do not fit each other, which TensorIterator looks at before devices."""
    whole = functools.reduce(_BROADCAST, (arg.tensor.shape for arg in operands if not _only_written(arg)))
    for arg in operands:
        if arg.written and not _only_written(arg) and arg.tensor.shape != whole:
            shapes = list(arg.tensor.shape), list(whole)
            raise RuntimeError("output with shape {} doesn't match the broadcast shape {}".format(*shapes))


def _compare_dtypes(func: torch._ops.OpOverload, operands: list[Arg], common: SimulatedDevice) -> None:
    """Raise torch's words for a result that does not fit where it goes, at which TensorIterator looks first.

    Asks the operator itself, with tensors without elements; for a list, the operator of its elements.
    """
    if not operands[0].written or operands[0].owner is not common:
        return
    operator = getattr(torch.ops.aten, func._schema.name.partition("::")[2].removeprefix("_foreach_"))
    first, *rest = (arg.tensor.new_empty((0,) * arg.tensor.dim()) for arg in operands)
    try:
        operator(*rest, out=first) if _only_written(operands[0]) else operator(first, *rest)
    except (RuntimeError, TypeError) as error:
        if str(error).startswith("result type "):
            raise type(error)(str(error)) from None


def _only_written(arg: Arg) -> bool:
    return arg.written and arg.name != "self"


def two_devices(one: torch.device, other: torch.device) -> RuntimeError:
    return RuntimeError(
        f"Expected all tensors to be on the same device, but found at least two devices, {one} and {other}!"
    )


def index(func: torch._ops.OpOverload, rule: Rule, operands: list[Arg]) -> None:
    """Values follow TensorIterator. Indices may be on the host; others must be on the device of the indexed tensor."""
    first = operands[0]
    for arg in operands:
        if arg.name != "indices" and arg.owner is not first.owner and not (arg.host_scalar and arg.name == "values"):
            if rule.detail == "accumulate" and first.owner is not HOST:
                raise RuntimeError(f"expected device {first.device} but got device {arg.device} for value tensor")
            common = first_device([first, arg])
            raise two_devices(common.device or CPU, first.device if common is arg.owner else arg.device)
    for arg in operands:
        if arg.name == "indices" and arg.owner is not HOST and arg.owner is not first.owner:
            raise RuntimeError(
                f"indices should be either on cpu or on the same device as the indexed tensor ({first.device})"
            )


def pairs(func: torch._ops.OpOverload, rule: Rule, operands: list[Arg]) -> None:
    """Compare lists row by row, first elements with first elements ..., each row as TensorIterator does."""
    for row in rows(operands):
        iterator(func, rule, row)


def rows(operands: list[Arg]) -> list[list[Arg]]:
    """Group the first elements of all lists, then the second ..., each with the arguments that are no lists."""
    lists: dict[int, list[Arg]] = {}
    for arg in operands:
        lists.setdefault(arg.listed, []).append(arg)
    single = lists.pop(-1, [])
    return [[*row, *single] for row in zip(*lists.values(), strict=False)]


def same(func: torch._ops.OpOverload, rule: Rule, operands: list[Arg]) -> None:
    """Compare, and raise the rule's own sentence, in which {name} is the device of the argument of that name."""
    first = operands[0]
    if any(arg.owner is not first.owner for arg in operands):
        devices = {arg.name: arg.device for arg in operands}
        raise RuntimeError(rule.detail.format_map(devices))


def masked_fill(func: torch._ops.OpOverload, rule: Rule, operands: list[Arg]) -> None:
    """Value may be on the host; the mask must be on the tensor's device."""
    if operands[0].owner is HOST:
        raise RuntimeError("masked_fill_: Expected inputs to be on same device")
    same(func, rule, operands[:2])


def convolution(func: torch._ops.OpOverload, rule: Rule, operands: list[Arg]) -> None:
    """Refuse host beside device by tensor types, as torch does; then two devices, as cuDNN's wrapper does."""
    inputs = operands[0]
    for arg in operands[1:]:
        if (arg.owner is HOST) != (inputs.owner is HOST):
            tail = " or input should be a MKLDNN tensor and weight is a dense tensor" if inputs.owner is HOST else ""
            tail = tail if arg.name == "weight" else ""
            raise RuntimeError(
                f"Input type ({type_name(inputs.tensor)}) and {arg.name} type ({type_name(arg.tensor)}) "
                f"should be the same{tail}"
            )
    exact(func, rule, operands)


def sparse(func: torch._ops.OpOverload, rule: Rule, operands: list[Arg]) -> None:
    """Refuse indices and values of a new sparse tensor that are on different devices: C++ moves neither."""
    indices, values = operands[0], operands[1]
    if values.owner is not HOST:  # CUDA's wrapper compares, the CPU's has none
        exact(func, rule, operands)
    if (indices.owner is HOST) != (values.owner is HOST):
        backends = ["CPU" if arg.owner is HOST else "CUDA" for arg in (indices, values)]
        raise RuntimeError(f"backend of indices ({backends[0]}) must match backend of values ({backends[1]})")
    if indices.owner is not values.owner:
        raise RuntimeError(
            f"device of indices ({indices.owner.index}) must match device of values ({values.owner.index})"
        )


def _native_kernel(args: tuple[Any, ...], on_host: bool) -> str:
    """Return the name of torch's own kernel for a convolution, or "" where it takes MKLDNN's or cuDNN's.

    Those compare types. Which it is depends on sizes, dtype and, on the host, on the number of threads.
    """
    if on_host:
        return _NATIVE_CONVOLUTIONS.get(getattr(_SELECT_KERNEL(*args), "name", ""), "")
    data, weight, _, stride, _, _, transposed, output_padding, groups = args
    dimensions, channels = max(2, data.dim() - 2), data.shape[1]
    if transposed:
        pads_too_much = any(pad >= step for pad, step in zip(output_padding, stride, strict=False))
        return f"slow_conv_transpose{dimensions}d" if pads_too_much else ""
    is_depthwise = 1 < groups == channels and weight.shape[0] % channels == 0 and data.dtype is not torch.half
    return {2: "_conv_depthwise2d", 3: "conv_depthwise3d"}.get(dimensions, "") if is_depthwise else ""


_BROADCAST = take("_C._infer_size", "checks", instead=lambda one, other: one)
_SELECT_KERNEL = take("_C._select_conv_backend", "checks", instead=lambda *args: None)
_NATIVE_CONVOLUTIONS = {
    "Slow2d": "_slow_conv2d_forward",
    "SlowDilated2d": "slow_conv_dilated2d",
    "SlowDilated3d": "slow_conv_dilated3d",
    "SlowTranspose2d": "slow_conv_transpose2d",
    "SlowTranspose3d": "slow_conv_transpose3d",
}

CHECKS: dict[str, Callable[[torch._ops.OpOverload, Rule, list[Arg]], None]] = {
    **{
        check.__name__: check
        for check in (exact, iterator, output, index, pairs, same, convolution, masked_fill, sparse)
    },
    # Copies, views, operators that are not torch's own; and where all joins the `leading` tensor.
    **dict.fromkeys(("none", "inner", "leading"), returning(None)),
}


def is_made_of_others(func: Any) -> bool:
    """Return whether torch runs an operator as others; one with a kernel too (`silu_backward`) computes otherwise."""
    has_kernel = functools.partial(torch._C._dispatch_has_kernel_for_dispatch_key, func.name())
    return has_kernel("CompositeImplicitAutograd") and not has_kernel("CPU")
