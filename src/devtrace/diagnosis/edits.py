"""Edits of a file: built from its syntax tree, as whole lines; after each of them Python can parse the file."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from devtrace.diagnosis.findings import Edit, Site
from devtrace.source.matching import keyword, nodes_of
from devtrace.source.parsing import Source, parse

_TIGHT = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Constant, ast.List, ast.Tuple, ast.Dict)


@dataclass(frozen=True)
class Code:
    """A source, with the file or cell that its edits are for."""

    source: Source
    site: Site

    def replaced(self, node: ast.AST, text: str) -> Edit | None:
        """Replace `node` by `text`."""
        return self.all_replaced([(node, text)])

    def all_replaced(self, changes: Sequence[tuple[ast.AST, str]]) -> Edit | None:
        """Replace several nodes, none inside another, by texts: one edit over all of their lines."""
        spans = [self.source.span(node) for node, _ in changes]
        first, last = min(span.line for span in spans), max(span.end_line for span in spans)
        before = self._lines(first, last)
        return self._checked(first, before, self._with(before, first, 0, changes))

    def above(self, statement: ast.stmt, *lines: str) -> Edit | None:
        """Add lines before a statement, with the indent of its line."""
        return self._added(self.source.span(statement).line - 1, self._indent(statement), lines)

    def below(self, statement: ast.stmt, *lines: str) -> Edit | None:
        """Add lines after the last line of a statement, with the indent of its first line."""
        if self.site.cell is not None and statement is self.source.tree.body[-1] and " = " not in lines[-1]:
            lines = (*lines[:-1], f"{lines[-1]};")  # else the cell shows what its last line gives
        return self._added(self.source.span(statement).end_line, self._indent(statement), lines)

    def into(self, statement: ast.For | ast.With | ast.AsyncFor | ast.AsyncWith, *lines: str) -> Edit | None:
        """Add lines at the top of a compound statement's body."""
        first = self.source.span(statement.body[0])
        if first.line == self.source.span(statement).line:
            return None
        return self._added(first.line - 1, first.column, lines)

    def within(self, statement: ast.stmt, header: str) -> Edit | None:
        """Put a statement that has its lines for itself under a header: `with torch.no_grad():`."""
        span = self.source.span(statement)
        lines = self._lines(span.line, span.end_line)
        constants = map(self.source.span, nodes_of(ast.Constant, statement))
        is_alone = lines.partition("  #")[0].strip() == self.text(statement)
        if not is_alone or any(each.line < each.end_line for each in constants):
            return None
        inside = "\n".join(f"    {line}" for line in lines.split("\n"))
        return self._checked(span.line, lines, f"{' ' * span.column}{header}\n{inside}")

    def removed(self, statement: ast.stmt) -> Edit | None:
        """Remove a statement that has its lines for itself, else nothing; `pass` remains where nothing else is left."""
        span = self.source.span(statement)
        lines = self._lines(span.line, span.end_line)
        rest = lines.strip().removeprefix(self.text(statement)).strip()
        if rest and not rest.startswith("#"):
            return None
        is_only_one = len(self.source.block(statement)) <= 1
        return self._checked(span.line, lines, " " * span.column + "pass" if is_only_one else "")

    def text(self, node: ast.AST) -> str:
        return self.source.segment(node)

    def site_of(self, node: ast.AST) -> Site:
        """Return a site for a piece of the source that no op has recorded."""
        function = self.source.function(node)
        name = getattr(function, "name", "<lambda>") if function is not None else "<module>"
        return Site(self.site.file, *self.source.span(node), name, self.text(node), self.site.cell, self.site.cell_id)

    def with_argument(self, call: ast.Call, word: str, text: str) -> str:
        """Return `f(a, device=d)` for `f(a)`, and for `f(a, device=other)`."""
        argument = keyword(call, word)
        if argument is not None:
            return self.text_with(call, (argument, text))
        body = self.text(call)[:-1].rstrip().removesuffix(",")
        return f"{body}{', ' if call.args or call.keywords else ''}{word}={text})"

    def text_with(self, node: ast.AST, *changes: tuple[ast.AST, str]) -> str:
        """Return the text of `node` in which parts, none inside another, are replaced by texts."""
        span = self.source.span(node)
        return self._with(self.text(node), span.line, span.column, changes)

    def _with(self, text: str, line: int, column: int, changes: Sequence[tuple[ast.AST, str]]) -> str:
        """Return a text that begins at a line and a column, with nodes in it replaced."""
        lines = text.encode().split(b"\n")
        for span, new in sorted(((self.source.span(part), new) for part, new in changes), reverse=True):
            top, bottom = span.line - line, span.end_line - line
            before = lines[top][: span.column - (column if top == 0 else 0)]
            after = lines[bottom][span.end_column - (column if bottom == 0 else 0) :]
            lines[top : bottom + 1] = [before + new.encode() + after]
        return b"\n".join(lines).decode()

    def method_call(self, call: ast.AST) -> str:
        """Return `to(d)` of `x.to(d)`; empty for what is no call of a method."""
        match call:
            case ast.Call(func=ast.Attribute(attr=name), args=arguments, keywords=keywords):
                return f"{name}({', '.join(map(self.text, (*arguments, *keywords)))})"
        return ""

    def called_on(self, node: ast.expr, call: str) -> str:
        """Return `x.call()` or `(a + b).call()`."""
        text = self.text(node)
        return f"{text}.{call}" if isinstance(node, _TIGHT) else f"({text}).{call}"

    def _lines(self, first: int, last: int) -> str:
        return "\n".join(self.source.line(number) for number in range(first, last + 1))

    def _indent(self, statement: ast.stmt) -> int:
        """Return the column of `a` for either statement of the line `a = f(); b = g()`: of the line's first one."""
        spans = map(self.source.span, self.source.block(statement) or [statement])
        return min(span.column for span in spans if span.line == self.source.span(statement).line)

    def _added(self, line: int, column: int, lines: Sequence[str]) -> Edit | None:
        return self._checked(line, "", "\n".join(" " * column + line for line in lines))

    def _checked(self, line: int, before: str, after: str) -> Edit | None:
        """Return an edit, if it changes something and leaves source that can be read."""
        if "".join(before.split()) == "".join(after.split()):
            return None
        edit = Edit(self.site.file, self.site.cell, line, before, after)
        return edit if Edited.of(self.source, edit) is not None else None


