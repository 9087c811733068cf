"""Whether an edit still holds in the next round of a loop: its variable may get another value there.

token = torch.zeros(n, device=x.device)      # the edit
for t in range(length):
    h = self.cell(self.embed(token), h)      # failed here
    token = teacher[:, t]                    # on the CPU: it would fail here again
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from devtrace.diagnosis.edits import Edited
from devtrace.diagnosis.evidence import access_paths
from devtrace.diagnosis.evidence.case import Case
from devtrace.diagnosis.evidence.frame_code import FailingFrame, first_parameter
from devtrace.diagnosis.findings import Edit
from devtrace.source.flow import binds
from devtrace.source.matching import names_in
from devtrace.source.object_walk import is_tensor
from devtrace.source.safe_values import values

DEEPEST: Final = 4


def lasts(case: Case, edit: Edit) -> bool:
    """Return whether no loop around an error gives what the edit assigns a value that may be elsewhere."""
    for frame in (each for each in FailingFrame.all_of(case.snapshot, case.expected_device) if each.has(edit)):
        names = _assigned_by(frame, edit) & names_in(frame.expression)
        for loop in _loops_below(frame, edit) if names else ():
            round = [each for each in frame.statements() if loop in frame.source.ancestors(each) and each is not loop]
            if not all(_Round(case, frame, names, round).is_known(name) for name in names):
                return False
    return True


def _assigned_by(frame: FailingFrame, edit: Edit) -> set[str]:
    """Return the variables of the frame to which the lines of an edit give a value."""
    edited, own = Edited.of(frame.source, edit), getattr(frame.function, "name", None)
    new = edited.statements() if edited is not None else ()
    given = (each for each in new if edited is not None and getattr(edited.source.function(each), "name", None) == own)
    return {name for each in given if isinstance(each, ast.Assign) for name in binds(each)}


def _loops_below(frame: FailingFrame, edit: Edit) -> Iterator[ast.stmt]:
    """Yield the loops around what the frame runs that an edit stands above."""
    for outer in frame.source.ancestors(frame.source_node.statement):
        if isinstance(outer, ast.For | ast.While) and frame.source.span(outer).line > edit.line:
            yield outer


@dataclass(frozen=True)
class _Round:
    """Statements of a loop, and the variables that the edit has put on the expected device."""

    case: Case
    frame: FailingFrame
    names: set[str]
    statements: list[ast.stmt]

    def is_known(self, name: str, depth: int = DEEPEST) -> bool:
        """Return whether all that the round binds a name to is computed on the expected device."""
        binding = [each for each in self.statements if name in binds(each)]
        return depth > 0 and all(self._is_computed_there(each, depth) for each in binding)

    def _is_computed_there(self, statement: ast.stmt, depth: int) -> bool:
        """Return whether a statement takes something from the expected device, and nothing from elsewhere."""
        if not isinstance(statement, ast.Assign):
            return isinstance(statement, ast.AugAssign)
        found = values(statement.value, self.frame.source, self.frame.scope())
        devices = {self._device(each.value) for each in found if each.text not in self.names} - {""}
        valued = {each.text.partition(".")[0] for each in found}
        for name in names_in(statement.value) - valued - self.names:  # it has no value yet in this round
            if any(name in binds(each) for each in self.statements):
                devices.add(self.case.expected_device if self.is_known(name, depth - 1) else "")
        return devices == {self.case.expected_device}

    def _device(self, value: object) -> str:
        """Return the device of a tensor or of a module's first parameter; empty for anything else."""
        tensor = first_parameter(value) if access_paths.is_module(value) else value
        row = self.case.snapshot.row(tensor) if is_tensor(tensor) else None
        return self.case.queries.trait(row) if row is not None and self.case.queries.dims[row] > 0 else ""
