"""Process groups of simulated devices: what a program asks of NCCL is done by gloo, by NCCL's rules.

To C++ a simulated tensor is on the CPU, so a group whose only backend is NCCL has one for the CPU too. `check` then
refuses a tensor that is indeed on the CPU. What `cpu:gloo,cuda:nccl` has for the CPU serves both.
"""

import functools
import os
import socket
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist

from devtrace.runtime.observers import do_last
from devtrace.runtime.patches import Call, Depth, Patches
from devtrace.simulation.devices import DEVICES, SimulatedDevice
from devtrace.simulation.storage_tags import FLOATING, HOST, tag_of, tensors_in
from devtrace.words.catalogue import sentence

PATIENCE: Final = timedelta(minutes=10)
"""NCCL's own default."""
_METHODS: Final = (
    "allreduce", "allreduce_coalesced", "broadcast", "reduce", "allgather", "allgather_coalesced", "gather", "scatter",
    "_allgather_base", "allgather_into_tensor_coalesced", "all_gather_single", "all_gather_single_coalesced",
    "reduce_scatter", "_reduce_scatter_base", "reduce_scatter_tensor_coalesced", "reduce_scatter_single",
    "reduce_scatter_single_coalesced", "alltoall", "alltoall_base", "all_to_all_single",
    "send", "recv", "recv_anysource",
)  # fmt: skip
_NAMES: Final = ("ProcessGroupNCCL", "ProcessGroupNCCL2", "ProcessGroupNCCLLazy")
"""What "nccl" may mean: since torch 2.15 it is the second."""
NAMESPACES: Final = ("c10d", "_c10d_functional")
"""Operators of a process group, and functional ones."""
_OF_ONE_TENSOR: Final = ("_allgather_base", "all_gather_single", "_reduce_scatter_base", "reduce_scatter_single")
_INTO_ONE: Final = ("gather_single", "gather_into_tensor")
"""Since torch 2.14; gloo has only `gather`."""
_OF_DDP: Final = ("_verify_params_across_processes", "_broadcast_coalesced")
"""Collectives of C++ alone, with which DDP begins: what NCCL refuses it refuses there."""
_OF_TWO: Final = ("c10d::send", "c10d::recv_", "c10d::recv_any_source_")


def install(patches: Patches, undo: ExitStack) -> None:
    """Give `torch.distributed` an NCCL."""
    if not dist.is_available():
        return
    c10d = dist.distributed_c10d
    undo.callback(_forget_groups)
    do_last(_wait_for_threads)
    nccl = _nccl_class()
    for module in (dist, c10d, torch._C._distributed_c10d):
        for name in _NAMES:
            patches.set(module, name, nccl)
    for module in (dist, c10d):
        patches.set(module, "is_nccl_available", lambda: True)
    patches.set(c10d, "default_pg_nccl_timeout", PATIENCE)
    group = c10d.ProcessGroup
    patches.wrap(group, "_register_backend", _register_backend)
    patches.set(group, "_device_types", property(functools.partial(_device_types, group._device_types)))
    for owner, names, call in (
        (group, _METHODS, _call_for_program),
        (group, _INTO_ONE, _gather_into_one),
        (dist, _OF_DDP, _check_parameters),
    ):
        for name in filter(functools.partial(hasattr, owner), names):
            patches.wrap(owner, name, call)


class Options:
    """`ProcessGroupNCCL.Options`, none of which gloo needs."""

    def __init__(self, is_high_priority_stream: bool = False) -> None:
        self.is_high_priority_stream = is_high_priority_stream
        self._timeout = PATIENCE


def _wait_for_threads() -> None:
    """End the groups while Python lives: threads of gloo's, which NCCL has not, let go of tensors with Python objects.

    One that asks for Python after its end is ended by it within C++, and the process is aborted.
    """
    if dist.is_initialized():
        dist.destroy_process_group()
    _forget_groups()


def _forget_groups() -> None:
    for registry in (_nccl_only, _members, _backends):
        registry.clear()


def _nccl_class() -> type:
    gloo: Any = dist.distributed_c10d.ProcessGroupGloo

    class ProcessGroupNCCL(gloo):  # type: ignore[misc]
        """Gloo that answers to NCCL's name."""

        uid = 0

        def __init__(self, store: Any, rank: int, size: int, options: Any = None, device: Any = None) -> None:
            super().__init__(store, rank, size, timeout=getattr(options, "_timeout", PATIENCE))
            if rank == 0 and not _members:  # the first group is that of all ranks
                sys.stderr.write(f"devtrace: {sentence('job.gloo')}\n")
            _members.append(_Member(store, rank, size))

        def split(self, store: Any, ranks: list[int], options: Any = None) -> Any:
            """Make a group of some ranks of this one: `new_group` of a group that knows its device."""
            return ProcessGroupNCCL(store, ranks.index(self.rank()), len(ranks), options)

        def _nothing(self, *args: Any) -> None:
            """Do nothing: gloo has no communicators to tell."""

        _add_ephemeral_timeout = _group_start = _group_end = perform_nocolor_split = _nothing

    ProcessGroupNCCL.Options = Options
    return ProcessGroupNCCL


