"""Traits by which tensors are compared: their device, or what a feature has instead, as `dtypes` does.

A trait says what it is called in code, which calls change it, and how ops hand it on.
"""

import ast
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from devtrace.diagnosis.slugs import Arrival
from devtrace.source.defuse import path_of
from devtrace.source.matching import match_code
from devtrace.source.parsing import Source
from devtrace.source.safe_values import Scope
from devtrace.source.vocabulary import HOST, JOINS, is_factory, is_move
from devtrace.trace.op_kinds import INDEXED
from devtrace.trace.tables import TraceData


class Trait(NamedTuple):
    name: str  # of the attribute, of the argument, and of the column of a trace's tensors
    led_by_first: tuple[str, ...]  # ops whose result has the trait of their first input, whatever the others have
    elsewhere: Arrival  # how a tensor arrived whose trait is none of its sources'
    heeds_weights: bool  # True if a layer's result has the trait of its weights, not of its largest input
    takes_twins: bool  # True if a factory's twins, in the same words, are changed with it: no replay sees them fail
    left_alone: frozenset[str]  # factories that are not changed beside another, as `arange` beside `zeros`
    past_default: frozenset[str]  # functions that heed no default which a program set
    all_of: Callable[[TraceData], Sequence[str]]  # the names behind the numbers in the trace's column
    methods: Callable[[Iterable[str]], frozenset[str]]  # a tensor's methods that change the trait, by a trace's devices
    is_given_by: Callable[[str], bool]  # whether a function's result may have another trait than its arguments
    may_be_made_by: Callable[[str, str], bool]  # whether a factory makes tensors of a value: `randn` none of int64
    goes_through_modules: Callable[[str], bool]  # whether a module's move takes along all tensors with a value
    is_plain: Callable[[str], bool]  # whether tensors have a value without a move, and code can write it out
    literal: Callable[[Source, str], str]  # how a source writes a value that no variable names: `"cuda"`
    excludes: Callable[[ast.AST, Scope, str], bool]  # whether a call itself says that its result has another value

    def is_word(self, node: ast.expr) -> bool:
        """Return whether code is a trait by its name or form: `device`, `self.dev`, `torch.device("cuda")`."""
        last_name = path_of(node).rpartition(".")[2].lower()
        return self.name[:3] in last_name or match_code(f"torch.{self.name}(...)", node) is not None


DEVICE: Final = Trait(
    name="device",
    led_by_first=INDEXED,
    elsewhere="copied",
    heeds_weights=True,
    takes_twins=False,
    left_alone=frozenset(),
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
