"""Functions that take tensors on the CPU only: torch's error text for each, and the refused argument."""

import ast
import re
from dataclasses import dataclass
from typing import Final

from devtrace.source.matching import called_name, keyword, match_code


@dataclass(frozen=True)
class CpuOnly:
    """Something that takes tensors on the CPU only."""

    refusal: re.Pattern[str]
    """What torch says; its first group, where it has one, is the device that was given."""
    key: str
    """The sentence about it."""
    argument: tuple[str, int] = ("", 0)
    """Keyword and position of the refused argument."""
    functions: tuple[str, ...] = ()
    """Names of the functions that take it."""

    def given_to(self, call: ast.Call) -> ast.expr | None:
        """Return the refused argument in a call of such a function."""
        name, position = self.argument
        positional = call.args[position] if len(call.args) > position else None
        found = keyword(call, name) or positional
        return None if isinstance(found, ast.Starred) or called_name(call) not in self.functions else found


LENGTHS_ON_HOST: Final = "aten._pack_padded_sequence"
"""Op that takes its second tensor on the CPU only."""
PINNING: Final = "aten._pin_memory"
NUMPY: Final = CpuOnly(re.compile(r"convert (\S+) device type tensor to numpy"), "host-conversion.numpy")
PINNED: Final = CpuOnly(re.compile(r"cannot pin '.*' only dense CPU tensors can be pinned"), "host-conversion.pinned")
_CPU_ONLY: Final = (
    NUMPY,
    CpuOnly(
        re.compile(r"'lengths' argument should be a 1D CPU int64 tensor, but got \d+D ((?!cpu)\S+)"),
        "host-conversion.lengths",
        ("lengths", 1),
        ("pack_padded_sequence",),
    ),
    CpuOnly(
        re.compile(r"tensor_split expected tensor_indices_or_sections to be on cpu, but it's on (\S+)"),
        "host-conversion.sections",
        ("tensor_indices_or_sections", 1),
        ("tensor_split",),
    ),
    CpuOnly(
        re.compile(r"RNG state must be a torch\.ByteTensor"),
        "host-conversion.random-state",
        ("new_state", 0),
        ("set_rng_state",),
    ),
    PINNED,
)


def refused(text: str) -> CpuOnly | None:
    """Find the CPU-only function behind an error's text."""
    return next((each for each in _CPU_ONLY if each.refusal.search(text)), None)


def taken_on_host(call: ast.Call) -> ast.expr | None:
    """Return the CPU-only operand of a call: an argument, or the tensor of `x.numpy()`."""
    method = match_code("$x.numpy()", call)
    given = (each.given_to(call) for each in _CPU_ONLY)
    return method["x"] if method is not None else next((each for each in given if each is not None), None)
