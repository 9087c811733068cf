"""Derive the generated half of CUDA's device rules from torch's own description of its operators.

    python tests/data/cuda_rules_from_torch.py src/devtrace/simulation/cuda_rules.tsv

adds to the table what the newest torch, with which it is run, has beyond it. Rows of operators that are gone stay, and
one that now reads otherwise gets the release before which it was right.

torchgen ships native_functions.yaml and the code that writes RegisterCUDA.cpp from it. An operator with a CUDA kernel
gets one comparison per tensor argument (`exact`, in the order out, then positional; the wrapper's name is part of the
message) unless the file says `device_check: NoCheck`, which marks the kernels that let TensorIterator compare
(`iterator`), compare their `out=` alone (`output`, a structured kernel) or look after themselves (`none`). An operator
without a kernel of its own for CUDA has no row: it runs the same C++ for every device and is judged by what it calls.
"""

from __future__ import annotations

import functools
import re
import sys
from pathlib import Path

import torch
import torchgen
from torchgen.api.types import DispatcherSignature, NativeSignature
from torchgen.gen import get_grouped_native_functions, parse_native_yaml
from torchgen.model import DeviceCheckType, DispatchKey, NativeFunction, NativeFunctionsGroup

NATIVE = Path(torchgen.__path__[0]) / "packaged" / "ATen" / "native"


def rows() -> list[tuple[str, str, str]]:
    """(operator with overload, check, wrapper name), sorted."""
    parsed = parse_native_yaml(str(NATIVE / "native_functions.yaml"), str(NATIVE / "tags.yaml"))
    cuda = parsed.backend_indices[DispatchKey.CUDA]
    found = []
    for group in get_grouped_native_functions(parsed.native_functions):
        if isinstance(group, NativeFunctionsGroup):
            structured = group.structured and cuda.has_kernel(group)
            found += [_row(f, structured, group) for f in group.functions() if structured or cuda.has_kernel(f)]
        elif cuda.has_kernel(group):
            found.append(_row(group, False, None))
    return sorted(found)


def _row(function: NativeFunction, structured: bool, group: NativeFunctionsGroup | None) -> tuple[str, str, str]:
    name = str(function.func.name)
    if function.device_check is DeviceCheckType.NoCheck:
        inherits = structured and group is not None and group.out.structured_inherits == "TensorIteratorBase"
        if structured and not inherits and function.func.arguments.out:
            return name, "output", ""
        return name, "iterator" if inherits or "TensorIterator" in _comments().get(name, "") else "none", ""
    return name, "exact", _wrapper(function, structured)


@functools.cache
def _comments() -> dict[str, str]:
    """Return what the file says after `device_check: NoCheck`, which the parser drops."""
    entries = re.split(r"\n(?=- func: )", (NATIVE / "native_functions.yaml").read_text())
    found = {}
    for entry in entries:
        name, check = re.match(r"- func: ([\w.]+)", entry), re.search(r"device_check: NoCheck(.*)", entry)
        if name and check:
            found[name[1]] = check[1]
    return found


def _wrapper(function: NativeFunction, structured: bool) -> str:
    if structured:
        return str(NativeSignature(function.func, prefix="wrapper_CUDA_", symint=False).name())
    prefix = f"wrapper_CUDA_{function.func.name.overload_name}_"
    return str(DispatcherSignature.from_schema(function.func, prefix=prefix, symint=False).name())


def main() -> None:
    table = Path(sys.argv[1])
    head, *lines = table.read_text().splitlines()
    made = {"\t".join(row).rstrip(): row[0] for row in rows()}
    changed = set(made.values())
    release = ".".join(torch.__version__.split(".")[:2])
    kept = [
        f"{line}\t{release}" if line.split("\t")[0] in changed and line not in made and line.count("\t") < 3 else line
        for line in lines
    ]
    table.write_text(
        "\n".join([head, *sorted({*kept, *made}, key=lambda line: (line.split("\t")[0], line.count("\t"))), ""])
    )


if __name__ == "__main__":
    main()
