"""Fixes for a random generator that is on another device than the numbers."""

import ast
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.access_paths import AccessPath
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.findings import Site
from devtrace.diagnosis.fixes import proof
from devtrace.diagnosis.fixes.fix import Fix, suggested
from devtrace.source.matching import called_name, calls_in, keyword
from devtrace.words.catalogue import sentence


@dataclass(frozen=True)
class GeneratorCall:
    """A call that makes a generator, or that sets the default device which the generator follows."""

    code: Code
    call: ast.Call

    @property
    def site(self) -> Site:
        source, site = self.code.source, self.code.site
        statement = source.statement(self.call) or self.call
        text = self.code.text(statement)
        return Site(site.file, *source.span(statement), site.function, text, site.cell, site.cell_id)


def fix_generator(frame: FailingFrame, made: GeneratorCall | None, name: AccessPath | None) -> Fix | None:
    """Return the first fix whose names have values at its lines."""
    suggested = [_draw_then_move(frame), _give_to_the_loader(frame)]
    if made is not None and name is not None:
        suggested.insert(0, _make_on_the_device(frame, made, name))
    fixes = itertools.chain.from_iterable(suggested)
    return next((fix for fix in fixes if not any(proof.unwritable(frame.snapshot, edit) for edit in fix.edits)), None)


def _make_on_the_device(frame: FailingFrame, made: GeneratorCall, name: AccessPath) -> Iterator[Fix]:
    """`torch.Generator()` in the same frame becomes `torch.Generator(device)`."""
    outer = FailingFrame.of(frame.snapshot, name.frame, frame.expected_device)
    if outer is None or name.last.owner is not None or made.code.source is not outer.source:
        return
    device = outer.setup_device_code(outer.source.span(made.call).line)
    if not device:
        return
    new = f"{made.code.text(made.call.func)}({device})"
    yield from suggested(sentence("fixed.generator", code=new), made.code.replaced(made.call, new))


def _draw_then_move(frame: FailingFrame) -> Iterator[Fix]:
    """`torch.randn(n, generator=g, device=d)` becomes `torch.randn(n, generator=g).to(d)`."""
    text = frame.code.text
    for call in calls_in(frame.source_node.node):
        device = keyword(call, "device")
        if device is not None and keyword(call, "generator") is not None:
            kept = [text(part) for part in (*call.args, *call.keywords) if getattr(part, "arg", "") != "device"]
            new = f"{text(call.func)}({', '.join(kept)}).to({text(device)})"
            edit = frame.code.replaced(call, new)
            yield from suggested(sentence("fixed.draw", code=new), edit)


def _give_to_the_loader(frame: FailingFrame) -> Iterator[Fix]:
    """`DataLoader(..., shuffle=True)` gets a generator of the default device."""
    for call in calls_in(frame.body):
        if called_name(call) == "DataLoader":
            device = frame.setup_device_code(frame.source.span(call).line) or "torch.get_default_device()"
            made = f"torch.Generator({device})"
            edit = frame.code.replaced(call, frame.code.with_argument(call, "generator", made))
            yield from suggested(sentence("fixed.give-generator", code=f"generator={made}"), edit)
