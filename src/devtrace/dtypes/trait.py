"""The dtype as what tensors are compared by: `torch.float16` in code, and the methods that cast."""

import ast
from typing import Final

from devtrace.diagnosis.evidence.trait import Trait
from devtrace.source.element_types import CASTS, FLOATS_ONLY, GIVES_INDEXES, NORMS, REAL, is_cast, is_floating
from devtrace.source.kinds import dtype_named_by
from devtrace.source.matching import called_name, calls_in, given_trait
from devtrace.source.safe_values import Scope, evaluate
from devtrace.source.vocabulary import JOINS, is_factory
from devtrace.trace.op_kinds import INDEXED


def _names_another_dtype(node: ast.AST, scope: Scope, dtype: str) -> bool:
    call = next(calls_in(node), None)
    if call is None:
        return False
    argument_dtype = dtype_named_by(evaluate(given_trait(call, "dtype") or call, scope))
    return (CASTS.get(called_name(call), "") or argument_dtype) not in ("", dtype)


DTYPE: Final = Trait(
    name="dtype",
    led_by_first=(*INDEXED, *NORMS),
    elsewhere="computed",
    heeds_weights=False,
    takes_twins=True,
    left_alone=frozenset(GIVES_INDEXES),
    past_default=frozenset(),
    all_of=lambda trace: trace.strings,
    methods=lambda devices: frozenset(("to", *CASTS)),
    is_given_by=lambda name: is_factory(name) or name in JOINS or is_cast(name),
    may_be_made_by=lambda factory, dtype: factory not in FLOATS_ONLY or is_floating(dtype),
    goes_through_modules=lambda dtype: is_floating(dtype) and dtype not in REAL,
    is_plain=lambda dtype: True,
    literal=lambda source, dtype: f"{source.known_as('torch') or 'torch'}.{dtype}",
    excludes=_names_another_dtype,
)
