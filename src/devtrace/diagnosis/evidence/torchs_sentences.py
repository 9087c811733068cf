"""The sentences that torch itself writes in errors about devices, and of functions that take the CPU's tensors only."""

import ast
import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from devtrace.features import offered
from devtrace.source.matching import called_name, keyword

_DEVICE: Final = r"[a-z]\w*(?::\d+)?\b"
WRAPPED: Final = "Original Traceback (most recent call last):"
"""torch's own words for an error that it hands on from a worker, as text."""
BEFORE_ITS_ERROR: Final = re.compile(rf".*{re.escape(WRAPPED)}.*\b(?=\w*(?:Error|Exception): )")
"""In a message on one line that has the traceback of another process or thread: what comes before the error itself."""
NO_DATA: Final = "Cannot copy out of meta tensor"
_GRADIENT: Final = rf"invalid gradient at index \d+ - expected (?:device )?(?:type )?{_DEVICE} but got"
REFUSALS: Final = {
    "absent": r"invalid device ordinal|^Invalid device id$|not linked with support for (\w+) devices"
    r"|not compiled with (XPU) enabled|Could not run 'aten::.*' with arguments from the '(MPS|XPU)' backend",
    "file": r"Attempting to deserialize object on (?:an? )?(CUDA|MPS|XPU|HPU)\b(?: device)?(?: (\d+))?",
    "forked": r"Cannot re-initialize (\w+) in forked subprocess|(CUDA) error: initialization error",
    "misspelt": r"Invalid device string: '([^'\n]*)'|^Expected one of cpu, .* at start of device string: ([^\n]*)",
    "pinned": "^Only dense CPU tensors can be pinned",
    "mixed": r"got mixed torch\.Tensor and DTensor",
    "duplicate": r"Duplicate GPU detected\s*:\s*rank (\d+) and rank (\d+)",
}
"""What torch says of a device that it refuses; a group is the device that was asked for, or the ranks that did."""
ABOUT_DEVICES: Final = re.compile(
    "|".join((
        "Expected all tensors to be on the same device",
        "found (?:at least )?two (?:different )?devices",
        r"Input type \(\S+\) and \w+ type \(\S+\) should be the same",
        "indices should be either on (?:the )?cpu or on the same device",
        r"can't convert \S+ device type tensor to numpy",
        r"Expected an? '[\w:]+' (?:device type|generator device) .*found '[\w:]+'",
        r"Expected a .{1,40}device.{0,20} for generator",
        "Input and (?:parameter|hidden|cell) tensors are not at the same device",
        "expected self and mask to be on the same device",
        "masked_fill_?: Expected inputs to be on same device",
        "to have the same device type, but got query.device",
        "'lengths' argument should be a 1D CPU int64 tensor",
        r"backend of indices \(.*\) must match backend of values",
        r"device of indices \(.*\) must match device of values",
        _GRADIENT,
        "stft input and window must be on the same device",
        "expected tensor_indices_or_sections to be on cpu",
        "cannot pin '.*' only dense CPU tensors can be pinned",
        "too many CPU scalars to non-CPU kernel",
        r"cuDNN varlen attention expects \w+ to be on",
        r"ProcessGroupNCCL\w* requires CUDA (?:tensors|devices)",
        "module must have its parameters and buffers on device",
        rf"[Tt]ensor on device {_DEVICE} is not on the expected device",
        "assigned grad has data located on a different device",
        "attempting to assign a gradient with device type",
        rf"expected (?:object of )?device (?:type )?'?{_DEVICE}'? but got (?:device (?:type )?)?'?{_DEVICE}",
        r"Pointer argument .* cannot be accessed from Triton",
        NO_DATA,
        *REFUSALS.values(),
        r"\b(?:in|on|have|at|of) (?:the )?same (?:cuda |type of )?devices?\b",
    )),
    re.IGNORECASE | re.MULTILINE,
)  # fmt: skip
_REFUSED_GRADIENT: Final = re.compile(
    r"Function \w+ returned an invalid gradient at index (\d+) - "
    r"expected device (?:type )?(\S+) but got (\S+)"
)


def is_of_another_trait(text: str) -> bool:
    """Return whether torch's sentence is not about the tensors' devices, but, for instance, their dtypes."""
    return any(read(text) is not None for read in offered("error kind").values())


class RefusedGradient(NamedTuple):
    """A gradient that a backward pass got on the wrong device: its position `at`, the devices."""

    at: int
    expected: str
    got: str


def refused_gradient(text: str) -> RefusedGradient | None:
    match = _REFUSED_GRADIENT.search(text)
    return RefusedGradient(int(match[1]), match[2], match[3]) if match is not None else None


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
        """Return the refused argument of a call: `n` of `pack_padded_sequence(x, n)`; None for other functions."""
        name, position = self.argument
        positional = call.args[position] if len(call.args) > position else None
        argument = keyword(call, name) or positional
        return None if isinstance(argument, ast.Starred) or called_name(call) not in self.functions else argument


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
    return next((taker for taker in _CPU_ONLY if taker.refusal.search(text)), None)
