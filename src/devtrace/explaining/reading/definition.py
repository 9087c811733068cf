"""Definitions: expressions that gave a variable, an attribute or an item its value."""

from __future__ import annotations

import ast
from typing import NamedTuple

from devtrace.explaining.reading.activation import Activation
from devtrace.source.flow import Position


class Definition(NamedTuple):
    """An expression that gave something its value, where it ran.

    `is_source`: what it gave came out of it, whatever it is. `is_one_of_many`: others are as likely.
    `is_own_move`: it is `x.to(device)` for x, and reads what x was before. `takes_former`: so does another
    expression, such as `torch.cat([x, row])`. `is_of_repetition`: it is below what
    is read, in a loop of a function, and gave the value only if the loop had come round.
    """

    node: ast.expr
    position: Position
    activation: Activation
    is_source: bool = False
    is_one_of_many: bool = False
    is_own_move: bool = False
    takes_former: bool = False
    is_of_repetition: bool = False
