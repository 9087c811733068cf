"""One run of a script or module on simulated devices, in a process of its own, with other texts for some files."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Final, Literal

from devtrace.contract import findings_json
from devtrace.diagnosis.findings import Finding
from devtrace.fixing import values
from devtrace.fixing.patch import relative
from devtrace.fixing.source_text import SourceText
from devtrace.runtime import overlay
from devtrace.runtime.device_spec import NO_REAL_DEVICES, ONE_DEVICE
from devtrace.runtime.rank import ENDING
from devtrace.source.user_code import OWN_PACKAGES, owner_of
from devtrace.words.catalogue import sentence
from devtrace.words.errors import UsageError

STDERR: Final = 2
PATIENCE: Final = 30.0
"""Seconds that a program gets, after SIGTERM at its time limit, to save what was seen."""
MOST_OUTPUT: Final = 1 << 22
"""Bytes of a program's output that are kept, to compare those of two runs."""
Ending = Literal["ended", "raised", "time", "signal"]
Place = tuple[str, int | None, int]
"""File, cell and line."""


@dataclass(frozen=True)
class ProgramRun:
    """One run: how it ended, the exception if one ended it, and what devtrace found, in the order of the program."""

    ending: Ending
    findings: tuple[Finding, ...]
    raised: str = ""
    lines: tuple[Place, ...] = ()  # where the exception passed through
    values: Mapping[str, Any] = field(default_factory=dict)  # that the program left
    output: str = ""
    crossings: int = 0  # copies between devices and waits for one
    peaks: Mapping[str, int] = field(default_factory=dict)  # bytes of each device when it had most

    @property
    def comparable(self) -> int:
        """Return how much another run can be held against: each value, and what was printed."""
        return len(self.values) + bool(self.output)

    @property
    def error(self) -> Finding | None:
        """Return the first device error."""
        return next((finding for finding in self.findings if finding.severity == "error"), None)


@dataclass(frozen=True)
class ProgramRunner:
    """Words of `devtrace run` after its flags: `SCRIPT [ARG ...]` or `-m MODULE [ARG ...]`."""

    words: tuple[str, ...]
    simulate: str
    timeout: float | None = None
    one_device: bool = False

    def run(self, texts: Mapping[str, SourceText], own: frozenset[str] = frozenset()) -> ProgramRun:
        with tempfile.TemporaryDirectory(prefix="devtrace-fix-") as folder:
            found, changed = Path(folder) / "findings.json", Path(folder) / "texts.json"
            overlay.write(changed, {file: text.data for file, text in texts.items()})
            command = (sys.executable, "-m", "devtrace", "run", "--simulate", self.simulate, "--json", str(found))
            left = Path(folder) / "values.json"
            variables = {**NO_REAL_DEVICES, overlay.VARIABLE: str(changed), OWN_PACKAGES: ",".join(sorted(own))}
            variables |= {values.VARIABLE: str(left), "PYTHONHASHSEED": "0", "PYTHONUNBUFFERED": "1"}
            variables |= {ONE_DEVICE: "1"} if self.one_device else {}
            process = started((*command, *self.words), {**os.environ, **variables})
            assert process.stdout is not None  # ours is for the patch alone
            printed = Printed(process.stdout)
            is_late = self.wait(process)
            if not found.exists():
                raise UsageError.of("fix-no-run", code=process.returncode)
            computed = json.loads(left.read_text(encoding="utf-8")) if left.exists() else {}  # not if it was killed
            run = run_of(found, process.returncode, is_late=is_late)
            return replace(run, values=computed, output=printed.text())

    def close(self) -> None:
        """Let go of what a run left: nothing, as each has a process of its own."""

    def wait(self, process: subprocess.Popen[bytes]) -> bool:
        """Wait for the end; return whether the time limit came first."""
        try:
            process.wait(self.timeout)
        except subprocess.TimeoutExpired:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE)
            end_group(process)
            return True
        except BaseException:
            end_group(process)
            raise
        return False


def started(
    command: Sequence[str], variables: Mapping[str, str], stdin: int | None = None, cwd: str | None = None
) -> subprocess.Popen[bytes]:
    """Start a program in a group of its own, which has what the program starts too: its DataLoader's workers."""
    for number in ENDING:  # which reach no other group
        if signal.getsignal(number) is signal.SIG_DFL and threading.current_thread() is threading.main_thread():
            signal.signal(number, lambda number, _: sys.exit(128 + number))
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=variables, stdin=stdin, stdout=pipe, cwd=cwd, start_new_session=True)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that began a group, with all of that, and wait for it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()
    process.wait()


class Printed:
    """Output of a program, passed on to stderr while it runs."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._kept = bytearray()
        self._thread = threading.Thread(target=self._pass_on, args=(stream,), daemon=True)
        self._thread.start()

    def _pass_on(self, stream: IO[bytes]) -> None:
        with stream:
            while part := os.read(stream.fileno(), 1 << 16):
                self._kept += part[: MOST_OUTPUT - len(self._kept)]
                os.write(STDERR, part)

    def text(self) -> str:
        """Return its beginning; a process that outlives the program may keep the stream open."""
        self._thread.join(PATIENCE)
        return self._kept.decode(errors="replace")


def in_words(raised: Mapping[str, Any] | None, place: Callable[[str, int], str]) -> str:
    """Return what a run raised, and the last of its places that there are words for: `KeyError: 'a' (In[3] line 2)`."""
    if not raised:
        return ""
    text = f"{raised['type']}: {raised['message']}".removesuffix(": ")
    places = [at for file, line in raised.get("lines", ()) if (at := place(str(file), int(line)))]
    return f"{text} ({places[-1]})" if places else text


def place_of(file: str, line: int) -> str:
    """Return where a line of the user's is, empty for a package's."""
    return sentence("fix.place", source=relative(file), line=line) if owner_of(file) == "user" else ""


def run_of(found: Path, code: int, *, is_late: bool = False) -> ProgramRun:
    """Return the run that left findings and this exit code."""
    data = json.loads(found.read_text(encoding="utf-8"))
    raised = data.get("raised") or {}
    ending: Ending = "time" if is_late else "signal" if code < 0 else "raised" if raised else "ended"
    return ProgramRun(
        ending,
        tuple(sorted(findings_json.read(found), key=lambda finding: finding.op)),
        in_words(raised, place_of),
        tuple((str(file), None, int(line)) for file, line in raised.get("lines", ())),
        crossings=sum(data["counts"].values()),
        peaks=data["peaks"],
    )
