"""What tensors are compared by: their device, or what a feature has instead, as `dtypes` does.

Each says what it is called in code, what gives a tensor another one, and how ops hand it on.
"""

import ast
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from devtrace.diagnosis.slugs import Arrival
from devtrace.source.flow import path_of
from devtrace.source.matching import match_code
from devtrace.source.parsing import Source
from devtrace.source.safe_values import Scope
from devtrace.source.vocabulary import HOST, JOINS, is_factory, is_move
from devtrace.trace.op_kinds import INDEXED
from devtrace.trace.tables import TraceData


class Trait(NamedTuple):
    name: str
    """Of the attribute, the argument and the column of a trace's tensors."""
    led_by_first: tuple[str, ...]
    """Ops whose result has that of their first input, whatever the others have."""
    elsewhere: Arrival
    """How a tensor came that has another one than all that it was made of."""
    heeds_weights: bool
    """Whether what a layer computes has that of its weights, rather than of its largest input."""
    past_default: frozenset[str]
    """Functions that heed no default which a program set."""
    all_of: Callable[[TraceData], Sequence[str]]
    """The names that the trace's column has the numbers of."""
    methods: Callable[[Iterable[str]], frozenset[str]]
    """The names of a tensor's methods that give it another one, by the devices of a trace: `to`, `cuda`."""
    is_given_by: Callable[[str], bool]
    """Whether a function may give a tensor with another one than its arguments have."""
    may_be_made_by: Callable[[str, str], bool]
    """Whether a factory takes a value of it as its argument."""
    goes_through_modules: Callable[[str], bool]
    """Whether a module that is moved takes along all that have a value; a cast leaves out whole numbers."""
    is_plain: Callable[[str], bool]
    """Whether tensors have a value that nothing moved, and code can write it out: there is one CPU."""
    literal: Callable[[Source, str], str]
    """How a source writes a value where no variable is named for it: `"cuda"`."""
    excludes: Callable[[ast.expr, Scope, str], bool]
    """Whether a call itself says that its result has another value."""

    def is_word(self, node: ast.expr) -> bool:
        """Return whether code says by itself that it is one: `device`, `self.dev`, `torch.device("cuda")`."""
        last = path_of(node).rpartition(".")[2].lower()
        return self.name[:3] in last or match_code(f"torch.{self.name}(...)", node) is not None


DEVICE: Final = Trait(
    name="device",
    led_by_first=INDEXED,
    elsewhere="copied",
    heeds_weights=True,
    past_default=frozenset(("from_numpy", "frombuffer")),
    all_of=lambda trace: [str(device) for device in trace.devices],
    methods=lambda devices: frozenset(("to", HOST, *(name.partition(":")[0] for name in devices))),
    is_given_by=lambda name: is_factory(name) or name in JOINS or (is_move(name) and name != HOST),
    may_be_made_by=lambda factory, value: True,
    goes_through_modules=lambda value: True,
    is_plain=lambda value: value == HOST,
    literal=lambda source, value: f'"{value.removesuffix(":0")}"',
    excludes=lambda node, scope, value: False,
)
