"""The dtype as what tensors are compared by: `torch.float16` in code, and the methods that cast."""

import ast
from collections.abc import Iterable, Sequence
from typing import ClassVar, Final

from devtrace.diagnosis.evidence.trait import Trait
from devtrace.diagnosis.slugs import Arrival
from devtrace.source.element_types import CASTS, FLOATS_ONLY, NORMS, is_cast, is_floating
from devtrace.source.kinds import dtype_named_by
from devtrace.source.matching import called_name, calls_in, given_trait
from devtrace.source.parsing import Source
from devtrace.source.safe_values import Scope, evaluate
from devtrace.source.vocabulary import JOINS, is_factory
from devtrace.trace.op_kinds import INDEXED
from devtrace.trace.tables import TraceData


class Dtype(Trait):
    name: ClassVar[str] = "dtype"
    led_by_first: ClassVar[tuple[str, ...]] = (*INDEXED, *NORMS)
    elsewhere: ClassVar[Arrival] = "computed"
    heeds_weights: ClassVar[bool] = False
    past_default: ClassVar[frozenset[str]] = frozenset()

    def all_of(self, trace: TraceData) -> Sequence[str]:
        return trace.strings

    def methods(self, devices: Iterable[str]) -> frozenset[str]:
        return frozenset(("to", *CASTS))

    def is_given_by(self, name: str) -> bool:
        return is_factory(name) or name in JOINS or is_cast(name)

    def may_be_made_by(self, factory: str, value: str) -> bool:
        return factory not in FLOATS_ONLY or is_floating(value)

    def goes_through_modules(self, value: str) -> bool:
        return is_floating(value)

    def is_plain(self, value: str) -> bool:
        return True

    def literal(self, source: Source, value: str) -> str:
        """Return `torch.float16` by the name that a source has for torch."""
        return f"{source.known_as('torch') or 'torch'}.{value}"

    def excludes(self, node: ast.expr, scope: Scope, value: str) -> bool:
        call = next(calls_in(node), None)
        if call is None:
            return False
        given = dtype_named_by(evaluate(given_trait(call, "dtype") or call, scope))
        return (CASTS.get(called_name(call), "") or given) not in ("", value)


DTYPE: Final = Dtype()
