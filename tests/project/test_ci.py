"""What `.ci/run` runs beside `make test`: what cannot be installed gets a line, a test that fails counts."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from folders import ROOT
from warm import LIMIT

MAKE = """\
#!/bin/sh
echo "$CI $*" >> asked
case " $FAILING " in *" $1 "*) echo "npm error code ENOTFOUND"; echo "make: *** Error 1"; exit 2 ;; esac
"""
TIMEOUT = """\
#!/bin/sh
shift 3
[ "$2" != e2e-vscode ] || exit 124
exec "$@"
"""
INSTALLS = {
    "torch-newest": "test-released",
    "torch-oldest": "test-oldest",
    "marimo": "e2e-marimo",
    "code-server": "e2e-vscode",
}
ALL = ["test", "breadth", *(target for pair in INSTALLS.items() for target in pair)]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Give a folder with the script, and a make that writes down what it is asked for."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    program(tmp_path / "bin" / "make", MAKE)
    return tmp_path


def program(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def run(command: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
    return subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"PATH": path} | environment,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def ci(checkout: Path, *failing: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    done = run([".ci/run"], checkout, FAILING=" ".join(failing))
    asked = [line.split() for line in (checkout / "asked").read_text().splitlines()]
    assert all(ci == "true" for ci, _ in asked)
    return done, [target for _, target in asked]


def test_after_make_test_other_torches_and_front_ends_are_installed_and_tested(checkout: Path) -> None:
    done, asked = ci(checkout)
    assert (done.returncode, asked, done.stdout) == (0, ALL, "")


def test_what_cannot_be_installed_gets_a_line_and_the_rest_is_tested(checkout: Path) -> None:
    done, asked = ci(checkout, "marimo", "code-server")
    assert (done.returncode, asked) == (0, [each for each in ALL if each not in ("e2e-marimo", "e2e-vscode")])
    first, second = done.stdout.splitlines()
    assert first.startswith("e2e-marimo was not run: marimo could not be installed: npm error code ENOTFOUND (more in ")
    assert "`make e2e-vscode` installs it and runs its tests" in second
    assert "npm error" in (checkout / "build" / "install-code-server.log").read_text()


@pytest.mark.parametrize("failing", ["test", *INSTALLS.values()])
def test_a_test_that_fails_fails_ci(checkout: Path, failing: str) -> None:
    done, asked = ci(checkout, failing)
    assert done.returncode != 0
    assert asked == ALL[: ALL.index(failing) + 1]


def test_a_test_that_does_not_end_is_stopped_and_fails_ci(checkout: Path) -> None:
    program(checkout / "bin" / "timeout", TIMEOUT)
    done, asked = ci(checkout)
    assert (done.returncode, asked[-1]) == (124, "code-server")
    assert done.stderr == "e2e-vscode was stopped after 1260 seconds\n"


NPM = """\
#!/bin/sh
mkdir -p node_modules/code-server/lib/vscode/extensions
case "$PWD" in *"$FAILING") echo "npm error code ENOSPC" >&2; exit 1 ;; esac
"""


@pytest.mark.parametrize("failing", ["code-server", "vscode", "extensions"])
def test_a_code_server_that_was_installed_in_part_is_none(tmp_path: Path, failing: str) -> None:
    program(tmp_path / "bin" / "npm", NPM)
    program(tmp_path / "bin" / "uname", '#!/bin/sh\n[ "$1" = -s ] && echo Linux || echo x86_64\n')
    target = tmp_path / "code-server"
    install = [str(ROOT / "tools" / "code-server"), str(target)]
    assert run(install, tmp_path, FAILING="nowhere").returncode == 0
    assert (target / "node").is_symlink()
    done = run(install, tmp_path, FAILING=failing)
    assert (done.returncode, done.stderr) == (1, "npm error code ENOSPC\n")
    assert not (target / "node").is_symlink()