def merged(edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """Return edits of several fixes as one set, two of the same lines as one edit; nothing if two contradict."""
    union: list[Edit] = []
    for edit in dict.fromkeys(edits):
        index = next((index for index, other in enumerate(union) if _overlap(edit, other)), None)
        if index is None:
            union.append(edit)
            continue
        both = _both(union[index], edit)
        if both is None:
            return ()
        union[index] = both
    return tuple(union)


def _overlap(one: Edit, other: Edit) -> bool:
    """Return whether two edits change the same lines, or add lines at the same place."""
    if (one.file, one.cell) != (other.file, other.cell):
        return False
    if not (one.before and other.before):
        return one.before == other.before and one.line == other.line
    return one.line <= other.line + other.before.count("\n") and other.line <= one.line + one.before.count("\n")


def _both(one: Edit, other: Edit) -> Edit | None:
    """Return one edit with the changes of two that overlap; None if they contradict each other."""
    if not one.before:  # both only add lines
        lines = one.after.split("\n")
        return replace(one, after="\n".join([*lines, *(line for line in other.after.split("\n") if line not in lines)]))
    if (one.line, one.before) != (other.line, other.before):
        return None
    changes = sorted({*_changes(one), *_changes(other)})
    text, position = "", 0
    for start, end, new in changes:
        if start < position:  # two change the same characters
            return None
        text += one.before[position:start] + new
        position = end
    return replace(one, after=text + one.before[position:])


def _changes(edit: Edit) -> Iterator[tuple[int, int, str]]:
    """Return `(4, 5, "y")` for an edit of `x = a` to `x = y`: from, to, and the new text."""
    compared = difflib.SequenceMatcher(None, edit.before, edit.after, autojunk=False)
    opcodes = (opcode for opcode in compared.get_opcodes() if opcode[0] != "equal")
    return ((start, end, edit.after[first:last]) for _, start, end, first, last in opcodes)


@dataclass(frozen=True)
class Edited:
    """A source after an edit, of which the lines from `first` to `last` are new."""

    source: Source
    first: int
    last: int

    @classmethod
    def of(cls, source: Source, edit: Edit) -> Edited | None:
        """Return the source with an edit; None if it is not Python any more.

        Of a source with an edit in a function only that function is read again.
        """
        first = edit.line if edit.before else edit.line + 1
        part = source.part(first, edit.line + edit.before.count("\n"))
        for before in (part, source) if part is not None else (source,):
            after = parse(applied(before.text, [edit], before.first, source.indent), before.file, before.first)
            edited = cls(after, first, first + edit.after.count("\n")) if after is not None else None
            if edited is None or all(edited.source.function(new) is not None for new in edited.statements()):
                break  # else it is below the function, where all names of the file count
        return edited

    def statements(self) -> Iterator[ast.stmt]:
        """Return the statements that begin on a new line."""
        return self.source.beginning(ast.stmt, self.first, self.last)


def applied(text: str, edits: Sequence[Edit], first: int = 1, indent: int = 0) -> str:
    """Apply edits to a text, the last line first so that the others keep their lines."""
    lines = text.split("\n")
    for edit in sorted(edits, key=lambda edit: (-edit.line, edit.before != "")):
        new = [line[indent:] if line.strip() else line for line in edit.after.split("\n")]
        index = edit.line - first
        if edit.before:
            count = edit.before.count("\n") + 1
            lines[index : index + count] = new if edit.after else []
        else:
            lines[index + 1 : index + 1] = new
    return "\n".join(lines)
