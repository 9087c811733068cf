"""The process in which a script or a module runs.

    python -m devtrace.fixing.script DEVICES SCRIPT [ARG ...]       reads and prints lines of JSON (`fixing/host.py`)

A script's statements run one by one, as cells do. All else is as with `devtrace run`.
"""

from __future__ import annotations
import __future__

import ast
import gc
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import CodeType
from typing import IO, Any, Final

from devtrace.api.environment import running_simulation
from devtrace.api.options import Options
from devtrace.api.results import diagnose
from devtrace.cli.launch import Launch
from devtrace.cli.run_program import Program, print_as_its_own, whole_file
from devtrace.contract import findings_json
from devtrace.fixing import values
from devtrace.fixing.host import Host
from devtrace.fixing.program import MOST_OUTPUT, Ending
from devtrace.runtime import forks, overlay
from devtrace.runtime.import_hook import ImportWatcher
from devtrace.trace.builder import TraceBuilder

_FUTURE: Final = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)


class ScriptHost(Host):
    def __init__(self, asks: IO[str], answers: IO[str]) -> None:
        super().__init__(asks, answers)
        self._inherited = _open_files()
        self.request = self.branch_at(0, self.next_request())

    def codes(self, file: str) -> Iterator[CodeType]:
        """Yield the code of each statement; a later run, with another text, may go on before any of them."""
        index, (body, flags) = 0, _statements_and_flags(file)
        while index < len(body):
            if self.is_worth(self.request) and _open_files() <= self._inherited and forks.could_go_on():
                self.request = self.branch_at(index, self.request)
                self.join_devices()
                body, flags = _statements_and_flags(file)
            statement = body[index]
            is_string = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            if not (index and is_string):  # by itself it would be the module's `__doc__`
                yield compile(ast.Module([statement], []), file, "exec", flags, dont_inherit=True)
            index += 1

    def join_devices(self) -> None:
        """Make one memory of all devices from here on, if that is asked."""
        if self.request["one_device"]:
            running_simulation().join()


def _open_files() -> set[str]:
    """Return the descriptors that are open: a fork would share them, and their positions, with this process."""
    folder = "/proc/self/fd"
    return {fd for fd in os.listdir(folder) if os.path.lexists(f"{folder}/{fd}")} if forks.CAN_FORK else set()


def _statements_and_flags(file: str) -> tuple[list[ast.stmt], int]:
    """Return a file's statements and its flags of `__future__`; a file that does not compile raises here."""
    (whole,) = whole_file(file)
    return ast.parse(overlay.read(file)).body, whole.co_flags & _FUTURE


class Printed(io.FileIO):
    """Descriptor to which a program prints, and the beginning of what it printed."""

    def __init__(self) -> None:
        super().__init__(1, "w", closefd=False)
        self.kept = bytearray()

    def write(self, data: Any) -> int:
        count = super().write(data)
        self.kept += bytes(data)[: min(count, MOST_OUTPUT - len(self.kept))]
        return count


class Round(Launch):
    """A run that prints what the program prints, and tells what was found to who asked."""

    has_threads = False  # which a fork would not have

    def __init__(self, host: ScriptHost, program: Program, devices: str) -> None:
        super().__init__(program, Options(simulate=devices))
        self._host, self._printed = host, Printed()
        sys.stdout = io.TextIOWrapper(self._printed, sys.stdout.encoding, sys.stdout.errors, write_through=True)
        self._values = values.ValuesOfRun()
        self._print_error: Callable[[], None] = lambda: None

    def _start(self) -> None:
        self._values.begin(self._namespace)
        super()._start()
        self._host.join_devices()

    def _leave_error(self, error: BaseException) -> None:
        """Print an error at the end, unless it is a device error: `devtrace fix` reports that."""
        self._print_error = print_as_its_own(error, later=not isinstance(error, SystemExit))

    def _end(self) -> None:
        if self.recording is not None:
            self.recording.stop(self.error)
            self._values.end()  # while tensors have their devices
        super()._end()

    def _save_and_print(self) -> None:
        if self.recording is None:
            super()._save_and_print()
            self._print_error()
            return
        report, printed = self.recording.report, self._printed.kept.decode(errors="replace")
        error = None if isinstance(self.error, SystemExit) and not self.error.code else self.error
        ending: Ending = "signal" if self._ended_by else "raised" if error is not None else "ended"
        has_branched = self._host.has_branched  # and so runs once more from its top if it raised
        extra = {"raised": error and findings_json.raised(error), "has_branched": has_branched}
        self._host.tell(ending, [report], self._values.values, printed, **extra)
        if not (has_branched or any(finding.severity == "error" for finding in report.findings)):
            self._print_error()
        gc.freeze()  # the interpreter, which ends, would look through all of torch


def main() -> None:
    forks.end_with_parent()
    asks, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # stdout is for the patch alone
    with suppress(OSError):  # the program reads what was meant for it
        os.dup2(os.open(f"/proc/{os.getppid()}/fd/0", os.O_RDONLY), 0)
    devices, *words = sys.argv[1:]
    # A thread that draws the bars of slow loops anew, and without which each process is one that can go on in a fork.
    ImportWatcher("tqdm.std").call_when_imported(lambda: setattr(sys.modules["tqdm.std"].tqdm, "monitor_interval", 0))
    str(diagnose(TraceBuilder("").build()))  # loads here, and not in each fork, what makes a report
    host = ScriptHost(asks, answers)
    is_module = words[0] == "-m"
    target, *arguments = words[is_module:]
    Round(host, Program(target, tuple(arguments), is_module, host.codes), devices).run()


if __name__ == "__main__":
    main()
