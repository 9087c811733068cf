"""What tensors are compared by: their device. A feature compares by something else with a subclass, as `dtypes` does.

Here is what the one and the other are called in code, what gives a tensor another one, and how ops hand it on.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import ClassVar, Final

from devtrace.diagnosis.slugs import Arrival
from devtrace.source.flow import path_of
from devtrace.source.matching import match_code
from devtrace.source.parsing import Source
from devtrace.source.safe_values import Scope
from devtrace.source.vocabulary import HOST, JOINS, is_factory, is_move
from devtrace.trace.op_kinds import INDEXED
from devtrace.trace.tables import TraceData


class Trait:
    """The device of tensors; a subclass is another trait, which answers otherwise."""

    name: ClassVar[str] = "device"
    """Of the attribute, the argument and the column of a trace's tensors."""
    led_by_first: ClassVar[tuple[str, ...]] = INDEXED
    """Ops whose result has that of their first input, whatever the others have."""
    elsewhere: ClassVar[Arrival] = "copied"
    """How a tensor came that has another one than all that it was made of."""
    heeds_weights: ClassVar[bool] = True
    """Whether what a layer computes has that of its weights, rather than of its largest input."""
    past_default: ClassVar[frozenset[str]] = frozenset(("from_numpy", "frombuffer"))
    """Functions that heed no default which a program set."""

    def all_of(self, trace: TraceData) -> Sequence[str]:
        """Return the names that the trace's column has rows of."""
        return [str(device) for device in trace.devices]

    def methods(self, devices: Iterable[str]) -> frozenset[str]:
        """Return the names of a tensor's methods that give it another one: `to`, and one for each kind of device."""
        return frozenset(("to", HOST, *(name.partition(":")[0] for name in devices)))

    def is_given_by(self, name: str) -> bool:
        """Return whether a function may give a tensor with another one than its arguments have."""
        return is_factory(name) or name in JOINS or (is_move(name) and name != HOST)

    def may_be_made_by(self, factory: str, value: str) -> bool:
        """Return whether a factory takes it as an argument."""
        return True

    def goes_through_modules(self, value: str) -> bool:
        """Return whether a module that is moved takes along all that have it; an index, of whole numbers, no cast."""
        return True

    def is_plain(self, value: str) -> bool:
        """Return whether tensors have it that nothing moved, and code can write it out: there is one CPU."""
        return value == HOST

    def literal(self, source: Source, value: str) -> str:
        """Return how a source writes it where no variable is named for it: `"cuda"`."""
        return f'"{value.removesuffix(":0")}"'

    def is_word(self, node: ast.expr) -> bool:
        """Return whether code says by itself that it is one: `device`, `self.dev`, `torch.device("cuda")`."""
        last = path_of(node).rpartition(".")[2].lower()
        return self.name[:3] in last or match_code(f"torch.{self.name}(...)", node) is not None

    def excludes(self, node: ast.expr, scope: Scope, value: str) -> bool:
        """Return whether a call itself says that its result has another one: of devices it may have any."""
        return False


DEVICE: Final = Trait()
