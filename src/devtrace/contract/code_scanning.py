"""Findings for code scanning: SARIF 2.1.0, and annotations of a job of GitHub Actions.

devtrace run --sarif findings.sarif train.py
"""

import linecache
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, get_args
from urllib.parse import quote

from devtrace.contract.entries import Entry
from devtrace.contract.findings_json import relative
from devtrace.diagnosis.findings import Edit, Finding, Line, Site, offered_fix
from devtrace.diagnosis.rules.error_rules import rule_slugs
from devtrace.diagnosis.slugs import MEANINGS, CauseSlug, Severity
from devtrace.runtime.requirements import own_version
from devtrace.words.catalogue import sentence

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT: Final = "SRCROOT"
_ANNOTATION: Final[Mapping[Severity, str]] = {"error": "error", "warning": "warning", "note": "notice"}


def project_folder(working_directory: Path) -> Path:
    """Return the folder that paths are relative to: the checkout of a job, else the working directory."""
    return Path(os.environ.get("GITHUB_WORKSPACE") or working_directory).resolve()


def in_github_actions() -> bool:
    return os.environ.get("GITHUB_ACTIONS") == "true"


def sarif(entries: Iterable[Entry], notes: Iterable[str], root: Path) -> dict[str, Any]:
    """Return a SARIF log: a result for each entry, in the same order."""
    notifications = [{"level": "note", "message": {"text": note}} for note in notes]
    run = {
        "tool": {"driver": _driver()},
        "originalUriBaseIds": {ROOT: {"uri": f"{root.as_uri()}/"}},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notifications}],
        "results": [_result(entry, root) for entry in entries],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _driver() -> dict[str, Any]:
    causes = {slug: sentence(MEANINGS[slug]) for slug in get_args(CauseSlug)}
    meanings = {slug: sentence(MEANINGS[slug]) if slug in MEANINGS else slug for slug in rule_slugs()}  # or a package's
    rules = [{"id": slug, "shortDescription": {"text": meaning}} for slug, meaning in meanings.items()]
    return {"name": "devtrace", "version": own_version(), "rules": rules, "properties": {"causes": causes}}


def _result(entry: Entry, root: Path) -> dict[str, Any]:
    finding = entry.finding
    culprit = finding.culprit
    extra: dict[str, Any] = {"names": list(culprit.names), "certainty": culprit.certainty} if culprit else {}
    extra |= {name: value for name, value in (("limit", entry.limit), ("test", entry.test)) if value}
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "level": entry.level,
        "message": {"text": message_with_help(finding)},
        "occurrenceCount": max(finding.count, 1),
        "relatedLocations": [_related_location(line, number, root) for number, line in enumerate(finding.lines, 1)],
        "properties": {"cause": finding.cause, "devices": list(finding.devices), "bytes": finding.bytes, **extra},
    }
    if finding.site is not None:
        result["locations"] = [_location(finding.site, root)]
    changes = [*_changes(finding.edits, root)]
    if changes:
        trial = {"grade": finding.edits[0].grade} | ({"proof": finding.proof} if finding.proof else {})
        result["fixes"] = [{"description": {"text": finding.help}, "artifactChanges": changes, "properties": trial}]
    return result


def message_with_help(finding: Finding) -> str:
    """Return the message, and what to do about it, for a reader who is shown one text."""
    fix = finding.help and f"{sentence('label.fix')}: {offered_fix(finding)}"
    return "\n".join(filter(None, [finding.message, fix]))


def _related_location(line: Line, number: int, root: Path) -> dict[str, Any]:
    words = f"{line.label}: {line.remark}" if line.remark else line.label
    return {"id": number, "message": {"text": words}, **_location(line.site, root)}


def _location(site: Site, root: Path) -> dict[str, Any]:
    """Return where a site is: in a file; a cell has no file that another tool could open."""
    if site.cell is not None:
        return {"logicalLocations": [{"name": str(site), "kind": "module"}]}
    physical = {"artifactLocation": _artifact(site.file, root), "region": _region(site)}
    location: dict[str, Any] = {"physicalLocation": physical}
    if site.function:
        location["logicalLocations"] = [{"fullyQualifiedName": site.function, "kind": "function"}]
    return location


def _artifact(file: str, root: Path) -> dict[str, str]:
    """Return a file's address: relative to the project if it lies in it, else absolute."""
    inside = relative(file, str(root))
    if inside is None:
        return {"uri": Path(os.path.abspath(file)).as_uri()}
    return {"uri": quote(inside), "uriBaseId": ROOT}


def _region(site: Site) -> dict[str, int]:
    """Return lines and columns from 1; the columns of a site are UTF-8 bytes from 0, or unknown."""
    first, last = max(site.line, 1), max(site.end_line, site.line, 1)
    begin, end = (_character_column(site.file, *at) for at in ((first, site.column), (last, site.end_column)))
    region = {"startLine": first, "endLine": last}
    if begin is None or end is None or (first == last and end <= begin):
        return region
    return {**region, "startColumn": begin + 1, "endColumn": end + 1}


def _character_column(file: str, line: int, column: int) -> int | None:
    """Return a column in characters for one in UTF-8 bytes; None if the line in the file is shorter."""
    text = linecache.getline(file, line).encode()
    return len(text[:column].decode(errors="replace")) if 0 <= column <= len(text) else None


def _changes(edits: Sequence[Edit], root: Path) -> Iterator[dict[str, Any]]:
    """Yield the changes of each file; none if the fix also changes a cell, which another tool could not edit."""
    if any(edit.cell is not None for edit in edits):
        return
    for file in dict.fromkeys(edit.file for edit in edits):
        replacements = [_replacement(edit) for edit in edits if edit.file == file]
        yield {"artifactLocation": _artifact(file, root), "replacements": replacements}


def _replacement(edit: Edit) -> dict[str, Any]:
    """Return an edit of whole lines as a region and the text that takes its place."""
    begin_line = max(edit.line, 1) if edit.before else edit.line + 1
    end_line = begin_line + edit.before.count("\n") + 1 if edit.before else begin_line
    region = {"startLine": begin_line, "startColumn": 1, "endLine": end_line, "endColumn": 1}
    return {"deletedRegion": region, "insertedContent": {"text": f"{edit.after}\n" if edit.after else ""}}


def github_annotations(entries: Iterable[Entry], root: Path) -> Iterator[str]:
    """Yield a command for each entry, which GitHub Actions shows at the file and line."""
    for entry in entries:
        site = entry.finding.site
        place, title = {}, f"devtrace {entry.finding.rule}"
        if site is not None and site.cell is None:
            file = relative(site.file, str(root)) or os.path.abspath(site.file)
            place = {"file": file, "line": str(max(site.line, 1))}
        elif site is not None:
            title = f"{title}, {site}"
        properties = ",".join(f"{key}={_escape(value, ':,')}" for key, value in {**place, "title": title}.items())
        yield f"::{_ANNOTATION[entry.level]} {properties}::{_escape(message_with_help(entry.finding))}"


def _escape(text: str, also: str = "") -> str:
    """Write a percent sign, line ends and some more characters as GitHub reads them back."""
    escaped = text.replace("%", "%25")
    for character in f"\r\n{also}":
        escaped = escaped.replace(character, f"%{ord(character):02X}")
    return escaped
