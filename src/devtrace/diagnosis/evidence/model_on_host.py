"""Layers that compute on the CPU while other layers are on a device."""

import numpy as np

from devtrace.diagnosis.evidence.trace_queries import Mask, Rows, TraceQueries


def computes(queries: TraceQueries) -> bool:
    """Return whether a layer computed on the CPU alone, or made there what a device took from it within a model."""
    return bool(len(_of_layers(queries)[1])) or _is_mixed(queries)


def _of_layers(queries: TraceQueries) -> tuple[bool, Rows]:
    """Return whether layers computed on a device, and the ops of those that only did on the CPU."""
    reading = _reads_a_parameter(queries) & queries.is_kind("compute") & (queries.trace.ops.ints("call") >= 0)
    there = np.flatnonzero(reading & queries.on_a_device)
    here = np.flatnonzero(reading & (queries.trace.ops.ints("device") == queries.host))
    modules = queries.module_of_ops
    return bool(len(there)), here[~np.isin(modules[here], modules[there])]


def _is_mixed(queries: TraceQueries) -> bool:
    """Return whether a device's op took a CPU result of the same model without a copy, as an index or mask."""
    compute, outermost = queries.is_kind("compute"), queries.outermost_calls
    inputs = queries.trace.ops.lists("inputs")
    users, taken = inputs.rows, queries.bases[inputs.flat]
    fits = (compute & queries.on_a_device & (outermost >= 0))[users] & (queries.dims[taken] > 0)
    makers, users = queries.producers[taken[fits]], users[fits]
    on_host = np.append(compute & (queries.trace.ops.ints("device") == queries.host), False)[makers]
    return bool((on_host & (outermost[makers] == outermost[users])).any())


def left_behind(queries: TraceQueries) -> Rows:
    """Return CPU ops of layers that compute on no device, of models with other layers on one in the same call."""
    is_any_there, here = _of_layers(queries)
    found = here if is_any_there else here[:0]
    modules, outermost = queries.module_of_ops, queries.outermost_calls
    there = (modules >= 0) & queries.on_a_device
    theirs = np.isin(modules, modules[found]) & ~there
    together = theirs & np.isin(outermost, outermost[there])
    return found[np.isin(modules[found], modules[together])]


def _reads_a_parameter(queries: TraceQueries) -> Mask:
    """Return the ops, of the forward and of the backward pass, that have a parameter or a view of one as an input."""
    inputs = queries.trace.ops.lists("inputs")
    roles = queries.trace.tensors.ints("role") == queries.strings.get("parameter", -1)
    source, made = queries.trace.tensors.ints("source"), queries.trace.tensors.ints("producer")
    moved = (source >= 0) & (made >= 0)  # of a model that is gone what a move made has no role
    moved[moved] = roles[source[moved]] & (queries.trace.ops.ints("call")[made[moved]] < 0)
    large = (roles | moved) & (queries.dims > 0)
    return inputs.have(large[queries.bases[inputs.flat]])
