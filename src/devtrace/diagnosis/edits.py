"""Changes of source: built from syntax trees, given as whole lines, never one that leaves the file unreadable."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from devtrace.diagnosis.findings import Edit, Site
from devtrace.source.parsing import Source

_TIGHT = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Constant, ast.List, ast.Tuple, ast.Dict)


@dataclass(frozen=True)
class Code:
    """A source, with the file or cell that its edits are for."""

    source: Source
    site: Site

    def replaced(self, node: ast.AST, text: str) -> Edit | None:
        """`node` becomes `text`."""
        span = self.source.span(node)
        before = "\n".join(self.source.line(number) for number in range(span.line, span.end_line + 1))
        head = before.encode()[: span.column].decode()
        tail = self.source.line(span.end_line).encode()[span.end_column :].decode()
        return self._checked(span.line, before, f"{head}{text}{tail}")

    def all_replaced(self, changes: list[tuple[ast.AST, str]]) -> Edit | None:
        """Several nodes, none inside another, become texts: one edit over the lines that they stand on."""
        spans = sorted(((self.source.span(node), text) for node, text in changes), reverse=True)
        first, last = min(span.line for span, _ in spans), max(span.end_line for span, _ in spans)
        lines = [self.source.line(number).encode() for number in range(first, last + 1)]
        before = b"\n".join(lines).decode()
        for span, text in spans:
            top, bottom = span.line - first, span.end_line - first
            joined = lines[top][: span.column] + text.encode() + lines[bottom][span.end_column :]
            lines[top : bottom + 1] = [joined, *[b""] * (bottom - top)]
        kept = [line for index, line in enumerate(lines) if line or not before.split("\n")[index].strip()]
        return self._checked(first, before, b"\n".join(kept).decode())

    def above(self, statement: ast.stmt, *lines: str) -> Edit | None:
        """New lines before a statement, with its indent."""
        span = self.source.span(statement)
        indent = " " * span.column
        return self._checked(span.line - 1, "", "\n".join(indent + line for line in lines))

    def below(self, statement: ast.stmt, *lines: str) -> Edit | None:
        """New lines after a statement, with its indent; after a compound one's header, with its body's."""
        span = self.source.span(statement)
        indent = " " * span.column
        return self._checked(span.end_line, "", "\n".join(indent + line for line in lines))

    def into(self, statement: ast.For | ast.With | ast.AsyncFor | ast.AsyncWith, *lines: str) -> Edit | None:
        """New lines at the top of a compound statement's body."""
        first = self.source.span(statement.body[0])
        if first.line == self.source.span(statement).line:
            return None
        return self._checked(first.line - 1, "", "\n".join(" " * first.column + line for line in lines))

    def removed(self, statement: ast.stmt) -> Edit | None:
        """A statement that has its lines for itself, taken out; `pass` where nothing else is left."""
        span = self.source.span(statement)
        parent = self.source.parent(statement)
        block = _block(parent, statement)
        before = "\n".join(self.source.line(number) for number in range(span.line, span.end_line + 1))
        left = "" if len(block) > 1 else " " * span.column + "pass"
        return self._checked(span.line, before, left)

    def text(self, node: ast.AST) -> str:
        return self.source.segment(node)

    def moved_to(self, node: ast.expr, device: str) -> str:
        """`x.to(d)`, `(a + b).to(d)`."""
        text = self.text(node)
        return f"{text}.to({device})" if isinstance(node, _TIGHT) else f"({text}).to({device})"

    def _checked(self, line: int, before: str, after: str) -> Edit | None:
        edit = Edit(self.site.file, self.site.cell, line, before, after)
        try:
            ast.parse(applied(self.source.text, [edit], self.source.first, self.source.indent))
        except (SyntaxError, ValueError):
            return None
        return edit


def _block(parent: ast.AST | None, statement: ast.stmt) -> list[ast.stmt]:
    """The statements among which one stands."""
    blocks: list[list[ast.stmt]] = [getattr(parent, name, []) for name in ("body", "orelse", "finalbody")]
    return next((block for block in blocks if any(part is statement for part in block)), [])


def applied(text: str, edits: list[Edit], first: int = 1, indent: int = 0) -> str:
    """A text with edits applied, the last line first so that the others keep their places."""
    lines = text.split("\n")
    for edit in sorted(edits, key=lambda edit: (-edit.line, edit.before != "")):
        new = [line[indent:] if line.strip() else line for line in edit.after.split("\n")]
        at = edit.line - first
        if edit.before:
            count = edit.before.count("\n") + 1
            lines[at : at + count] = new if edit.after else []
        else:
            lines[at + 1 : at + 1] = new
    return "\n".join(lines)
