"""How each operator is answered: its result is tagged with the device that owns it, and the rules are asked of a mix.

One handler per operator, chosen at the operator's first call by its schema and found by the operator's id. Most
operators need one read of a storage tag per tensor and, for a new tensor, one write. Everything else (mixed devices,
lists of lists, odd layouts) leaves the hot path.
"""

import sys
from collections.abc import Callable, Iterable
from typing import Any

import torch

from devtrace.runtime.mode_stack import BesideCompile
from devtrace.simulation import generators, gradients, process_groups, rules, upcast_ops
from devtrace.simulation.cuda_features import special
from devtrace.simulation.cuda_features.scripts import running
from devtrace.simulation.devices import CPU, DEVICES, SimulatedDevice
from devtrace.simulation.refusals import with_refusals, with_reports
from devtrace.simulation.storage_tags import FLOATING, HOST, anchor_all, claim, claim_all, tag_of, tensors_in

Func = torch._ops.OpOverload
Handler = Callable[["OpMode", Func, tuple[Any, ...], dict[str, Any]], Any]

handlers: dict[int, Handler] = {}
_alive: list[object] = []
_Tensor, _STRIDED = torch.Tensor, torch.strided
_CPU = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
_CUDA = torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA)
_BELOW_MODES = torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.Python)


class OpMode(BesideCompile):
    """Keeps what handlers ask of a thread: `last` is the device that it used last.

    `makes_on` is the device of the first tensor of the operator whose parts are being asked.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.last = HOST
        self.makes_on: SimulatedDevice | None = None


def make_handler(func: Any) -> Handler:
    """Choose the handler of an operator by its schema."""
    _alive.append(func)  # else another operator might get its id
    handler: Handler = higher_order
    if isinstance(func, Func):
        handler = with_reports(func, with_refusals(func, _choose(func)))
        if torch.Tag.nondeterministic_seeded in func.tags:
            handler = seeded(handler)
    handlers[id(func)] = handler
    return handler


def _choose(func: Func) -> Handler:
    name = func._schema.name
    if name in SPECIAL:
        return SPECIAL[name]
    if func.namespace not in ("aten", "prim", "prims") or name.startswith("prims::fft"):
        return foreign
    if rules.is_made_of_others(func):
        return composite
    arguments, returns = func._schema.arguments, func._schema.returns
    tensor_args = [a for a in arguments if "Tensor" in str(a.type)]
    if any(a.name == "device" and a.kwarg_only for a in arguments):
        return factory
    returns_only_aliases = all(r.alias_info is not None for r in returns)
    if returns_only_aliases and tensor_args == arguments[:1] and str(tensor_args[0].type) == "Tensor":
        return plain
    if [str(r.type) for r in returns] == ["Tensor"] and not any(a.kwarg_only for a in tensor_args):
        return one_result
    return any_results


def foreign(mode: OpMode, func: Func, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an op of another library with the mode on, so that each op that its kernel calls is answered too."""
    process_groups.check(func, (*args, *kwargs.values()))
    owner = common_owner((*args, *kwargs.values()))
    on_device = owner is not None and owner is not HOST and owner is not FLOATING
    kernels = _CUDA if on_device and _runs_python_on_cuda(func) else _kernels_for((*args, *kwargs.values()))
    with mode:
        out = func.redispatch(kernels, *args, **kwargs)
    if owner is not None and owner is not HOST and owner is not MIXED:
        anchor_all(out, owner)
    return out


def _kernels_for(values: Iterable[Any]) -> Any:
    """Return the kernels that eager torch would choose from: quantized and sparse tensors have their own."""
    keys = _CPU
    for tensor in tensors_in(values):
        keys |= torch._C._dispatch_keys(tensor) & _BELOW_MODES
    return keys


def _runs_python_on_cuda(func: Any) -> bool:
    """Return whether Python code was registered as the operator's kernel for CUDA. Triton's needs a real device."""
    overload = "" if func._overloadname == "default" else f".{func._overloadname}"
    if f"{func.namespace}/{func._opname}{overload}/CUDA" not in torch.library._impls:
        return False
    return "triton" not in sys.modules or not torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CPU")


