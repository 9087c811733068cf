"""A genuine accelerator for tests, on a machine without one: devices `accel:0` and `accel:1` in host memory.

    accelerator.load()              # once in a process; torch.device("accel:1") works from here on
    accelerator.why_not()           # a sentence where it cannot be built: no C++ compiler

`backend.cpp` says what of it is torch's own and what is arranged. It is compiled at first use, in about a minute, into
a cache that is keyed by torch, Python and the source.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import sys
import types
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import torch
from torch.utils import backend_registration

NAME: Final = "accel"
SOURCE: Final = Path(__file__).with_name("backend.cpp")


def why_not() -> str:
    """Return a sentence that says what is missing to build the backend; empty where it can be built."""
    missing = [tool for tool in ("g++", "ninja") if shutil.which(tool) is None]
    if not missing:
        return ""
    return f"no {' and no '.join(missing)} for the accelerator's backend: apt-get install g++ ninja-build"


@cache
def load() -> types.ModuleType:
    """Register the device with this process's torch, and give its module (`torch.accel`)."""
    backend = _compiled()
    backend.leave_unchecked(_names_without_a_check())
    backend_registration.rename_privateuse1_backend(NAME)
    module = _device_module(backend)
    torch._register_device_module(NAME, module)
    backend_registration.generate_methods_for_privateuse1_backend(for_storage=True)
    return module


def _compiled() -> Any:
    text = SOURCE.read_bytes()
    key = hashlib.sha256(b"\0".join([text, torch.__version__.encode(), sys.version.encode()])).hexdigest()[:16]
    cached = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "devtrace-accelerator" / key
    library = cached / f"{NAME}_backend.so"
    if not library.exists():
        _compile(cached)
    spec = importlib.util.spec_from_file_location(f"{NAME}_backend", library)
    assert spec is not None
    assert spec.loader is not None
    backend = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(backend)
    return backend


def _compile(folder: Path) -> None:
    from torch.utils import cpp_extension

    folder.mkdir(parents=True, exist_ok=True)
    cpp_extension.load(
        f"{NAME}_backend",
        [str(SOURCE)],
        build_directory=str(folder),
        extra_cflags=["-O1", "-g0"],
        is_python_module=False,
    )


def _names_without_a_check() -> list[str]:
    """Return the operators that torch generates no device check for, as its own tables say."""
    from torchgen.gen import parse_native_yaml
    from torchgen.model import DeviceCheckType

    native = files("torchgen") / "packaged" / "ATen" / "native"
    parsed = parse_native_yaml(str(native / "native_functions.yaml"), str(native / "tags.yaml"))
    functions = [each for each in parsed.native_functions if each.device_check == DeviceCheckType.NoCheck]
    return [f"aten::{function.func.name}" for function in functions]


def _device_module(backend: Any) -> types.ModuleType:
    module: Any = types.ModuleType(f"torch.{NAME}")
    module.is_available = lambda: True
    module.is_initialized = lambda: True
    module._is_in_bad_fork = lambda: False
    module._lazy_init = lambda: None
    module.device_count = backend.device_count
    module.current_device = backend.current_device
    module.set_device = lambda device: backend.set_device(_index(device))
    module.device = _device_guard(backend)
    module.synchronize = lambda device=None: None
    module.memory_allocated = lambda device=None: backend.memory_allocated(_index(device, backend.current_device()))
    module.get_amp_supported_dtype = lambda: [torch.float16, torch.bfloat16]
    generators = [backend.default_generator(index) for index in range(backend.device_count())]
    module.default_generators = tuple(generators)
    module.manual_seed = lambda seed: generators[backend.current_device()].manual_seed(seed)
    module.manual_seed_all = lambda seed: [each.manual_seed(seed) for each in generators] and None
    module.get_rng_state = lambda device=NAME: generators[_index(device, backend.current_device())].get_state()
    module.set_rng_state = lambda state, device=NAME: generators[_index(device, backend.current_device())].set_state(
        state
    )
    made: types.ModuleType = module
    return made


def _index(device: Any, otherwise: int = 0) -> int:
    if device is None or isinstance(device, int):
        return otherwise if device is None else device
    found = torch.device(device)
    return found.index if ":" in str(found) else otherwise


def _device_guard(backend: Any) -> type:
    class DeviceGuard:
        """Make a device the current one for the length of a block."""

        def __init__(self, device: Any) -> None:
            self.index = _index(device, backend.current_device())

        def __enter__(self) -> None:
            self.before = backend.current_device()
            backend.set_device(self.index)

        def __exit__(self, *error: object) -> None:
            backend.set_device(self.before)

    return DeviceGuard
