"""Layers that compute on the CPU while other layers are on a device."""

import numpy as np

from devtrace.diagnosis.evidence.trace_queries import Mask, Rows, TraceQueries


def computes(queries: TraceQueries) -> bool:
    """Return whether a layer computed on the CPU alone, or an op on a device took a CPU result of the same model."""
    _, on_cpu_alone = _ops_of_layers(queries)
    return len(on_cpu_alone) > 0 or _is_mixed(queries)


def _ops_of_layers(queries: TraceQueries) -> tuple[bool, Rows]:
    """Return whether any layer computed on a device, and the ops of the layers that computed on the CPU alone."""
    of_layers = _reads_a_parameter(queries) & queries.is_kind("compute") & (queries.trace.ops.ints("call") >= 0)
    on_device = np.flatnonzero(of_layers & queries.on_a_device)
    on_cpu = np.flatnonzero(of_layers & (queries.trace.ops.ints("device") == queries.host))
    modules = queries.module_of_ops
    return bool(len(on_device)), on_cpu[~np.isin(modules[on_cpu], modules[on_device])]


def _is_mixed(queries: TraceQueries) -> bool:
    """Return whether a device's op took a CPU result of the same model without a copy, as an index or mask."""
    compute, outermost = queries.is_kind("compute"), queries.outermost_calls
    inputs = queries.trace.ops.lists("inputs")
    users, tensors = inputs.rows, queries.bases[inputs.flat]
    fits = (compute & queries.on_a_device & (outermost >= 0))[users] & (queries.dims[tensors] > 0)
    producers, device_ops = queries.producers[tensors[fits]], users[fits]
    on_cpu = np.append(compute & (queries.trace.ops.ints("device") == queries.host), False)[producers]  # -1: of no op
    return bool((on_cpu & (outermost[producers] == outermost[device_ops])).any())


def left_behind(queries: TraceQueries) -> Rows:
    """Return CPU ops of layers that compute on no device, of models with other layers on one in the same call."""
    is_any_on_device, on_cpu_alone = _ops_of_layers(queries)
    candidates = on_cpu_alone if is_any_on_device else on_cpu_alone[:0]
    modules, outermost = queries.module_of_ops, queries.outermost_calls
    on_device = (modules >= 0) & queries.on_a_device
    of_candidates = np.isin(modules, modules[candidates]) & ~on_device
    in_a_mixed_call = of_candidates & np.isin(outermost, outermost[on_device])
    return candidates[np.isin(modules[candidates], modules[in_a_mixed_call])]


def _reads_a_parameter(queries: TraceQueries) -> Mask:
    """Return the ops, of the forward and of the backward pass, that have a parameter or a view of one as an input."""
    inputs = queries.trace.ops.lists("inputs")
    has_role = queries.trace.tensors.ints("role") == queries.strings.get("parameter", -1)
    sources, producers = queries.trace.tensors.ints("source"), queries.trace.tensors.ints("producer")
    moved = (sources >= 0) & (producers >= 0)  # of a model that is gone what a move made has no role
    moved[moved] = has_role[sources[moved]] & (queries.trace.ops.ints("call")[producers[moved]] < 0)
    parameters = (has_role | moved) & (queries.dims > 0)
    return inputs.have(parameters[queries.bases[inputs.flat]])
