"""Devices in TorchScript, whose interpreter asks C++ for them: a call runs a copy of its graph that asks us.

What was compiled stays as it is, to be saved and shown. Annotations from before the simulation name torch's own class.
"""

import functools
import re
from typing import Any, Final

import torch

from devtrace.runtime.patches import Call, Depth, Patches
from devtrace.simulation.storage_tags import HOST, anchor_floating


def _move_new(tensor: torch.Tensor, device: torch.device | None) -> torch.Tensor:
    """Copy to `device` what TorchScript makes of numbers on the CPU; the original, maybe a constant, stays there."""
    anchor_floating(tensor, HOST)
    return tensor if device is None else tensor.to(device)


# What TorchScript asks a tensor, or lets it do, with a device that C++ does not know.
_ANSWERS: Final[dict[str, Call]] = {
    "prim::device": lambda x: x.device,
    "prim::is_cuda": lambda x: x.is_cuda,
    "prim::is_cpu": lambda x: x.is_cpu,
    "aten::get_device": lambda x: x.get_device(),
    "aten::to": lambda x, *where, layout=None, pin_memory=None, **how: x.to(*where, **how),
    "aten::type_as": lambda x, other: x.type_as(other),
    "aten::cuda": lambda x: x.cuda(),
    "aten::cpu": lambda x: x.cpu(),
    "prim::made": _move_new,
}
_FACTORIES: Final = ("aten::tensor", "aten::as_tensor")  # of any type: with our operator after them
_DEVICE: Final = 2  # the place of `device` among their arguments


class _Running(Depth):
    """Counts this thread's scripts; `words` are an operator's last error's, which the interpreter loses."""

    words = ""


running = _Running()


def install(patches: Patches) -> None:
    """Let functions and methods of TorchScript run with our operators, and torch.jit.script read both classes."""
    patches.wrap(torch.jit.annotations, "try_ann_to_type", _read_either_class)
    call = functools.partial(_call_script, torch._C.ScriptFunction.__call__, {})
    for kind in (torch._C.ScriptFunction, torch._C.ScriptMethod):
        patches.wrap(kind, "__call__", call, leaves=True)
    for name in ("_freeze_module", "_jit_pass_optimize_frozen_graph"):
        patches.wrap(torch._C, name, _change_graph)


def _read_either_class(read: Call, annotation: Any, *rest: Any, **more: Any) -> Any:
    return read(torch.device if annotation is torch._C.device else annotation, *rest, **more)


def _change_graph(change: Call, *args: Any, **kwargs: Any) -> Any:
    """Change a graph, which compares constants as a run does, so with `running` on."""
    with running:
        return change(*args, **kwargs)


def _call_script(run: Call, functions: dict[Any, Any], call: Call, self: Any, *args: Any, **kwargs: Any) -> Any:
    """Run a copy of the script that asks us for devices; end an error with the words that the interpreter lost."""
    graph = self.graph
    try:
        with running:
            if graph not in functions:
                functions[graph] = _function_that_asks_us(graph)
            arguments = _arguments_by_position(self.schema, args, kwargs)
            if functions[graph] is None or arguments is None:
                return call(self, *args, **kwargs)
            return run(functions[graph], *([self.owner] if hasattr(self, "owner") else []), *arguments)
    except RuntimeError as error:
        if type(error) is RuntimeError and (message := str(error).rstrip()).endswith("RuntimeError:"):
            error.args = (f"{message} {running.words}\n",)
        raise


def _arguments_by_position(schema: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | None:
    """Return all arguments, as a graph alone knows neither names nor defaults; None where they do not fit."""
    rest = {spec.name: spec for spec in schema.arguments if spec.name != "self"}
    rest = dict(list(rest.items())[len(args) :])
    if kwargs.keys() - rest or any(name not in kwargs and not spec.has_default_value() for name, spec in rest.items()):
        return None
    return [*args, *(kwargs.get(name, spec.default_value) for name, spec in rest.items())]


def _function_that_asks_us(graph: Any) -> Any:
    """Return a function that runs the graph with our operators; None for one that asks for no device."""
    copy = graph.copy()
    torch._C._jit_pass_inline(copy)
    factories = [node for kind in _FACTORIES for node in copy.findAllNodes(kind)]
    nodes = (node for kind in _ANSWERS for node in copy.findAllNodes(kind))
    queries = [node for node in nodes if node.kind() != "aten::to" or re.search("Device|Tensor other", node.schema())]
    for node in queries:
        node.output().replaceAllUsesWith(_insert_operator(copy, node, node.schema(), list(node.inputs())))
        node.destroy()
    for node in factories:
        device, none = list(node.inputs())[_DEVICE], copy.insertConstant(None)
        none.node().moveBefore(node)
        node.replaceInput(_DEVICE, none)
        tensor = _insert_operator(copy, node, "prim::made(Tensor x, Device? device) -> Tensor", [node.output(), device])
        node.output().replaceAllUsesWith(tensor)
        tensor.node().replaceInput(0, node.output())
    return torch._C._create_function_from_graph("forward", copy) if queries or factories else None


def _insert_operator(graph: Any, node: Any, schema: str, inputs: list[Any]) -> Any:
    """Put our operator after one of TorchScript's; return its result."""
    operator = graph.create(_operator(schema), inputs, 1)
    operator.copyMetadata(node)
    operator.output().setType(node.output().type())
    operator.insertAfter(node)
    return operator.output()


@functools.cache
def _library() -> torch.library.Library:
    return torch.library.Library("devtrace", "DEF")


@functools.cache
def _operator(schema: str) -> str:
    """Define our operator for one of TorchScript's, once: torch does not forget one that ran.

    One that says nothing of what it aliases and does is no constant to TorchScript, which compares those.
    """
    name, signature = schema.split("(", 1)
    own_name = name.replace("::", "_").replace(".", "_")
    signature = re.sub(r"Tensor\([^)]*\)", "Tensor", signature).replace("int? dtype", "ScalarType? dtype")
    _library().define(f"{own_name}({signature}", "CONSERVATIVE")
    _library().impl(own_name, _ANSWERS[name.partition(".")[0]], "CompositeImplicitAutograd")
    return f"devtrace::{own_name}"
