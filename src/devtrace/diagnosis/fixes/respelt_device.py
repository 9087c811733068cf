"""A device that torch cannot read, `"cuda0"`, `"gpu"` or `"cuda:-1"`, spelt as it was meant."""

from __future__ import annotations

import ast
import re
from typing import Final

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence import access_paths
from devtrace.diagnosis.evidence.asked_devices import AskedDevice, accelerator
from devtrace.diagnosis.findings import Edit
from devtrace.source.matching import nodes_of
from devtrace.source.plain_values import plain

_PARTS: Final = re.compile(r"\s*([a-z]+)\s*[:_.-]?\s*(\d*)\s*", re.IGNORECASE)
_KIND: Final = re.compile(r"\s*[a-z]+\s*[:_.-]?\s*", re.IGNORECASE)


def meant(text: str, there: list[str]) -> str | None:
    """Return the device that a text stands for; the first that exists, if there is none of the kind and number.

    A text that begins with no kind of device, such as `"auto"`, stands for none.
    """
    found = _PARTS.match(text)
    kind = found[1].lower() if found is not None else ""
    kind = accelerator() if kind == "gpu" else kind
    if found is None or not access_paths.device_named_by(kind):
        return None
    if found.end() < len(text):
        return there[0]
    named = f"{kind}:{int(found[2])}" if found[2] else kind
    return named if named in (*there, *(each.partition(":")[0] for each in there)) else there[0]


def respelt(asked: AskedDevice, code: Code, given: ast.AST, device: str) -> Edit | None:
    """Return the change of a text that is computed, `f"cuda{rank}"`, to one that torch reads as the device."""
    scope = asked.frame.scope()
    if plain(given, scope) != asked.device:
        return None
    kind, _, number = asked.device.partition(":")
    counted = (each for each in nodes_of(ast.Name, given) if str(plain(each, scope)) == number)
    name = next(counted, None) if number.startswith("-") and kind == accelerator() else None
    if name is not None:
        return code.replaced(given, f'{code.text(given)} if {name.id} >= 0 else "cpu"')
    for part in nodes_of(ast.Constant, given):
        if type(part.value) is str and (begun := _KIND.match(part.value)) and asked.device.startswith(part.value):
            other = part.value.replace(begun[0], f"{device.partition(':')[0]}:", 1)
            text = code.text(given).replace(part.value, other, 1)
            if plain(ast.parse(text, mode="eval").body, scope) == device:
                return code.replaced(given, text)
    return None