def higher_order(mode: OpMode, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an op that takes functions (flex_attention): its results are on the first device of its tensors."""
    out = func(*args, **kwargs)
    owners = (tag_of(tensor).owner for tensor in tensors_in((*args, *kwargs.values())))
    claim_all(out, next((owner for owner in owners if owner is not HOST), HOST))
    return out


def plain(mode: OpMode, func: Func, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A view of one tensor or a change in place: the storage has its tag already, unless it is a sparse tensor's."""
    if args and getattr(args[0], "layout", _STRIDED) is not _STRIDED:  # a number that torch hands over has none
        return special.keeps_owner(mode, func, args, kwargs)
    return func._op(*args, **kwargs)


def one_result(mode: OpMode, func: Func, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an op that returns one tensor, and tag that with the device of its inputs."""
    owner = None
    for value in args:
        if isinstance(value, _Tensor):
            try:  # as tag_of, without the call
                device = value.untyped_storage()._devtrace_tag.owner  # type: ignore[attr-defined]
            except (RuntimeError, ValueError):
                device = tag_of(value).owner
        elif value.__class__ is list:
            device = common_owner(value)
        else:
            continue
        if device is not owner and device is not None:
            if owner is not None or device is MIXED:
                return mixed(mode, func, args, kwargs)
            owner = device
    out = func(*args, **kwargs)
    if owner is not HOST and owner is not None:  # a new storage has the host's tag
        mode.last = owner
        claim(out, owner)
    return out


def any_results(mode: OpMode, func: Func, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an op that takes lists or keyword tensors, or returns several tensors or none, and tag its results."""
    owner = common_owner((*args, *kwargs.values()))
    if owner is MIXED:
        return mixed(mode, func, args, kwargs)
    out = func(*args, **kwargs)
    if owner is not HOST and owner is not None:
        mode.last = owner
        claim_all(out, owner)
    return out


def common_owner(values: Any) -> SimulatedDevice | None:
    """Return the one owner of all tensors among the values, at any depth; None for no tensor, MIXED for several."""
    owner = None
    for value in values:
        if isinstance(value, _Tensor):
            device: SimulatedDevice | None = tag_of(value).owner
        elif isinstance(value, (list, tuple)):
            device = common_owner(value)
        else:
            continue
        if device is not owner and device is not None:
            if owner is not None:
                return MIXED
            owner = device
    return owner


MIXED = SimulatedDevice(None, -3)


def mixed(mode: OpMode, func: Func, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an op on several devices: its rule gives the result's owner or raises; without one its parts are asked."""
    if running.now and func._opname == "equal":
        return False  # constants of a graph, all of which C++ takes for the CPU's
    operands = settle(func, args, kwargs, mode.makes_on)
    owner = operands[0].owner
    if any(arg.tensor.is_meta for arg in operands):
        return _mixed_with_meta(func, args, kwargs, operands)
    check = ""
    if any(arg.owner is not owner for arg in operands):
        check = rules.rule_of(func).check
        if check == "inner":
            return _by_parts(mode, func, args, kwargs, owner)
        owner = rules.judge(func, operands, args)
        for arg in operands:
            if arg.host_scalar and owner is not HOST:
                gradients.keep_gradient_on_host(arg.tensor)
    out = func(*args, **kwargs)
    if check == "pairs" and isinstance(out, (list, tuple)):
        for value, row in zip(out, rules.rows(operands), strict=False):  # each where its own operands are
            claim_all(value, rules.first_device(row))
    elif owner is not HOST and not (DEVICES.are_one and any(result.alias_info for result in func._schema.returns)):
        mode.last = owner
        claim_all(out, owner)
    return out


def _by_parts(mode: OpMode, func: Func, args: tuple[Any, ...], kwargs: dict[str, Any], first: SimulatedDevice) -> Any:
    """Run an op without a rule by the ops that it calls; tensors that it makes go to the device of its first one."""
    before, mode.makes_on = mode.makes_on, first
    try:
        with mode:
            out = func.redispatch(_CPU, *args, **kwargs)
    finally:
        mode.makes_on = before
    anchor_all(out, first)
    return out


def _mixed_with_meta(func: Func, args: tuple[Any, ...], kwargs: dict[str, Any], operands: list[rules.Arg]) -> Any:
    """Let torch answer a mix with `meta` tensors; where its error says `cpu`, name the simulated device."""
    owner = rules.first_device(operands)
    try:
        out = func(*args, **kwargs)
    except RuntimeError as error:
        if any(arg.owner is HOST and not arg.tensor.is_meta for arg in operands):
            raise
        raise type(error)(str(error).replace("device cpu!", f"device {owner.device}!")) from None
    for tensor in tensors_in((out,)):
        if not tensor.is_meta and owner is not HOST:
            claim(tensor, owner)
    return out


def settle(
    func: Func, args: tuple[Any, ...], kwargs: dict[str, Any], makes_on: SimulatedDevice | None = None
) -> list[rules.Arg]:
    """Return the operands, after floating tensors have joined `makes_on` or else the first device among them."""
    operands = rules.arguments(func, args, kwargs)
    if any(arg.owner is FLOATING for arg in operands):
        anchor = makes_on or next((a.owner for a in operands if a.owner is not FLOATING and a.owner is not HOST), HOST)
        anchor_all([arg.tensor for arg in operands], anchor)
        operands = rules.arguments(func, args, kwargs)
    return operands


def seeded(handler: Handler) -> Handler:
    """An operator that draws random numbers: from the generator it is given, or from its device's stream."""

    def draw(mode: OpMode, func: Func, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        device = kwargs.get("device")
        owner = DEVICES.find(device) if device is not None and device.type == "cuda" else common_owner(args)
        is_given = any(isinstance(value, torch.Generator) for value in (*args, *kwargs.values()))
        if is_given and not (func._opname == "randperm" and args[:1] == (0,)):  # of no element, none is asked
            args = tuple(generators.generator_for_cpu(value, owner) for value in args)
            kwargs = {name: generators.generator_for_cpu(value, owner) for name, value in kwargs.items()}
        if is_given or owner is None or owner.generator is None or not owner.generator.has_own_stream:
            return handler(mode, func, args, kwargs)
        with generators.own_stream(owner.generator):
            return handler(mode, func, args, kwargs)

    return draw


def composite(mode: OpMode, func: Func, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An operator made of others, seen whole only in inference mode: its parts follow the rules.

    Nested tensors have kernels of their own for some; their parts take shapes that these tensors do not have.
    """
    if any(tensor.is_nested for tensor in tensors_in((*args, *kwargs.values()))):
        return foreign(mode, func, args, kwargs)
    with mode:
        return func.decompose(*args, **kwargs)


def factory(mode: OpMode, func: Func, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Operators with `device=`: new tensors, and those made like another."""
    device = kwargs.get("device")
    owner = common_owner(args)
    if owner is MIXED:
        owner = rules.judge(func, settle(func, args, kwargs), args)
    if device is not None and device.type == "cuda":
        owner = DEVICES.find(device)
        kwargs = {**kwargs, "device": CPU}
    elif device is not None and (device.type != "cpu" or "pin_memory" in kwargs):
        owner = HOST  # Python's factories always pass pin_memory, C++ (composites, backward) never does
    elif device is not None and owner is None:
        owner = FLOATING  # C++ may mean any device
    if kwargs.get("pin_memory"):
        if owner is not None and owner.device is not None and not DEVICES.are_one:
            raise RuntimeError("Only dense CPU tensors can be pinned")
        return special.pinned(func(*args, **{**kwargs, "pin_memory": False}))
    out = func(*args, **kwargs)
    if owner is not None and owner is not HOST:
        claim_all(out, owner)
        if owner is FLOATING:
            for tensor in tensors_in((out,)):
                tag_of(tensor).hint = mode.last  # shown until it joins another
        else:
            mode.last = owner
    return out


def transform(mode: OpMode, func: Func, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a Fourier transform; refuse the sizes that CUDA refuses in half precision."""
    if upcast_ops.half_transforms.now:
        upcast_ops.check_sizes(func, args)
    return one_result(mode, func, args, kwargs)


def singular_values(mode: OpMode, func: Func, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run `linalg.svd` without the driver of cuSOLVER that a program names: the CPU knows none."""
    has_driver = kwargs.get("driver") in ("gesvd", "gesvdj", "gesvda") and tag_of(args[0]).owner.device is not None
    return any_results(mode, func, args, kwargs | ({"driver": None} if has_driver else {}))


SPECIAL: dict[str, Handler] = {
    **special.BY_NAME,
    **dict.fromkeys(("aten::_fft_r2c", "aten::_fft_c2r", "aten::_fft_c2c"), transform),
    "aten::_linalg_svd": singular_values,
    **dict.fromkeys(("aten::lift_fresh", "aten::detach"), plain),
}
