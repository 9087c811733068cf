"""One run of a function, as far as it can be read: a live frame, or one that has returned; what gave a value there."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from devtrace.explaining.reading.values import Value
from devtrace.recording.columns import sites
from devtrace.source.flow import Position
from devtrace.source.parsing import Source
from devtrace.source.safe_values import Scope

END: Final = 1 << 60
"""A line below all others: a function that has returned ran to its end."""


@dataclass(eq=False)
class Activation:
    """Names are looked up here. `line` is read now; a live frame stands at `now`, or a dead one at its END.

    `scope` has the variables of a live frame, `bound` what a dead one was given. `depth` is the level of the stack in
    whose call it ran. `owner` is the module whose method it is, or whose method called it; `module` the same once it
    has returned. `caller` is the user's line for code of a package.
    """

    source: Source
    body: ast.AST
    line: int
    depth: int
    globals: Mapping[str, Any]
    scope: Scope | None = None
    bound: dict[str, Value | None] = field(default_factory=dict)
    caller: int = sites.NOWHERE
    module: Any = None
    owner: Any = None
    level: int = 0
    now: int = END

    def at(self, line: int) -> Activation:
        """Return the same run, read at another line."""
        return replace(self, line=line, level=self.level + 1)

    def at_node(self, node: ast.AST) -> Activation:
        return self.at(self.source.span(node).line)

    @property
    def is_file(self) -> bool:
        return self.body is self.source.tree

    @property
    def is_theirs(self) -> bool:
        """True for code of the user's or of a package's: not torch's."""
        return sites.files[self.source.file] in (sites.USER, sites.LIBRARY)


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
