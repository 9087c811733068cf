"""Fixes for a random generator that is on another device than the numbers."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.access_paths import AccessPath
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.findings import Site
from devtrace.diagnosis.fixes.fix import Fix, called_name


@dataclass(frozen=True)
class GeneratorCall:
    """The call that makes a generator, or that sets the default device which it follows."""

    code: Code
    call: ast.Call

    @property
    def site(self) -> Site:
        source, site = self.code.source, self.code.site
        statement = source.statement(self.call) or self.call
        text = self.code.text(statement)
        return Site(site.file, *source.span(statement), site.function, text, site.cell, site.cell_id)


def fix_generator(frame: FailingFrame, made: GeneratorCall | None, name: AccessPath | None) -> Fix | None:
    fix = _make_on_the_device(frame, made, name) if made is not None and name is not None else None
    return fix or _draw_then_move(frame) or _give_to_the_loader(frame)


def _make_on_the_device(frame: FailingFrame, made: GeneratorCall, name: AccessPath) -> Fix | None:
    """`torch.Generator()` in the same frame becomes `torch.Generator(device)`."""
    outer = FailingFrame.of(frame.snapshot, name.frame, frame.expected_device)
    if outer is None or name.last.owner is not None or made.code.source is not outer.code.source:
        return None
    device = outer.set_up_device(made.code.source.span(made.call).line)
    if not device:
        return None
    new = f"{made.code.text(made.call.func)}({device})"
    edit = made.code.replaced(made.call, new)
    return Fix(f"make the generator there: {new}", (edit,)) if edit is not None else None


def _draw_then_move(frame: FailingFrame) -> Fix | None:
    """`torch.randn(n, generator=g, device=d)` becomes `torch.randn(n, generator=g).to(d)`."""
    for call in ast.walk(frame.place.node):
        if not isinstance(call, ast.Call):
            continue
        words = {word.arg: word for word in call.keywords}
        if "generator" in words and "device" in words:
            kept = [frame.code.text(part) for part in (*call.args, *call.keywords) if part is not words["device"]]
            new = f"{frame.code.text(call.func)}({', '.join(kept)}).to({frame.code.text(words['device'].value)})"
            edit = frame.code.replaced(call, new)
            if edit is not None:
                return Fix(f"draw on the generator's device, then move: {new}", (edit,))
    return None


def _give_to_the_loader(frame: FailingFrame) -> Fix | None:
    """`DataLoader(..., shuffle=True)` gets a generator of the default device."""
    for call in ast.walk(frame.body):
        if isinstance(call, ast.Call) and called_name(call) == "DataLoader":
            device = frame.set_up_device(frame.code.source.span(call).line) or "torch.get_default_device()"
            body = frame.code.text(call)[:-1].rstrip().removesuffix(",")
            edit = frame.code.replaced(call, f"{body}, generator=torch.Generator({device}))")
            if edit is not None:
                return Fix(f"give it a generator: generator=torch.Generator({device})", (edit,))
    return None
