"""The magics and the life of a cell around its trace: beside `quiet_shell` the only module that may import IPython.

`%%devtrace` is not run as a cell magic. An input transformer makes its line a comment, or drops it where a second
%%magic follows, so that every other line keeps its number. The recording begins at pre_run_cell and ends at
post_run_cell. The cell itself is run by IPython as ever: the last expression displays, `await` works, errors are the
cell's own. Only where the line comes by another way (`%%time` above it, run_cell_magic) is the cell magic called.

Nothing is added to the user's exception (no note): the report stands right below the traceback, and says it once.
"""

from __future__ import annotations

import ast
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any
from weakref import WeakKeyDictionary

from IPython.core import completer
from IPython.core import magic as ipythons_magic
from IPython.core.error import InputRejected
from IPython.core.error import UsageError as IPythonUsageError
from IPython.core.interactiveshell import ExecutionInfo, ExecutionResult, InteractiveShell

from devtrace.api.module_watch import watch_modules
from devtrace.api.options import STANDING_BUDGET, Options
from devtrace.notebook import display_language, kept_traces, panel_comm, usage
from devtrace.notebook.cells import Cell, Tracing
from devtrace.notebook.commands import Commands
from devtrace.notebook.earlier_cells import earlier_cells, earlier_texts
from devtrace.notebook.pending_clear import PendingClear
from devtrace.runtime.patches import Call, Patches
from devtrace.runtime.requirements import sentence_of_fault
from devtrace.runtime.tracebacks import hide_our_frames, text_of
from devtrace.words import language
from devtrace.words.catalogue import sentence
from devtrace.words.errors import DevtraceError

# The names that code goes by which IPython's own magics run: with %% lines are counted from below the magic.
_TIMED = {"time": ("<timed exec>", "<timed eval>"), "timeit": ("<magic-timeit>",)}

# Colab has IPython 7.34, which completes no magic of ours and shows what one returns also above a `;`.
_context_matcher: Any = getattr(completer, "context_matcher", None)
_silenced: Any = getattr(ipythons_magic, "output_can_be_silenced", lambda function: function)

extensions: WeakKeyDictionary[InteractiveShell, Extension] = WeakKeyDictionary()


def load(shell: InteractiveShell) -> None:
    if shell not in extensions:
        language.CHOICE.front_end = display_language.chosen()
        with _in_ipythons_words():
            extensions[shell] = Extension(shell)


def unload(shell: InteractiveShell) -> None:
    if extension := extensions.pop(shell, None):
        extension.close()


@contextmanager
def _in_ipythons_words() -> Iterator[None]:
    """Turn a DevtraceError into one sentence, as IPython does for every magic."""
    try:
        yield
    except DevtraceError as error:
        raise IPythonUsageError(str(error)) from None


class _Refused(InputRejected, ast.NodeTransformer):
    """Stops a cell whose `%%devtrace` line has an error; shown as IPython shows a UsageError.

    It is also the AST transformer that rejects the cell: the one way that IPython has to stop a cell at its beginning.
    """

    def visit(self, node: ast.AST) -> ast.AST:  # the root, which IPython hands over
        raise self

    def _render_traceback_(self) -> list[str]:
        return [f"UsageError: {self}"]


_Refused.__name__ = IPythonUsageError.__name__


@dataclass(slots=True)
class _RunningCell:
    """A cell between pre_run_cell and post_run_cell: `options` if it is traced, `is_requested` if on request."""

    raw: str
    cell: Cell
    options: Options | None = None
    is_requested: bool = False
    refused: _Refused | None = None
    began: float = field(default_factory=monotonic)

    def part(self, file: str, code: str, raw: str) -> Cell:
        """Return a Cell for code that this cell runs through IPython: at its line in this cell if the text is there."""
        position = self.raw.rfind(raw.strip())
        first = 1 + self.raw[:position].count("\n")
        return replace(self.cell, file=file, code=code, first=first) if position >= 0 else Cell(file, code)


