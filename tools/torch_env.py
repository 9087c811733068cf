"""Make an environment of another torch without NVIDIA's packages, 3 of the 4 GB that a CUDA build takes.

    python tools/torch_env.py FOLDER torch                        the newest release, as pip gives it
    python tools/torch_env.py FOLDER torch===2.13.0               the CUDA build (two equal signs also take a CPU build)
    python tools/torch_env.py FOLDER 'torch==2.10.*' -r FILE      with packages of its own

The environment sees the packages of the Python that runs this behind its own, if it is made of the same Python. A CUDA
build is linked with NVIDIA's libraries: placeholders for them (made of `nm -D`, by gcc) are put beside it. It then
loads and finds no driver; a GPU that is there is not seen either.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOM = 4_000_000_000  # bytes: the wheel, what it unpacks to, and as much again
_NEEDED = re.compile(r"NEEDED.*\[(lib(?:cu|nv|nccl)[^]]*)\]")
_REQUIREMENT = re.compile(r"^Requires-Dist: ((?!.*(?:extra|platform_system) ==).*)", re.MULTILINE)
_CUDNN = re.compile(r"^Requires-Dist: nvidia-cudnn\S*==(\d+)\.(\d+)\.(\d+)", re.MULTILINE)
_MESSAGE = re.compile(r"(Error|Status)(String|Name)$|^ncclGetLastError$")
_INSUFFICIENT_DRIVER = 35


class Symbol(NamedTuple):
    """A name that a library asks of another: `cudaMalloc@libcudart.so.13`, or without a version."""

    name: str
    version: str


def main() -> None:
    """Make the environment, or bring the one that is there to what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("torch", help="what pip is asked for")
    parser.add_argument("-r", dest="files", action="append", default=[], metavar="FILE", help="requirements but torch")
    parser.add_argument("--python", default=sys.executable, help="the Python that the environment is made of")
    asked = parser.parse_args()
    try:
        make(asked.folder, asked.torch, asked.files, asked.python)
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        sys.exit(f"torch_env: error: {error}")


def make(folder: Path, torch: str, files: list[str], python: str) -> None:
    """Install torch alone, then what it and the tests need, then the placeholders."""
    own_python = folder / "bin" / "python"
    if not own_python.exists():
        free = shutil.disk_usage(folder.parent).free
        if free < ROOM:
            raise ValueError(f"{folder} needs {ROOM / 1e9:.0f} GB, and {free / 1e9:.1f} GB are free")
        subprocess.run([python, "-m", "venv", folder], check=True)
    pip = [str(own_python), "-m", "pip", "--disable-pip-version-check", "-q", "install"]
    pip += ["--no-compile", "--no-warn-conflicts"]
    subprocess.run([*pip, "--upgrade", "--no-deps", "--no-cache-dir", torch], check=True)  # half a GB, wanted once
    packages = _packages_of(own_python)
    if packages.parts[-2] == Path(sysconfig.get_path("purelib")).parts[-2]:  # python3.11
        (packages / "behind.pth").write_text(sysconfig.get_path("purelib") + "\n")
    about = next(packages.glob("torch-*.dist-info"))
    metadata = (about / "METADATA").read_text()
    listed = [word for file in files for word in ("-r", file)]
    subprocess.run([*pip, *_REQUIREMENT.findall(metadata), *listed], check=True)
    make_placeholders(packages / "torch" / "lib", metadata, (about / "RECORD").read_text())
    subprocess.run([own_python, "-c", "import torch; print('torch', torch.__version__)"], check=True)


def _packages_of(python: Path) -> Path:
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path(subprocess.check_output([python, "-c", ask], text=True).strip())


def make_placeholders(folder: Path, metadata: str, record: str) -> None:
    """Put a placeholder for each CUDA library that those of torch are linked with, and do not bring, beside them."""
    libraries = [path for path in sorted(folder.glob("*.so")) if path.name != "libcaffe2_nvrtc.so"]  # needs the driver
    wanted = {name for library in libraries for name in _NEEDED.findall(_said("readelf", "-d", library))}
    missing = sorted(name for name in wanted if f"torch/lib/{name}," not in record)
    if not missing:
        return
    if not shutil.which("gcc"):
        raise ValueError(f"there is no gcc to make placeholders for {', '.join(missing)} with")
    symbols = placed(undefined(libraries), missing)
    version = _CUDNN.search(metadata)
    cudnn = tuple(map(int, version.groups())) if version else (0, 0, 0)
    for name in missing:
        _compile(folder / name, symbols[name], cudnn)


