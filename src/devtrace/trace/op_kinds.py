"""Sorts operators into the kinds of `OP_KINDS`, by name and by what its schema says."""

from typing import Final

COPIES: Final = frozenset({
    "_to_copy", "copy_", "copy", "clone", "_pin_memory", "pin_memory", "_foreach_copy_", "_foreach_copy", "to",
    "contiguous", "cpu", "cuda", "lift_fresh_copy", "_copy_from", "_copy_from_and_resize",
})  # fmt: skip
CARRIERS: Final = COPIES - {"clone", "contiguous", "lift_fresh_copy"}
"""Copies that may carry data to another device."""
SYNCS: Final = frozenset({
    "_local_scalar_dense", "item", "equal", "is_nonzero", "nonzero", "nonzero_numpy", "argwhere", "masked_select",
    "_unique", "_unique2", "unique_dim", "unique_consecutive", "unique_dim_consecutive", "allclose", "bincount",
    "tolist", "_nested_tensor_size",
})  # fmt: skip
_CREATES: Final = frozenset({"lift_fresh", "set_", "scalar_tensor"})
_VIEWS: Final = frozenset({"reshape", "flatten", "lift", "_unsafe_view", "_reshape_alias"})

# By the beginning of their names in a trace.
INDEXING: Final = (
    "aten.index.",
    "aten.index_put",
    "aten._index_put",
    "aten._unsafe_index",
    "aten._unsafe_masked_index",
)
RECURRENT: Final = ("gru", "lstm", "rnn_relu", "rnn_tanh")
"""Calls that take a packed sequence: the sizes of its batches are whole numbers and stay on the CPU."""
INDEXED: Final = ("aten.index.", "aten.index_select", "aten.embedding", "aten.gather", "aten.take")
"""Ops whose result is a part of their first input, wherever the indexes are."""


def kind_of(name: str, *, is_view: bool, is_factory: bool) -> str:
    """Return the kind of an operator (`add`, without namespace and overload).

    Args:
        is_view: its schema says that the result shares an argument's data.
        is_factory: it returns a tensor and takes none.
    """
    if name in SYNCS:
        return "sync"
    if name in COPIES:
        return "copy"
    if is_factory or name in _CREATES or name.endswith("_like") or name.startswith("new_"):
        return "create"
    return "view" if is_view or name in _VIEWS else "compute"
