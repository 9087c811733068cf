"""What a report says of a mismatch and its causes.

Of each cause: its meaning and what helps (README's table), remarks beside the lines of a report, the reason, and the
advice where no edit fits.
"""

from __future__ import annotations

from typing import Final

SENTENCES: Final[dict[str, str]] = {
    # who is where
    "explained.probably": "Probably, by what the source says: {reason}",
    "mismatch.tensor": "{name:Tensor} is on {odd}; {rest}.",
    "mismatch.tensors": "{name:Tensor} and `{sibling}` are on {odd}; {rest}.",
    "mismatch.computed": "{operand:Tensor} is on {odd} because it was computed from `{name}`; {rest}.",
    "mismatch.inputs": "the other {count:=input|inputs} of this op {count:=is|are} on {expected}",
    "mismatch.module": ("the other {count:=tensor|{count} tensors} of `{module}` {count:=is|are} on {expected}"),
    "mismatch.module-in-part": "{count:other tensor|other tensors} of `{module}` {count:=is|are} on {expected}",
    "mismatch.gradient": "backward needs this gradient on {expected}",
    "mismatch.copy": "this line copies it to {expected}",
    "mismatch.copy-somewhere": "this line copies it",
    # what else there is to say
    "mismatch.asked": "This line asks for {expected}: {line} `{text}`.",
    "mismatch.either": "If you meant {odd}: {line} put the other input on {expected}, `{text}`.",
    "mismatch.replica": (
        "This happened in DataParallel on {expected} ({thread}). All replicas share this tensor: DataParallel copies "
        "registered parameters and buffers only."
    ),
    "mismatch.replica-object": (
        "This happened in DataParallel on {expected} ({thread}). All replicas share this tensor through one `{kind}`: "
        "DataParallel copies registered parameters and buffers only."
    ),
    "mismatch.package": "The line belongs to the package {package}.",
    "mismatch.package-owner": "The line belongs to the package {package}, at work in {owner}: `{owner_text}`.",
    "mismatch.package-entered": "You called it in {caller}: `{text}`.",
    "mismatch.evaluation": "Training did not reach this line; it ran first without gradients, in evaluation.",
    "probably": "probably ",
    # attached-after-move
    "attached-after-move.meaning": "a layer or parameter was put into the model after `model.to()`",
    "attached-after-move.helps": "move again, or move what you attach",
    "attached-after-move.created": "after the move",
    "attached-after-move.missed": "",
    "attached-after-move.reason": "`{module}.to()` {probably}ran before {part} was attached, so it stayed on {odd}.",
    "attached-after-move.this-part": "this part",
    "attached-after-move.advice": "move the model again after this part is attached",
    # not-registered
    "not-registered.meaning": "a plain attribute, list or dict of a module holds it, which `.to()` does not move",
    "not-registered.helps": "`register_buffer`, `nn.ModuleList`, `nn.ParameterDict`",
    "not-registered.created": "not registered",
    "not-registered.missed": "",
    "not-registered.reason": (
        "`{module}.to()` moves registered parameters and buffers only, and `{attribute}` is a plain attribute."
    ),
    "not-registered.reason-container": (
        "`{module}.to()` moves registered parameters and buffers only, and `{attribute}` is a plain {kind}."
    ),
    "not-registered.reason-unnamed": (
        "`{module}.to()` moves registered parameters and buffers only, and this tensor is not registered."
    ),
    "not-registered.advice": "register it as a buffer or a submodule, so that `.to()` moves it",
    # created-without-device
    "created-without-device.meaning": "a factory (`torch.arange`, `torch.zeros`) was called without `device=`",
    "created-without-device.helps": "`device=x.device`",
    "created-without-device.created": "no device=",
    "created-without-device.missed": "ran before",
    "created-without-device.reason": (
        "`{call}` was called without `device=`, so its result is on the default device, {odd}."
    ),
    "created-without-device.reason-unnamed": (
        "A factory was called without `device=`, so its result is on the default device, {odd}."
    ),
    "created-without-device.advice": "create it on the device of the other input: device=x.device",
    # never-moved
    "never-moved.meaning": "made or loaded on the CPU, and nothing moved it",
    "never-moved.helps": "move it where it is made, or keep what `.to()` returns",
    "never-moved.created": "never moved",
    "never-moved.missed": "",
    "never-moved.reason": "Nothing moved it to {expected}.",
    "never-moved.reason-inferred": "Probably nothing moved it to {expected}.",
    "never-moved.reason-module": "Nothing moved `{module}` to {expected}.",
    "never-moved.reason-module-inferred": "Probably nothing moved `{module}` to {expected}.",
    "never-moved.reason-beside": "{line} moved `{neighbour}` to {expected} and left this tensor behind.",
    "never-moved.reason-dropped": (
        "`.to()` returns a moved copy and leaves the tensor itself on {odd}; the program did not keep the copy."
    ),
    "never-moved.reason-numpy": (
        "The default device applies to factories such as `torch.zeros`; this tensor has its memory from numpy."
    ),
    "never-moved.advice": "move it to {expected} once, where it is made",
    # stale-copy
    "stale-copy.meaning": "a copy or cache was taken before the original was moved",
    "stale-copy.helps": "take it after the move",
    "stale-copy.created": "before the move",
    "stale-copy.missed": "",
    "stale-copy.reason": "It was made before the original moved to {expected}, and stayed on {odd}.",
    "stale-copy.reason-itself": "{line} uses a copy of it on {expected}; the tensor itself stayed on {odd}.",
    "stale-copy.advice": "make this copy after the move",
    # wrong-device
    "wrong-device.meaning": "a line asked for this very device",
    "wrong-device.helps": "take the device of the other input",
    "wrong-device.created": "put on this device",
    "wrong-device.missed": "",
    "wrong-device.reason": "A line of the program asks for {odd} instead of taking the device of the other input.",
    "wrong-device.reason-meta": "A tensor on meta has a shape and no data, and nothing gave it any.",
    "wrong-device.reason-gradient": (
        "A line of its function's `backward` asks for {odd}; a gradient belongs on the device of its tensor."
    ),
    "wrong-device.reason-stayed": "It stayed on {odd} while the computation moved to {expected}.",
    "wrong-device.advice": "take the device of the other input: .to(x.device)",
    # host-boundary
    "host-boundary.meaning": "numpy, Python or a file needs the tensor on the CPU",
    "host-boundary.helps": "`.detach().cpu()` first",
    "host-boundary.created": "on the device",
    "host-boundary.missed": "",
    "host-boundary.advice": "copy it to the CPU first: x.cpu().numpy()",
    # generator-device
    "generator-device.meaning": "the generator was made for another device",
    "generator-device.helps": "`torch.Generator(device=...)`",
    "generator-device.created": "on this device",
    "generator-device.missed": "",
    "generator-device.advice": "make the generator on the device of the numbers: torch.Generator(device=...)",
    # default-device
    "default-device.meaning": "a default device is set, and a factory followed it",
    "default-device.helps": "name the device, or take the default back",
    "default-device.created": "on the default device",
    "default-device.missed": "",
    "default-device.reason": "{odd} is set as the default device, and this tensor was made without `device=`.",
    "default-device.advice": "name the device with device=, or leave the default device alone",
    # unknown
    "unknown.meaning": "seen, and not explained",
    "unknown.helps": "the report names the tensor, its creation and its line as far as they are known",
    "unknown.created": "",
    "unknown.missed": "",
    "unknown.advice": "bring the tensors of this line to one device",
}