def _said(*command: str | Path) -> str:
    return subprocess.check_output(command, text=True)


def undefined(libraries: Iterable[Path]) -> Iterator[Symbol]:
    """Yield the names that these libraries ask of others."""
    for library in libraries:
        for line in _said("nm", "-D", "--undefined-only", library).splitlines():
            name, _, version = line.split()[-1].partition("@")
            yield Symbol(name, version.lstrip("@"))


def placed(symbols: Iterable[Symbol], libraries: list[str]) -> dict[str, set[Symbol]]:
    """Say which library holds each name: the one that its version names, else the one that it begins with.

    >>> placed([Symbol("ncclSend", ""), Symbol("cudaFree", "libcudart.so.13")], ["libnccl.so.2", "libcudart.so.13"])
    {'libcudart.so.13': {Symbol(name='cudaFree', ...)}, 'libnccl.so.2': {Symbol(name='ncclSend', version='')}}
    """
    found: dict[str, set[Symbol]] = defaultdict(set)
    stems = sorted(((_stem(library), library) for library in libraries), key=lambda each: -len(each[0]))
    for symbol in symbols:
        named = [library for library in libraries if symbol.version and library.startswith(symbol.version)]
        if holders := named or [library for stem, library in stems if symbol.name.lower().startswith(stem)]:
            found[holders[0]].add(symbol)
    return found


def _stem(library: str) -> str:
    return library.partition(".")[0].removeprefix("lib").removesuffix("_host").lower()


def _compile(target: Path, symbols: set[Symbol], cudnn: tuple[int, ...]) -> None:
    """Write a library with these names: each with the version under which it is looked for."""
    versions = sorted({symbol.version for symbol in symbols if symbol.version})
    names = sorted({symbol.name for symbol in symbols})
    with tempfile.TemporaryDirectory() as place:
        code, script = Path(place, "code.c"), Path(place, "versions")
        code.write_text("\n".join(_function(name, cudnn) for name in names) + "\n")
        script.write_text("\n".join(_node(version, symbols) for version in versions) + "\n")
        flags = ["-shared", "-fPIC", "-nostdlib", "-w", "-fno-builtin", f"-Wl,-soname,{target.name}"]
        if versions:
            flags.append(f"-Wl,--version-script={script}")
        unfinished = Path(f"{target}.new")
        subprocess.run(["gcc", *flags, "-o", unfinished, code], check=True)
        os.replace(unfinished, target)


def _node(version: str, symbols: set[Symbol]) -> str:
    return f"{version} {{ {' '.join(f'{name};' for name, of in sorted(symbols) if of == version)} }};"


def _function(name: str, cudnn: tuple[int, ...]) -> str:
    """Write a function that says what CUDA's own says without a driver, or nothing."""
    if name == "cudaGetDeviceCount":
        return f"int {name}(int *count) {{ *count = 0; return {_INSUFFICIENT_DRIVER}; }}"
    if name in ("cudaDriverGetVersion", "cudaRuntimeGetVersion"):
        return f"int {name}(int *version) {{ *version = 0; return 0; }}"
    if _MESSAGE.search(name):
        return f'const char *{name}(void) {{ return "CUDA driver version is insufficient for CUDA runtime version"; }}'
    if name == "cudnnGetVersion":
        return f"unsigned long {name}(void) {{ return {cudnn[0] * 10000 + cudnn[1] * 100 + cudnn[2]}; }}"
    if name == "cudnnGetProperty":
        parts = ", ".join(map(str, cudnn))
        return f"int {name}(int which, int *value) {{ *value = (int[]){{{parts}}}[which]; return 0; }}"
    answer = 0 if name.startswith("__") else _INSUFFICIENT_DRIVER
    return f"long {name}(void) {{ return {answer}; }}"


if __name__ == "__main__":
    main()
