"""What the magics print, and the help of flags and commands."""

from __future__ import annotations

from typing import Final

SENTENCES: Final[dict[str, str]] = {
    # what the magics print
    "magic.no-torch": "devtrace: torch was not imported, so there was nothing to trace",
    "magic.on": "devtrace: every following cell is traced; `%devtrace off` ends it",
    "magic.off": "devtrace: only cells that begin with `%%devtrace` are traced",
    "magic.the-trace": "the trace",
    "magic.the-trace-of": "the trace of {label}",
    "magic.the-report": "the report",
    "magic.the-findings": "the list of findings",
    "magic.the-sarif": "the SARIF log",
    "magic.written": "devtrace: {what} is in {file}",
    "magic.not-simulated": "devtrace: no device is simulated",
    "magic.simulated": "devtrace: {devices} {count:=is|are} simulated until `%devtrace simulate off`",
    "magic.empty-cell": (
        "devtrace: there is no code below `%%devtrace` in this cell; `%devtrace on` traces every following cell"
    ),
    "magic.one-percent": (
        "devtrace: `%devtrace`, with one %, traces nothing; `%%devtrace` on the first line traces the cell"
    ),
    "magic.renderer-script": "devtrace: reports are sent as html with the views as a script ({choice})",
    "magic.renderer-static": "devtrace: reports are sent as our own type with a static picture ({choice})",
    "magic.language": "devtrace: reports are in English from now on",
    "magic.language-follows": "devtrace: reports follow JupyterLab's language",
    "magic.not-traced-to-its-end": "devtrace: this cell was not traced to its end: {fault}",
    "magic.not-explained": "devtrace: its error was not explained: {fault}",
    "magic.explains": "devtrace: a device error of an untraced cell is explained below its traceback",
    "magic.explains-not": "devtrace: a device error of an untraced cell is not explained",
    "magic.modules-not-watched": "devtrace: modules are not watched: {fault}",
    "magic.view-dropped": "devtrace: a view of this notebook failed and is updated no more: {fault}",
    "magic.in-passing": "devtrace {label}   {summary}",
    # %devtrace status
    "status.traced": "traced",
    "status.simulated": "simulated",
    "status.torch": "torch",
    "status.kept": "kept",
    "status.every-cell": "every cell",
    "status.asked-cells": "cells that begin with `%%devtrace`",
    "status.nothing": "nothing",
    "status.simulated-devices": "{devices} ({spec})",
    "status.torch-imported": "imported; modules are watched",
    "status.torch-awaited": "not imported yet",
    "status.kept-traces": "{kept} ({size:bytes})",
    "status.no-trace": "no trace",
    # %devtrace check
    "check.devtrace": "devtrace",
    "check.torch": "torch",
    "check.jupyter": "jupyter",
    "check.real": "real",
    "check.simulated": "simulated",
    "check.remembered": "remembered",
    "check.kept-answer": "{name} keeps an answer from before the simulation: import it after that has begun",
    "check.default": "default",
    "check.chosen": "chosen",
    "check.versions": "{version}, Python {python}, {system}",
    "check.not-imported": "{version} cannot be imported ({fault})",
    "check.build": "{version}, {build}",
    "check.not-installed": "not installed",
    "check.cuda": "built for CUDA {version}",
    "check.rocm": "built for ROCm {version}",
    "check.no-cuda": "built without CUDA",
    "check.hidden": "hidden by the simulation",
    "check.none-simulated": "none now; `--simulate cuda:2` gives a program two simulated CUDA devices",
    "check.not-needed": "none now; `--simulate` is for a machine without devices of its own",
    "check.new-tensors": "{device} for new tensors (`torch.get_default_device()`)",
    "check.usual": "{device} by the usual `cuda if torch.cuda.is_available() else ...`",
    "check.usual-and-torch": (
        "{device} by the usual `cuda if torch.cuda.is_available() else ...`; {accelerator} by "
        "`torch.accelerator.current_accelerator()`"
    ),
    "check.no-answer": "{device} (does not answer: {fault})",
    # flags: of %%devtrace, then of devtrace run
    "flag.simulate": "run the cell on N simulated CUDA devices (cuda:2 or 2), which obey CUDA's rules",
    "flag.simulate.program": "run the program on N simulated CUDA devices (cuda:2 or 2)",
    "flag.max-ops": "keep at most N ops ({usual}); repetitions above it are folded, counts stay exact",
    "flag.max-ops.program": "keep at most N ops ({usual}); counts stay exact",
    "flag.budget": "record what repeats in a loop only now and then, so that it takes about P (10%) more time",
    "flag.budget.program": "record what repeats only now and then, so that it takes about P (10%) more time",
    "flag.save": "write the trace to FILE, which `devtrace.load` and JupyterLab open",
    "flag.save.program": "write the trace to FILE, which `devtrace view` and JupyterLab open",
    "flag.html": "write the report to FILE as one page that needs nothing else",
    "flag.html.program": "write the report to FILE as one page that opens offline",
    "flag.json": "write the findings to FILE as JSON, for programs",
    "flag.json.program": "write the findings to FILE as JSON, for programs",
    "flag.sarif": "write the findings to FILE as SARIF 2.1.0, for code scanning",
    "flag.sarif.program": "write the findings to FILE as SARIF 2.1.0, for code scanning",
    "flag.no-timeline": "show the findings without the timeline",
    "flag.expect": "report every tensor that the cell computes with on another device than DEVICE",
    "flag.expect.program": "report every tensor that the program computes with on another device than DEVICE",
    # commands of %devtrace
    "command.on": (
        "trace every following cell (from Python 3.12 on with a budget of 10%); "
        "show a report where there is something to say"
    ),
    "command.off": "trace only the cells that begin with `%%devtrace`",
    "command.status": "say what is traced, simulated and kept",
    "command.check": "say what this environment has: torch's build, devices, default device",
    "command.report": "show the report of the last traced cell, or of the one of this name or number",
    "command.save": "write the last trace to FILE",
    "command.simulate": "give this whole session N simulated CUDA devices (cuda:2 or 2), or take them away",
    "command.explain": "explain the last error again; explain device errors of cells that are not traced, or do not",
    "command.language": "make reports in Chinese or English, or follow JupyterLab",
    "command.renderer": "send reports as html with a script, or static beside our own type; alone, say what is sent",
    "command.devices": "list names by device and the findings of all cells, as the sidebar does",
    "command.help": "print this",
    "help.cell": "%%devtrace [name] [flags]   on the first line of a cell: run it and show where its devices meet",
    "help.line": "%devtrace COMMAND",
}