@dataclass
class _Member:
    """This rank in one group on NCCL, and `met_on`, the devices on which the ranks know of each other."""

    store: Any
    rank: int
    size: int
    met_on: set[int] = field(default_factory=set)

    def refuse(self, tensors: Iterable[torch.Tensor], *, all_take_part: bool = True) -> None:
        """Refuse what is on the CPU, and where all ranks take part a device that another rank has."""
        owners = {tag_of(tensor).owner for tensor in tensors if not tensor.is_meta}
        if HOST in owners:
            raise RuntimeError("No backend type associated with device type cpu")
        for owner in owners - {FLOATING} if all_take_part else ():
            self.meet_others(owner)

    def meet_others(self, device: SimulatedDevice) -> None:
        """Tell the other ranks of a device before its first collective; refuse one that another rank has."""
        if device.index in self.met_on:
            return
        round_ = len(self.met_on)
        self.met_on.add(device.index)
        here = f"{socket.gethostname()} {os.environ.get('CUDA_VISIBLE_DEVICES', '')}"
        self.store.set(f"devtrace/{round_}/{self.rank}", f"{device.index} {here}")
        others = [self.store.get(f"devtrace/{round_}/{rank}").decode() for rank in range(self.size)]
        places = [(int(index), host) for index, host in (other.split(" ", 1) for other in others)]
        neighbours = sum(host == here for _, host in places)
        twin = next((r for r, place in enumerate(places) if place == (device.index, here) and r != self.rank), None)
        if twin is not None and neighbours <= len(DEVICES.simulated):  # else some must share one
            raise dist.DistBackendError(
                "NCCL error: invalid usage (run with NCCL_DEBUG=WARN for details)\n"
                "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.\nLast error:\n"
                f"Duplicate GPU detected : rank {self.rank} and rank {twin} both on CUDA device {device.index}"
            )


_members: list[_Member] = []
_nccl_only: WeakKeyDictionary[Any, _Member] = WeakKeyDictionary()
_backends: list[Any] = []
"""Kept until the simulation ends. A thread of gloo's waits for Python to let go of tensors that have Python objects by
now; what ends a backend waits for that thread, and DDP's reducer does so without letting go of Python."""
_calls_of_program = Depth()


def _register_backend(register: Call, group: Any, device: torch.device, kind: Any, backend: Any = None) -> None:
    register(group, device, kind, backend)
    _backends.append(backend)
    if device.type == "cpu":
        _nccl_only.pop(group, None)
    elif kind == type(kind).NCCL and torch.device("cpu") not in group._device_types:
        register(group, torch.device("cpu"), kind, backend)
        _nccl_only[group] = _members[-1]


def _device_types(descriptor: Any, group: Any) -> list[torch.device]:
    return [device for device in descriptor.__get__(group) if device.type != "cpu" or group not in _nccl_only]


def _call_for_program(method: Call, group: Any, *args: Any, **kwargs: Any) -> Any:
    if method.__name__ in _OF_ONE_TENSOR:
        args = (*_flatten(args[0], args[1]), *args[2:])
    with _calls_of_program:
        return method(group, *args, **kwargs)


def _gather_into_one(method: Call, group: Any, out: torch.Tensor, data: torch.Tensor, options: Any = None) -> Any:
    options = options or dist.distributed_c10d.GatherOptions()
    if tag_of(data).owner is HOST and group not in _nccl_only:
        return method(group, out, data, options)
    flat, data = _flatten(out, data)
    parts = [list(flat.chunk(group.size()))] if group.rank() == options.rootRank else []
    return group.gather(parts, [data], options)


def _check_parameters(function: Call, group: Any, tensors: Any, *args: Any, **kwargs: Any) -> Any:
    member = _nccl_only.get(group) if not DEVICES.are_one else None
    if member is not None:
        member.refuse(tensors)
    return function(group, tensors, *args, **kwargs)


def _flatten(out: torch.Tensor, data: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """NCCL counts values; gloo wants the ranks along the first dimension."""
    if out.dim() == data.dim() == 1 or not (out.is_contiguous() and data.is_contiguous()):
        return out, data
    with torch.no_grad(), torch._C._DisableTorchDispatch():
        return out.view(-1), data.view(-1)


def check(func: Any, args: tuple[Any, ...]) -> None:
    """Refuse what NCCL refuses of a program: a tensor of the CPU, and a device that another rank has.

    Below Python, DDP gives a group tensors that C++ made for a device; they are on the CPU here.
    """
    if func.namespace == "c10d":  # whose threads take modes along, which before torch 2.13 want this key for it
        torch._C._dispatch_tls_set_dispatch_key_excluded("PythonTLSSnapshot", False)
    group = _group_of(args) if _nccl_only and func.namespace in NAMESPACES and not DEVICES.are_one else None
    member = _nccl_only.get(group) if group is not None else None
    if member is None:
        return
    member.refuse(tensors_in(args), all_take_part=func._schema.name not in _OF_TWO)


def _group_of(args: tuple[Any, ...]) -> Any:
    """Return the group of an operator that a program asked for; a functional collective names it last."""
    if isinstance(args[-1], str):
        return torch._C._distributed_c10d._resolve_process_group(args[-1])  # type: ignore[arg-type]
    if not _calls_of_program.now:
        return None
    return next((dist.ProcessGroup.unbox(arg) for arg in args if isinstance(arg, torch.ScriptObject)), None)
