"""What a program computed: the variables that it leaves and what it printed, to compare two runs of it.

A fix of a cost may change how often data is copied, and on which device it ends, but no value. Sums that are added up
in another order differ in their last bits, which counts as the same.

Of the functions that a program's top level calls it takes the variables, too, as they are when these return:

    def main(): ...         # a script that does all its work here leaves no variable of its own
"""

import inspect
import json
import math
import random
import re
import sys
from collections import Counter
from collections.abc import Mapping
from itertools import islice
from types import FrameType, FunctionType, ModuleType
from typing import Any, Final

from devtrace.source.object_walk import is_tensor
from devtrace.source.safe_values import instance_dict
from devtrace.source.user_code import owner_of

DEEPEST: Final = 6
MOST_ITEMS: Final = 1000
MOST_NUMBERS: Final = 4096
"""Numbers of one tensor that are compared: all of a small one, evenly spread ones of a large one."""
CLOSE: Final = 1e-4
"""Of the larger number; half precision has three digits, which is `CLOSE_IN_HALF`."""
CLOSE_IN_HALF: Final = 1e-2
TINY: Final = 1e-6
_PLAIN: Final = (bool, int, float, str, type(None))
_OF_IPYTHON: Final = frozenset(("In", "Out", "exit", "quit", "get_ipython"))
_NUMBER: Final = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|\bnan\b|\binf\b")
_DEVICE: Final = re.compile(r"cuda(:\d+)?|cpu")
_WHERE: Final = re.compile(r",?\s*device='?(cuda(:\d+)?|cpu)'?")
"""Where a tensor is, which is what a patch changes."""

Values = Mapping[str, Any]


def seed() -> None:
    """Let every run draw the same random numbers, unless the program seeds itself."""
    import numpy.random  # noqa: F401 (numpy loads it when it is first asked for, and then draws a seed)

    random.seed(0)
    for name, function in (("numpy.random", "seed"), ("torch", "manual_seed")):
        if name in sys.modules:
            getattr(sys.modules[name], function)(0)


def values_of(namespace: Mapping[str, object]) -> dict[str, Any]:
    """Return numbers, texts and tensors by the path to them: `model.weight`, `history[3]`."""
    values: dict[str, Any] = {}
    visited: set[int] = set()
    for name, value in list(namespace.items()):
        if not name.startswith("_") and name not in _OF_IPYTHON:
            _collect_values(values, visited, name, value, DEEPEST)
    return values


def _collect_values(values: dict[str, Any], visited: set[int], path: str, value: Any, depth: int) -> None:
    if type(value) in _PLAIN:
        values[path] = value
    elif is_tensor(value) or type(value).__module__ == "numpy":
        numbers = _numbers(value)
        if numbers is not None:
            values[path] = numbers
    elif depth and id(value) not in visited and not isinstance(value, ModuleType | FunctionType | type):
        visited.add(id(value))
        for step, part in islice(_parts_with_steps(value), MOST_ITEMS):
            _collect_values(values, visited, path + step, part, depth - 1)


def _parts_with_steps(value: Any) -> list[tuple[str, Any]]:
    """Return what a container or an object stores, with steps like `[3]` and `.weight`; a tensor as key is numbered."""
    kind = type(value)
    if issubclass(kind, dict):
        keys = [repr(key) if type(key) in (str, int) else at * is_tensor(key) for at, key in enumerate(value, 1)]
        return [(f"[{key}]", part) for key, part in zip(keys, dict.values(value), strict=True) if key]
    for base in (list, tuple):
        if issubclass(kind, base):
            return [(f"[{index}]", part) for index, part in enumerate(base.__iter__(value))]
    stored = instance_dict(value)
    tables = [stored[name] for name in ("_parameters", "_buffers", "_modules") if isinstance(stored.get(name), dict)]
    parts = [(f".{key}", part) for table in tables for key, part in table.items()]
    return [*parts, *((f".{key}", part) for key, part in stored.items() if not key.startswith("_"))]


