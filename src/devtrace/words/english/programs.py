"""What the command line, pytest, comparisons and pictures say, and notes on recordings."""

from __future__ import annotations

from typing import Final

SENTENCES: Final[dict[str, str]] = {
    # help of the command line
    "cli.description": "Shows exactly where a CPU tensor entered a GPU computation.",
    "cli.usage": "usage: ",
    "cli.commands": "commands",
    "cli.arguments": "arguments",
    "cli.options": "options",
    "cli.help": "show this help and end",
    "cli.version": "show the version and end",
    "cli.run": "run a script or module as Python would, and report at its end",
    "cli.fix": "run a program on simulated devices until no device error is left, and print the patch",
    "cli.view": "open a saved trace, the ranks of one job together, or an export of torch.profiler, in the browser",
    "cli.check": "say what torch, devices and Jupyter this Python has",
    "cli.diff": "compare two saved traces; the exit code is 1 if an error or warning came",
    "cli.untraced": "record nothing, and explain a device error that ends the program",
    "cli.module": "run a module",
    "cli.script": "the script and its arguments",
    "cli.view.html": "write the page to F, and open nothing",
    "cli.diff.html": "write a page with what changed and all views of B",
    "cli.fix.description": (
        "Runs a program on simulated devices, applies the fix of its first device error to a copy in "
        "memory, and runs it again, until no device error is left or nothing helps. The unified diff goes "
        "to stdout, everything else to stderr."
    ),
    "cli.fix.caution": (
        "Each round runs the program anew, with all that it does: what it writes, sends or deletes, it "
        "does once a round. `--rounds 1` runs it once and proves nothing."
    ),
    "cli.fix.simulate": "how many devices (cuda:1)",
    "cli.fix.costs": (
        "also fix needless copies and waits; the proof is the same values and smaller counts, with random "
        "numbers that are the same in each run"
    ),
    "cli.fix.write": "change the files, after all is proven; all or none",
    "cli.fix.rounds": "at most N runs ({usual})",
    "cli.fix.timeout": "end each run after S seconds",
    "cli.fix.patch": "write the diff to F, too",
    # what the commands print
    "cli.written": "devtrace: the {what} is in {path}",
    "cli.trace": "trace",
    "cli.report": "report",
    "cli.findings": "list of findings",
    "cli.sarif": "SARIF log",
    "cli.comparison": "comparison",
    "cli.not-written": "devtrace: the {what} could not be written to {path} ({reason}); it is in {spare} instead",
    "cli.lost": "devtrace: the {what} could not be written to {path} ({reason}); it is lost",
    "cli.opened": "devtrace: opened {page}",
    "cli.open-this": "devtrace: open this in a browser: {page}",
    "run.failed": "devtrace: the report could not be made ({fault})",
    "run.interrupted": "devtrace: interrupted while it reported on the program; what is not named above is not saved",
    "run.not-explained": "devtrace: the error was not explained: {fault}",
    "run.no-torch": "devtrace: the program did not import torch, so there is nothing to report",
    "run.misplaced": "devtrace: {script} got `{flags}`, which comes after it. For devtrace, write `{code}`.",
    "run.no-cuda": "devtrace: torch has no CUDA device here. To try the program on a simulated one: `{code}`",
    "run.rank": "rank {rank}:",
    "run.path-closed": "devtrace: {path} cannot be written as things are; the program runs all the same",
    "run.progress": "devtrace: {counts}, {time:time}",
    "run.ops": "{count:op|ops}",
    "run.line": "devtrace: {text}",
    # devtrace fix
    "fix.run": "run {number:d}",
    "fix.run-with": "run {number:d}, with a fix for {site}",
    "fix.run-own": "run {number:d}, to find a fix in {packages}",
    "fix.mended": "fixed: {site}: {message}",
    "fix.cheaper": "cheaper, with the same values: {site}: {message}",
    "fix.reason-of-cost": "({before:d} before, {after:d} after) {message}",
    "fix.cost-left": "as it was: {site}: {why}: {message}",
    "fix.cost-ends": "with its fix the program ends otherwise: {raised}",
    "fix.cost-no-values": "the program leaves no variable and prints nothing that could be compared",
    "fix.cost-not-less": "its fix does not make it less",
    "fix.cost-values": "its fix changes values ({names})",
    "fix.cost-output": "what the program prints",
    "fix.costs-unknown": "costs were left as they are: that values stay the same is seen only where a program ends",
    "fix.left": "left: {site}: {message}",
    "fix.help": "Fix: {help}",
    "fix.no-edit": "no edit for it could be proven",
    "fix.another-error": "the fix that the report offers raises another error: {raised}",
    "fix.no-help": "the fix that the report offers does not help",
    "fix.devices": "{count:simulated device|simulated devices}",
    "fix.not-proven": "not proven: the last fix was not run, after {count:round|rounds} (`--rounds`)",
    "fix.proven": "proven: the program ran to its end on {devices}",
    "fix.proven-with-patch": "proven: with the patch, the program ran to its end on {devices}",
    "fix.time": "seen until the time limit of {limit} s on {devices}: no device error; what comes later was not run",
    "fix.ended-early": "no device error is left on {devices}, but the program ended early: {raised}",
    "fix.signal": "by a signal",
    "fix.elsewhere": "the patch is for files outside of the working directory; `git apply` takes it in {folder}",
    "fix.package": (
        "for {package}, an installed package that `--write` leaves alone; `git apply` takes it in {folder}:"
    ),
    "fix.nothing-written": "nothing was written: `--write` needs a fix that is proven",
    "fix.written": "written: {files}",
    # pytest
    "pytest.marker": (
        'record the test with devtrace; `simulate="cuda:2"` gives it, its fixtures too, two simulated CUDA '
        "devices; the test fails if the report has more errors, warnings, syncs or copies, or if something "
        "is computed elsewhere than on `expect`"
    ),
    "pytest.got": "pytest.mark.devices: got {words}; it takes {form}: {help}",
    "pytest.unnamed": "arguments without a name",
    "pytest.beyond": "devtrace: {found}, at most {most} allowed",
    "pytest.errors": "{count:error|errors}",
    "pytest.warnings": "{count:warning|warnings}",
    # what a recording shows of itself
    "record.not-begun": (
        "Nothing is recorded yet. Write `with devtrace.record() as recording:` above a block, and show `recording` "
        "below it."
    ),
    "simulation.not-begun": (
        'Nothing is simulated yet. Write `with devtrace.simulate("cuda:{count}"):` above a block, or call `.start()`.'
    ),
    "simulation.running": "{devices:and} {count:=is|are} simulated until the block ends, or until `.stop()`.",
    "record.running": "This recording has not ended. Below its block, it shows the report.",
    # notes on a recording
    "note.recording-lost": "the recording was lost ({fault})",
    "note.diagnosis-failed": "the diagnosis failed ({fault}); the trace is complete",
    "note.op-in-part": "an op was not recorded in full: {fault}",
    "note.kept-answer": (
        "{fault} keeps an answer from before the simulation, when there was no GPU: import it after the "
        "simulation has begun, or clear its cache"
    ),
    "note.not-watched": "devtrace could not watch {what} ({count:time|times}; {fault})",
    "watched.births": "where tensors were made",
    "watched.moves": "what modules moved",
    "watched.states": "the state of an optimizer",
    "watched.names": "names of tensors",
    "watched.modules": "modules",
    "watched.errors": "errors that nobody recorded",
    "note.call-missed": "a call of a module was not recorded: {fault}",
    "note.of-rank": "rank {rank}: {note}",
    "note.expect-unknown": "`--expect {device}`: torch knows no such device, so nothing was compared with it",
    "note.ranks-left-out": (
        "this page has the ops of {kept:rank|ranks}, and only the collectives of {count:other rank|other ranks}: "
        "it takes {most:op|ops} at most"
    ),
    "note.cut": (
        "this notebook holds {count:op|ops} of the trace, whose {size:bytes} would make it large; save the "
        "whole trace to a file to see every op"
    ),
    "note.repetitions": (
        "{recorded} of {count:repetition was|repetitions were} recorded; about {ops:op|ops}, with their waits and "
        "copies, were counted as repeating them"
    ),
    "note.unseen-lines": (
        "of lines that ran only between the recorded repetitions, those that read a tensor's value were seen; Python "
        "3.12 and newer shows all"
    ),
    "note.profiler": (
        "this trace was read from torch.profiler, which records neither names nor births of tensors, nor "
        "where they were; an op's device is known by the kernels and copies that it launched, and its line "
        "is where its function begins"
    ),
    "note.nested": "what a recording inside of this one recorded is in its trace only",
    "note.jit": "what `torch.jit.trace` ran is not recorded: it fails under any dispatch mode",
    "note.profiler-stack": "it was profiled without `with_stack=True`: neither lines nor modules are known",
    # devtrace.expect
    "elsewhere.scalar": "scalar",
    "elsewhere.register": (
        '`register_buffer("{attribute}", ..., persistent=False)` in its module, so that `.to()` takes it along'
    ),
    "elsewhere.optimizer": "move the model before the optimizer is built or its state loaded",
    "elsewhere.before": 'move it to "{device}" before {line}',
    "elsewhere.input": "an input of {op}",
    "elsewhere.line": "{site}: `{text}`",
    "elsewhere.op": "the {op} that takes it",
    "expectation.message": "{name:Tensor} is on {device}; all computation was expected on {expected}.",
    "expectation.object": "object {number}",
    # two traces compared
    "diff.finding": "finding",
    "diff.error": "error",
    "diff.device": "device",
    "diff.compute": "compute",
    "diff.copies": "copies",
    "diff.syncs": "syncs",
    "diff.ops": "ops",
    "diff.what": "what",
    "diff.where": "where",
    "diff.before": "before",
    "diff.after": "after",
    "diff.total": "{name} {before} → {after}",
    "diff.first-stopped": "the first ends with {type}{where}: what it did less is not listed",
    "diff.second-stopped": "the second ends with {type}{where}: what it did less is not listed",
    "diff.at": " at {site}",
    "diff.on": "{name} on {device}",
    "diff.tensors": "{name} ({count:tensor|tensors})",
    "diff.more": "and {count:more change|more changes}",
    "diff.untitled": "a trace",
    "diff.changes": "{first} → {second}: {count:change|changes}",
    "diff.same": "{first} → {second}: no difference",
    # pictures
    "picture.label": "Timeline of {count:op|ops}: {devices}",
    "picture.ops": "{count:op|ops}",
    "picture.simulated": "simulated",
    "picture.ranks": "{count:=rank|ranks} {ranks} of {total}",
    "picture.collectives": "▯ {count:collective|collectives}",
    "picture.lanes": "{count:more lane|more lanes}",
    "picture.copies": "↓ {count:copy|copies}, {size:bytes}",
    "picture.pinned": "{count} from pinned memory",
    "picture.syncs": "╵ {count:sync|syncs}",
    "picture.cut": "// shortened, up to {time:time}",
    "picture.forward": "forward",
    "picture.backward": "backward",
    "picture.optimizer": "optimizer",
    "picture.other": "other",
    "page.no-views": "This devtrace was installed without its interactive views.",
    "severity.error": "error",
    "severity.warning": "warning",
    "severity.note": "note",
    "figure.nothing": "nothing of this in the trace",
    "figure.devices": "Time in ops, by device",
    "figure.copies": "Copies between devices, by line",
    "figure.modules": "Modules, by time; fill is the device that did most",
    "figure.no-modules": "Modules, by time",
    "figure.memory": "Memory that ops used, at the least (a tensor counts until its last use)",
    "figure.phase": "{phase}: {time:time}, {count:op|ops}",
    "figure.lane": "{count:op|ops}, {share} of the time",
    "figure.simulated": ", simulated",
    "figure.no-line": "no line",
    "figure.copied": "{count:copy|copies}, {size:bytes}",
    "figure.way": "{name}: {amount}",
    "figure.peak": "{device} (peak {size:bytes})",
    "figure.bytes": "bytes",
    "figure.at": "%{{y:.3s}}B at %{{x:.3f}} ms",
}
