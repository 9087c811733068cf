"""A file is written whole or not at all, whoever writes it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import devtrace
from devtrace.api.results import Report
from devtrace.contract import findings_json
from devtrace.runtime import overlay, whole_files


@pytest.fixture(scope="module")
def report() -> Report:
    with devtrace.record() as recording:
        pass
    return recording.report


WRITERS: dict[str, Callable[[Report, Path], object]] = {
    "trace": lambda report, path: report.trace.save(path),
    "page": lambda report, path: report.to_html(path),
    "perfetto": lambda report, path: report.trace.to_perfetto(path),
    "json": lambda report, path: findings_json.write(findings_json.findings_json(report), path),
    "texts": lambda _, path: overlay.write(path, {}),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_write_that_is_cut_short_leaves_the_old_file_and_nothing_else(
    write: Callable[[Report, Path], object],
    report: Report,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    monkeypatch.setattr(os, "replace", cut_short)
    with pytest.raises(KeyboardInterrupt):
        write(report, path)
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"file": "old"}


def cut_short(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_link_stays_one_and_permissions_stay(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("old")
    file.chmod(0o640)
    link.symlink_to(file)
    whole_files.put(link, "new")
    assert (link.is_symlink(), file.read_text(), file.stat().st_mode & 0o777) == (True, "new", 0o640)


def test_what_is_no_file_is_written_to_itself(capfd: pytest.CaptureFixture[str]) -> None:
    whole_files.put("/dev/stdout", json.dumps({"x": 1}))
    assert capfd.readouterr().out == '{"x": 1}'