def _numbers(array: Any) -> dict[str, Any] | None:
    """Return the shape, the type and the numbers of a tensor or an array; None if it has no plain numbers."""
    try:
        on_cpu = array.detach().to("cpu") if is_tensor(array) else array
        flat = on_cpu.reshape(-1)
        count = int(flat.shape[0])
        sample = flat[:: max(1, math.ceil(count / MOST_NUMBERS))].tolist()
        numbers = [part for z in sample for part in (z.real, z.imag)] if "complex" in str(array.dtype) else sample
        data = {"shape": list(array.shape), "dtype": str(array.dtype), "numbers": numbers}
        json.dumps(data)
    except Exception:  # noqa: BLE001 (a sparse, fake or lazy one: it has no value here)
        return None
    return data


def differing(before: Values, after: Values) -> list[str]:
    """Return the names of values that a second run does not have, or has other than the first."""
    return [name for name, value in before.items() if name not in after or not _is_same_value(value, after[name])]


def _is_same_value(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        if (one["shape"], one["dtype"]) != (other["shape"], other["dtype"]):
            return False
        close = CLOSE_IN_HALF if one["dtype"].endswith("float16") else CLOSE
        finite = (number for number in one["numbers"] if type(number) in (int, float) and math.isfinite(number))
        scale = max(map(abs, finite), default=0.0)
        pairs = zip(one["numbers"], other["numbers"], strict=True)
        return all(_is_close(left, right, close, TINY * scale) for left, right in pairs)
    if isinstance(one, float) and isinstance(other, int | float):
        return _is_close(one, other, CLOSE, 0.0)
    if isinstance(one, str) and isinstance(other, str):
        return _DEVICE.sub("cpu", one) == _DEVICE.sub("cpu", other)
    return type(one) is type(other) and bool(one == other)


def _is_close(one: Any, other: Any, relative: float, absolute: float) -> bool:
    if type(one) is float and type(other) in (int, float):
        is_nan = math.isnan(one) and math.isnan(other)
        return is_nan or one == other or math.isclose(one, other, rel_tol=relative, abs_tol=absolute)
    return type(one) is type(other) and bool(one == other)


def is_same_output(before: str, after: str) -> bool:
    """Return whether two texts have the same words, and the same numbers up to their last digit."""
    before, after = _WHERE.sub("", before), _WHERE.sub("", after)
    if _NUMBER.split(before) != _NUMBER.split(after):
        return False
    pairs = zip(_NUMBER.findall(before), _NUMBER.findall(after), strict=True)
    return all(one == other or _is_close_number(one, other) for one, other in pairs)


def _is_close_number(one: str, other: str) -> bool:
    if "." not in one + other:  # whole numbers must be equal
        return False
    digits = len(one.partition(".")[2].lower().partition("e")[0])
    return _is_close(float(one), float(other), CLOSE, 1.001 * 10.0**-digits if "e" not in one.lower() else 0.0)


class ValuesOfRun:
    """Values that a script leaves.

    Of many calls of a function it looks at the first, second, fourth, eighth ...
    """

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self._namespace: Mapping[str, object] = {}
        self._calls = Counter[str]()

    def begin(self, namespace: Mapping[str, object]) -> None:
        self._namespace = namespace
        seed()
        if sys.gettrace() is None:  # a debugger or coverage is there first
            sys.settrace(self._trace_call)

    def end(self) -> None:
        sys.settrace(None)
        self.values |= values_of(self._namespace)

    def _trace_call(self, frame: FrameType, event: str, _: Any) -> Any:
        caller, code = frame.f_back, frame.f_code
        if caller is None or caller.f_globals is not self._namespace or caller.f_code.co_name != "<module>":
            return None
        is_plain_function = code.co_flags & inspect.CO_OPTIMIZED and not code.co_flags & inspect.CO_GENERATOR
        if not is_plain_function or code.co_name[:1] == "<" or owner_of(code.co_filename) != "user":
            return None
        frame.f_trace_lines = False
        return self._trace_return

    def _trace_return(self, frame: FrameType, event: str, _: Any) -> Any:
        name = frame.f_code.co_qualname
        if event == "return":
            self._calls[name] += 1
            if self._calls[name].bit_count() == 1:  # 1, 2, 4, 8 ...
                values = _values_unseen(frame.f_locals)
                self.values.update((f"{name}: {path}", value) for path, value in values.items())
        return self._trace_return


def _values_unseen(variables: Mapping[str, object]) -> dict[str, Any]:
    """Return values while the program runs; no recording sees that they are read."""
    torch = sys.modules["torch"]
    with torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunction():
        return values_of(variables)
