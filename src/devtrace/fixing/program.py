"""One run of a script or module on simulated devices, in a process of its own, with other texts for some files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from devtrace.fixing.rounds import Ending, Run
from devtrace.fixing.source_text import SourceText
from devtrace.interchange import findings_json
from devtrace.runtime import overlay
from devtrace.source.user_code import OWN_PACKAGES
from devtrace.words.errors import UsageError

STDERR: Final = 2
PATIENCE: Final = 30.0
"""Seconds that a program gets, after SIGTERM at its time limit, to save what was seen."""


@dataclass(frozen=True)
class ProgramRunner:
    """Words of `devtrace run` after its flags: `SCRIPT [ARG ...]` or `-m MODULE [ARG ...]`."""

    words: tuple[str, ...]
    simulate: str
    timeout: float | None = None

    def run(self, texts: Mapping[str, SourceText], own: frozenset[str] = frozenset()) -> Run:
        with tempfile.TemporaryDirectory(prefix="devtrace-fix-") as folder:
            found, changed = Path(folder) / "findings.json", Path(folder) / "texts.json"
            overlay.write(changed, {file: text.data for file, text in texts.items()})
            command = (sys.executable, "-m", "devtrace", "run", "--simulate", self.simulate, "--json", str(found))
            process = subprocess.Popen(
                (*command, *self.words),
                env={**os.environ, overlay.VARIABLE: str(changed), OWN_PACKAGES: ",".join(sorted(own))},
                stdout=STDERR,  # stdout is for the patch alone
            )
            is_late = self.wait(process)
            if not found.exists():
                raise UsageError.of("fix-no-run", code=process.returncode)
            return run_of(found, process.returncode, is_late=is_late)

    def wait(self, process: subprocess.Popen[bytes]) -> bool:
        """Wait for the end; return whether the time limit came first."""
        try:
            process.wait(self.timeout)
        except subprocess.TimeoutExpired:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            return True
        except BaseException:
            process.kill()
            process.wait()
            raise
        return False


def run_of(found: Path, code: int, *, is_late: bool = False) -> Run:
    """Return the run that left findings and this exit code."""
    data = json.loads(found.read_text(encoding="utf-8"))
    raised = data.get("raised") or {}
    ending: Ending = "time" if is_late else "signal" if code < 0 else "raised" if raised else "ended"
    return Run(
        ending,
        tuple(sorted(findings_json.read(found), key=lambda finding: finding.op)),
        f"{raised['type']}: {raised['message']}" if raised else "",
        tuple((str(file), int(line)) for file, line in raised.get("lines", ())),
    )
