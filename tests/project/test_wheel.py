"""The wheel and the sdist work where there is neither Node nor a build."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from built import stale
from folders import ROOT

pytestmark = pytest.mark.wheel


def run(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    """Run a command, and give what it prints; no Node is on its PATH."""
    environment = {**os.environ, "PATH": os.defpath.replace("/usr/bin", ""), "PYTHONPATH": ""} | (env or {})
    result = subprocess.run(
        list(map(str, command)), cwd=cwd, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout + result.stderr


def build(target: str, source: Path, out: Path) -> Path:
    run(sys.executable, "-m", "hatchling", "build", "-t", target, "-d", out, cwd=source)
    return next(out.iterdir())


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert not (reason := stale()), reason
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the sdist alone, as pip does where there is no wheel."""
    source = tmp_path_factory.mktemp("source")
    shutil.unpack_archive(sdist, source)
    return build("wheel", next(source.iterdir()), tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment that holds the wheel and nothing else: no torch, no JupyterLab, no Node."""
    prefix = tmp_path_factory.mktemp("environment")
    venv.create(prefix, with_pip=True)
    run(prefix / "bin" / "python", "-m", "pip", "install", "-q", "--no-deps", "--no-index", wheel, cwd=prefix)
    return prefix


def test_the_wheel_has_the_package_once_and_the_built_extension(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    data = [name for name in names if "/share/jupyter/labextensions/devtrace/" in name]
    assert [name for name in data if name.endswith("/package.json")]
    assert [name for name in data if name.endswith("/install.json")]
    assert [name for name in data if "/static/remoteEntry." in name]
    assert {"devtrace/__init__.py", "devtrace/static/views.js", "devtrace/static/live.js"} <= set(names)
    assert [name for name in names if name.endswith(".dist-info/licenses/LICENSE")]
    assert not [name for name in names if name.startswith("devtrace/labextension")]
    assert not [name for name in names if name.endswith((".ts", ".map"))]


def test_jupyterlab_lists_the_extension_of_an_installed_wheel(installed: Path, tmp_path: Path) -> None:
    share = installed / "share" / "jupyter"
    listed = run(
        *(sys.executable, "-m", "jupyter", "labextension", "list"),
        cwd=tmp_path,
        env={"JUPYTER_PATH": str(share), "HOME": str(tmp_path), "NO_COLOR": "1"},
    )
    ours = listed.split(str(share))[1]
    assert "devtrace v" in ours
    assert "OK" in ours.split("devtrace v")[1].splitlines()[0]


def test_without_torch_devtrace_imports_and_names_what_is_missing_on_first_use(installed: Path, tmp_path: Path) -> None:
    code = (
        "import devtrace\nprint(devtrace.__version__)\n"
        "try: devtrace.record\nexcept devtrace.DevtraceError as error: print(error)"
    )
    printed = run(installed / "bin" / "python", "-c", code, cwd=tmp_path)
    assert "torch-missing: got a Python without torch" in printed
