"""What rules say of errors and costs, and what a fix does."""

from __future__ import annotations

from typing import Final

SENTENCES: Final[dict[str, str]] = {
    # what each rule means
    "device-mismatch.meaning": "an op got tensors on devices that it cannot combine, and failed",
    "host-conversion.meaning": "numpy, or something else that takes tensors on the CPU only, got one on a device",
    "generator-mismatch.meaning": "a random generator of another device than the tensor",
    "host-sync.meaning": (
        "`.item()`, a condition, a mask, a printed tensor: the CPU waits for the device, again and again"
    ),
    "host-to-device-copy.meaning": "the same tensor, or a few bytes at a time, copied to a device over and over",
    "device-to-host-copy.meaning": (
        "the same tensor, or a few bytes at a time, copied to the CPU over and over, or there and back"
    ),
    "device-to-device-copy.meaning": "copies between devices that repeat",
    "cpu-compute.meaning": "work left on the CPU inside a computation on a device",
    "split-module.meaning": "the parameters of one module are on several devices",
    "idle-optimizer.meaning": (
        "an optimizer's steps never find a gradient: it was built before the model was copied or replaced"
    ),
    "device-comparison.meaning": '`x.device == "cpu"` is never true: a `torch.device` is no string',
    # errors
    "generator-mismatch.message": (
        "`{name}` is a generator on {odd}; the random numbers are made on {expected}. A generator serves "
        "one device only."
    ),
    "generator-mismatch.default": (
        "`{name}` is a generator on {odd}; the random numbers are made on {expected}. A default device is "
        "set, and torch still makes this generator on {odd}."
    ),
    "host-conversion.numpy": "{name:Tensor} is on {device}; numpy reads the memory of the CPU only.",
    "host-conversion.lengths": "{name:Tensor} is on {device}; `pack_padded_sequence` takes lengths on the CPU only.",
    "host-conversion.sections": "{name:Tensor} is on {device}; `tensor_split` takes its indices on the CPU only.",
    "host-conversion.random-state": "{name:Tensor} is on {device}; a random generator takes its state on the CPU only.",
    "host-conversion.pinned": "{name:Tensor} is on {device}; only memory of the CPU can be pinned.",
    "error.in-torchs-words": "{type}: {text}\n{why}",
    "error.not-explained": "devtrace failed to explain it ({fault}).",
    # waits of the CPU
    "host-sync.message": "{what} made the CPU wait for {device} {count:time|times}{often}, {purpose}.",
    "host-sync.code": "`{code}`",
    "host-sync.line": "This line",
    "host-sync.device": "the device",
    "host-sync.devices": "{devices:and}",
    "host-sync.once": ", once in each step",
    "host-sync.each": ", in each step",
    "host-sync.to-read": "to read a value",
    "host-sync.as-asked": "as the line asks for",
    "host-sync.later": "read it every N steps, or once after the loop",
    "host-sync.to-count": "to count the elements that a mask picks",
    "host-sync.to-count.help": "keep the shape: `torch.where(mask, x, 0)` or `x * mask` needs no count",
    "host-sync.to-write": "to write a value",
    "host-sync.to-write.help": "write it every N steps: `if step % 100 == 0`",
    "host-sync.to-add": "to add to a Python number",
    "host-sync.to-add.help": "add `{name}.detach()` and read the sum once, after the loop",
    "host-sync.to-decide": "to decide a branch",
    "host-sync.to-decide.help": (
        "check every N steps, or let `torch._assert_async` or `torch.where` do it on the device"
    ),
    "host-sync.to-keep": "to keep a value",
    "host-sync.to-keep.help": (
        "keep `{name}.detach()` and read them all together after the loop: `torch.stack(kept).tolist()`"
    ),
    "host-sync.to-read.help": "keep `{name}.detach()` and read it after the loop, or every N steps",
    # copies
    "copy.h2d": "{count:copy|copies} to the device ({size:bytes} in total){why}",
    "copy.d2h": "{count:copy|copies} to the CPU ({size:bytes} in total){why}",
    "copy.d2d": "{count:copy|copies} between devices ({size:bytes} in total){why}",
    "copy.why": ": {habit}",
    "copy.pace": "{pace}{remark}",
    "copy.pace-once": ", once in each step",
    "copy.pace-each": ", in each step",
    "copy.nothing": ".",
    "copy.unpinned": "; `non_blocking` has no effect from memory that is not pinned (`DataLoader(pin_memory=True)`).",
    "copy.same": "`{name}` is the same tensor each time.",
    "copy.same-in-steps": "`{name}` is the same tensor each time, in each step.",
    "copy.same-of-several": "they are the same {count} tensors each time, `{name}` among them.",
    "copy.same-in-steps-of-several": "they are the same {count} tensors each time, `{name}` among them, in each step.",
    "copy.move-module": "move `{module}` to the device where it works",
    "copy.move-its-module": "move its module to the device where it works",
    "copy.keep": "keep `{name}` on the device from the start: create it with `device=`",
    "copy.above-loop": "move `{name}` once, above the loop: `{code}`",
    "copy.once": "move `{name}` once, where it is made or above the loop, and use the moved tensor",
    "copy.register": "register it where it is made: `{buffer}`, which `model.to(device)` takes along",
    "copy.keep-attribute": "move `self.{attribute}` once and keep it there",
    "copy.keep-moved": "keep it where it is moved to, above this line: `{code}`",
    "copy.keep-moved-or-register": (
        "keep it where it is moved to, above this line: `{code}`; or register it where it is made: `{buffer}`"
    ),
    "copy.few-bytes": "`{name}` is each time a few bytes.",
    "copy.few-bytes.help": "gather the values first (`torch.stack`, `torch.tensor` of a list) and copy once",
    "copy.in-each-step": "`{name}` is copied in each step, and the CPU waits for it.",
    "copy.in-each-step.help": "keep the tensors (`x.detach()`) and copy them once after the loop, or every N steps",
    "copy.back-computed": "what the CPU computes from `{name}` goes back to the device ({site}).",
    "copy.back-numpy": "what numpy computes from `{name}` goes back to the device ({site}).",
    "copy.back-gradient": (
        "`{name}` is trained: the gradient of what the CPU computes from it goes back to the device ({site})."
    ),
    "copy.back.help": "do this work on the device, or all of it on the CPU",
    "copy.unused": "`{name}` was sent to the device ({site}) and not used there.",
    "copy.unused.help": "leave it on the CPU",
    "copy.number": "`{name}` is a single number, copied in each step.",
    "copy.number.help": (
        "use the number as it is, or make the tensor on the device: `torch.full((), value, device=device)`"
    ),
    "copy.left-to-ddp": (
        "DistributedDataParallel moves them; other inputs are moved by hand ({site}). Without it this fails."
    ),
    "copy.left-to-ddp.help": "move the rest of the batch at {site} too",
    "copy.it": "it",
    # other costs
    "cpu-compute.message": "{count:op|ops} computed on the CPU.",
    "cpu-compute.module": (
        "{count:op|ops} computed on the CPU: `{module}` works there on data that came from a device."
    ),
    "cpu-compute.help": "move `{module}` to the device of its inputs, and leave the inputs where they are",
    "split-module.message": "The parameters and buffers of `{module}` are on {devices:and}.",
    "split-module.help": "move `{module}` as a whole",
    "idle-optimizer.message": (
        "{count:step|steps}, and never a gradient in what this optimizer holds: it changes nothing. It was "
        "probably built before the model was copied, or its parameters replaced."
    ),
    "idle-optimizer.help": (
        "build the optimizer of the model that is trained, after it is moved and its layers are final"
    ),
    "device-comparison.never": "`{code}` is never true: a `torch.device` is not equal to a string.",
    "device-comparison.always": "`{code}` is always true: a `torch.device` is not equal to a string.",
    "device-comparison.type": "compare its type: `{code}`",
    "device-comparison.text": "compare its text: `{code}`",
    # lines of packages
    "package.called": " It is in {package}, called from {caller}{more}: `{text}`.",
    "package.more": " ({count:more line|more lines} likewise)",
    "package.of": " It is in {package}.",
    "package.below": " It is in {package}, {site}: `{text}`.",
    "package.advice": "in {package}: {help}",
    "package.advice-until": (
        "in {package}: {help}. Until it does, run this below the line that moves `{root}`: `{code}`"
    ),
    "package.advice-upstream": "in {package}: {help}; use a release of the package that has it, or report it there",
    # what an edit does
    "fixed.optimizer-state": "build the optimizer after the move, or move its state along",
    "fixed.for-replicas": (
        "run one process per GPU with `DistributedDataParallel`, or use a model that keeps its tensors in "
        "`torch.nn` parameters; DataParallel cannot replicate this one"
    ),
    "fixed.for-meta": (
        "give it data: `load_state_dict(..., assign=True)`, or `to_empty(device=...)` and then the weights"
    ),
    "fixed.for-gradient": "return this gradient on {expected}",
    "fixed.bring-back": "bring it back: `{code}`",
    "fixed.copy-after-move": "move `{line}` below `{move}`",
    "fixed.generator": "make the generator there: `{code}`",
    "fixed.draw": "draw on the generator's device, then move: `{code}`",
    "fixed.give-generator": "give it a generator: `{code}`",
    "fixed.keep-result": "keep what `.to()` returns: `{code}`",
    "fixed.before-use": "move it before it is used: `{code}`",
    "fixed.at-use": "move it where it is used: `{code}`",
    "fixed.before-update": "keep it where its updates are: `{code}`",
    "fixed.below-line": "add `{code}` below line {line:d}",
    "fixed.above-line": "add `{code}` above {site}",
    "fixed.top-of-block": "add `{code}` at the top of the block",
    "fixed.beside": "move it as its neighbours: `{code}`",
    "fixed.in-loop": "move each batch in the loop: `{code}`",
    "fixed.in-package": (
        "in {package}, {site}: move what it makes with `.to({device})`; use a release of the package that "
        "has it, or report it there"
    ),
    "fixed.left-there": "leave it on the device: `{code}`",
    "fixed.put-there": "put it where it is needed: `{code}`",
    "fixed.attached": "add `{code}` below line {line:d}, or move all of it after attaching",
    "fixed.on-models-device": "make it on the model's device: `{code}`",
    "fixed.as-attached": "move it as you attach it: `{code}`",
    "fixed.where-made": "move it where it is made: `{code}`",
    "fixed.package-factory": (
        "in {package}, {site}: `{code}`; use a release of the package that has it, or report it there"
    ),
    "fixed.device-variable": "take the device of the other input: `{code}`",
    "fixed.create-with": "create it with `{code}`",
    "fixed.give-device": "give it the device: `{code}`",
    "fixed.pick-by-where": "keep the shape: `{code}.sum()` needs no count",
    "fixed.pin-loader": "let the loader pin the batches that it makes: `DataLoader(..., pin_memory=True)`",
    "fixed.not-block": "the batch is pinned, so the CPU need not wait: `{code}`",
    "fixed.append": "append `{kept}`, and read them all together below the loop: `{code}`",
    "fixed.add-up": "add up on the device, `{kept}`, and read the sum once below the loop: `{code}`",
    "fixed.parameter": "make it a parameter, as it is trained: `{code}`",
    "fixed.as-sibling": "move it as `{sibling}` is moved: `{code}`",
    "fixed.as-registered": "move it as you register it: `{code}`",
    "fixed.buffer": "register it as a buffer: `{code}`",
    "fixed.container": "keep the layers in a {container}: `{code}`",
    "fixed.to-cpu": "bring it to the CPU first: `{code}`",
    "fixed.no-pinning": "do not pin what is on the device already: `pin_memory=False`",
}