class Extension:
    """devtrace in one shell, from `%load_ext` to `%unload_ext`."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self.tracing = Tracing(shell.user_ns)
        self.commands = Commands(self.tracing, self)
        self._clear = PendingClear()
        self._local = threading.local()
        with ExitStack() as undo:
            self._install(undo)
            self._undo = undo.pop_all()

    def close(self) -> None:
        with self._clear.behind():
            self._undo.close()

    def leave_running_cell(self) -> None:
        """Forget the running cell in a fork that it asked for: what runs from here on is no part of it."""
        self._stack().clear()

    def _install(self, undo: ExitStack) -> None:
        undo.callback(watch_modules())
        undo.callback(self.tracing.close)
        self.tracing.adopt_cells(earlier_cells(self.shell))
        self.tracing.ran |= earlier_texts(self.shell)
        self.tracing.took |= dict.fromkeys(self.tracing.ran, 0.0)
        if devices := os.environ.get("DEVTRACE_SIMULATE"):
            self.tracing.simulate(devices)
        lists: list[tuple[list[Any], Any]] = [
            (self.shell.input_transformers_cleanup, self._without_magic),
            (self.shell.events.callbacks["pre_run_cell"], self._on_pre_run_cell),
            (self.shell.events.callbacks["post_run_cell"], self._on_post_run_cell),
        ]
        if _context_matcher:
            lists.append((self.shell.Completer.custom_matchers, self._complete))
        for callbacks, callback in lists:
            callbacks.append(callback)
            undo.callback(_discard, callbacks, callback)
        magics = (
            ("line", "devtrace", self._line_magic),
            ("cell", "devtrace", self._cell_magic),
            ("line", "%devtrace", self._misplaced_magic),
        )
        for kind, name, magic in magics:
            self.shell.magics_manager.register_function(magic, kind, name)
            undo.callback(self.shell.magics_manager.magics[kind].pop, name, None)
        undo.callback(kept_traces.let_find(self.tracing.history))
        patches = Patches()
        undo.callback(patches.undo)
        patches.wrap(self.shell, "showtraceback", self._show_traceback)
        # After our own events: the panel is called once a cell's trace has begun or ended.
        undo.callback(panel_comm.open_panel(self.shell, self.tracing))

    def _show_traceback(self, show: Call, exc_tuple: Any = None, *args: Any, **kwargs: Any) -> None:
        """Hide our frames before an error is shown. The shell has a slot for one handler, which is left to the user."""
        error = exc_tuple[1] if exc_tuple else sys.exc_info()[1]
        if isinstance(error, BaseException):
            hide_our_frames(error)
        show(exc_tuple, *args, **kwargs)

    # The life of a cell.

    def _stack(self) -> list[_RunningCell]:
        """List the cells that run in this thread, the outermost first (%%capture runs its body as a cell)."""
        stack: list[_RunningCell] = vars(self._local).setdefault("stack", [])
        return stack

    def _on_pre_run_cell(self, info: ExecutionInfo) -> None:
        stack = self._stack()
        outer = stack[0] if stack else None
        running = _RunningCell(info.raw_cell or "", Cell("", self._code_of(info)))
        stack.append(running)
        with self._guarded():
            running.cell = self._cell_of(info, running.cell.code, outer)
            if outer is not None:
                self.tracing.register_cell(running.cell)
                return
            self._register(running)
            self._begin_trace(running)

    def _on_post_run_cell(self, result: ExecutionResult | None) -> None:
        stack = self._stack()
        # IPython ends a cell with nothing in it that it never began.
        is_empty = result is not None and result.info is not None and not (result.info.raw_cell or "").strip()
        if is_empty or not stack:
            return
        running = stack.pop()
        error = result.error_in_exec if result is not None else None
        key = running.cell.id or running.cell.label
        self.tracing.raised[key] = "" if error is None else text_of(error) or "?"
        self.tracing.took[key] = monotonic() - running.began
        _discard(self.shell.ast_transformers, running.refused)
        if running.options is not None:
            with self._clear.behind(), self._guarded():
                self._end_trace(running, running.options, result, error)
        elif not stack and error is not None:
            with self._guarded("magic.not-explained"):
                self.commands.cell_failed(running.cell, error)

    @contextmanager
    def _guarded(self, what: str = "magic.not-traced-to-its-end") -> Iterator[None]:
        """Turn an exception of devtrace's own code into a line on stderr: the user's cell must not fail of it."""
        try:
            yield
        except (Exception, KeyboardInterrupt) as fault:  # noqa: BLE001 (the cell runs on, whatever it was)
            sys.stderr.write(sentence_of_fault(what, fault) + "\n")

    def _begin_trace(self, running: _RunningCell) -> None:
        lines = self._cleaned_lines(running.raw)
        index = usage.magic_line(lines)
        requested = self.tracing.take_request(running.cell)
        misplaced = usage.line_of_misplaced(running.cell.code) if index is None else 0
        if index is None and not misplaced and (self.tracing.run is not None or not (requested or self.tracing.on)):
            return
        running.is_requested = requested or index is not None
        try:
            if misplaced:
                raise usage.misplaced(misplaced + running.cell.first - 1)
            options = Options(max_ops=self.tracing.max_ops, budget=None if running.is_requested else STANDING_BUDGET)
            if index is not None:
                options = usage.cell_options(self._with_names_filled_in(lines[index][len("%%devtrace") :]))
            self.tracing.begin(running.cell, options, is_requested=running.is_requested)
        except DevtraceError as error:
            if index is None and not misplaced:
                raise
            running.refused = _Refused(str(error))
            self.shell.ast_transformers.insert(0, running.refused)
        else:
            running.options = options
            self._clear.begin(self.shell.display_pub)

    def _end_trace(self, running: _RunningCell, options: Options, result: ExecutionResult | None, error: Any) -> None:
        if result is not None and result.error_before_exec is not None:
            self.tracing.abandon()
            return
        traced = self.tracing.finish(error)
        if running.is_requested and usage.is_alone(running.raw):
            sys.stdout.write(sentence("magic.empty-cell") + "\n")
            return
        # What %%time was given may be no Python either.
        if isinstance(error, SyntaxError) and (traced is None or not len(traced.trace.ops)):
            return
        if running.is_requested:
            self.commands.show_asked(traced, options)
        elif traced is not None:
            self.commands.show_in_passing(traced)

    def _with_names_filled_in(self, line: str) -> str:
        """Return a line with {names} and $names filled in, as for any magic; the depth keeps our own names out."""
        return self.shell.var_expand(line, depth=1_000_000) if "{" in line or "$" in line else line

    # Which cell it is.

    def _code_of(self, info: ExecutionInfo) -> str:
        """Return the cell as IPython transformed it; before version 9 it does not pass it on."""
        raw = info.raw_cell or ""
        try:
            return str(getattr(info, "transformed_cell", None) or self.shell.transform_cell(raw))
        except Exception:  # noqa: BLE001 (anybody's transformer; IPython shows what it raises)
            return raw

    def _cell_of(self, info: ExecutionInfo, code: str, outer: _RunningCell | None) -> Cell:
        raw = info.raw_cell or ""
        # IPython raises execution_count when it begins a cell of the history (9) or ends it (8); prompt_count knows.
        number = self.shell.displayhook.prompt_count if info.store_history else self.shell.execution_count
        file = self.shell.compile.get_code_name(raw, code, number)
        if outer is not None:
            return outer.part(file, code, raw)
        parent = getattr(self.shell, "parent_header", None) or {}
        id = getattr(info, "cell_id", None) or str(parent.get("metadata", {}).get("cellId", ""))
        blank = raw[: len(raw) - len(raw.lstrip())].count("\n")
        first = 1 + blank + usage.lines_above(self._cleaned_lines(raw))
        return Cell(file, code, number if info.store_history else None, id, first)

    def _cleaned_lines(self, raw: str) -> list[str]:
        """Return the lines as they reach our transformer: without blank ones above, indent and prompts."""
        lines = raw.splitlines(keepends=True)
        for transform in self.shell.input_transformers_cleanup:
            if transform == self._without_magic:
                break
            lines = transform(lines)
        return lines

    def _without_magic(self, lines: list[str]) -> list[str]:
        """Make the `%%devtrace` line a comment, but none in what a running cell hands to IPython (%%time's body)."""
        return lines if self._stack() else usage.without_magic(lines)

    # Left out of IPython's is-it-complete check, so that a terminal waits for the lines below `%%devtrace`.
    _without_magic.has_side_effects = True  # type: ignore[attr-defined]

    def _register(self, running: _RunningCell) -> None:
        """Register a cell: its text, and which lines its code and that of its own magics have."""
        self.tracing.register_cell(running.cell)
        key = running.cell.id or running.cell.label
        for earlier in [cell for cell, known in self.tracing.ran.items() if known == (cell, running.raw)]:
            del self.tracing.ran[earlier]  # the same cell, when its id was not known yet
        self.tracing.took.pop(key, None)
        self.tracing.ran[key] = (running.cell.label, running.raw)
        starts = dict(usage.bodies(lines := running.raw.splitlines(keepends=True)))
        for magic, files in _TIMED.items():
            body = "".join(lines[starts[magic] :]) if magic in starts else ""
            code = self.shell.transform_cell(body) if body else ""
            for file in files:
                self.tracing.register_cell(replace(running.cell, file=file, code=code, first=starts.get(magic, -1) + 1))

    # The magics.

    def _line_magic(self, line: str) -> Any:
        with _in_ipythons_words():
            return self.commands.run(line)

    def _misplaced_magic(self, line: str) -> None:
        """`%%devtrace` on a later line, as IPython reads it: below the `%load_ext` of the same cell, or %%time."""
        raise IPythonUsageError(str(usage.misplaced()))

    @_silenced  # type: ignore[untyped-decorator]
    def _cell_magic(self, line: str, cell: str) -> Any:
        stack = self._stack()
        with _in_ipythons_words():
            options = usage.cell_options(line)
            self.tracing.begin(stack[0].cell if stack else Cell("", cell), options, is_requested=True)
        try:
            value = self._execute(cell)
        except BaseException as error:
            with self._guarded():
                self.commands.show_asked(self.tracing.finish(error), options)
            raise
        with self._guarded():
            self.commands.show_asked(self.tracing.finish(), options)
        return value

    def _execute(self, body: str) -> Any:
        """Run the lines below the magic as %%time does: the value of the last expression is the magic's."""
        code = self.shell.transform_cell(body)
        file = self.shell.compile.cache(code, self.shell.displayhook.prompt_count, raw_code=body)
        stack = self._stack()
        if stack:
            self.tracing.register_cell(stack[0].part(file, code, body))
        tree = self.shell.transform_ast(self.shell.compile.ast_parse(code, filename=file))
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        flags = self.shell.compile.flags
        exec(compile(tree, file, "exec", flags, dont_inherit=True), self.shell.user_ns)
        if last is None:
            return None
        return eval(compile(ast.Expression(last.value), file, "eval", flags, dont_inherit=True), self.shell.user_ns)

    # What is shown and offered.

    @property
    def text_only(self) -> bool:
        """True in a terminal."""
        formatter = self.shell.display_formatter
        return formatter is not None and list(formatter.active_types) == ["text/plain"]

    def publish(self, data: dict[str, Any], metadata: dict[str, Any]) -> None:
        self.shell.display_pub.publish(data=data, metadata=metadata)

    @(_context_matcher() if _context_matcher else _silenced)  # type: ignore[untyped-decorator]
    def _complete(self, context: Any) -> dict[str, object]:
        line = context.text_until_cursor.lstrip()
        names = [traced.name or str(traced.cell.count) for traced in self.tracing.history]
        offers = usage.completions(line, names) if line.startswith(("%devtrace ", "%%devtrace ")) else []
        word = line.rpartition(" ")[2]
        completions = [completer.SimpleCompletion(offer, type="param") for offer in offers]
        return {"completions": completions, "matched_fragment": word, "suppress": bool(offers), "ordered": True}


Extension._line_magic.__doc__ = Extension._cell_magic.__doc__ = usage.help_text()


def _discard(callbacks: list[Any], callback: Any) -> None:
    if callback in callbacks:
        callbacks.remove(callback)
