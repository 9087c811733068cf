"""A feature is a folder that can be taken away: what it offers is found, and the kernel works without it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import get_args

import pytest

from devtrace.features import FEATURES, Point, offers
from devtrace.runtime.torch_names import note_without
from folders import ROOT, TESTS
from warm import LIMIT, Warm

SOURCES = ROOT / "src" / "devtrace"
TRACES = sorted((TESTS / "golden").glob("*.devtrace"))


@pytest.mark.parametrize("feature", FEATURES)
def test_what_a_feature_offers_is_at_a_known_point_and_loads(feature: str) -> None:
    offered = import_module(f"devtrace.{feature}.feature").FEATURE
    assert set(offered) <= set(get_args(Point))
    names = [name for offers in offered.values() for name in offers.values()]
    assert names
    assert [name for name in names if not name.startswith(f"devtrace.{feature}.")] == []
    for module, _, attribute in (name.partition(":") for name in names):
        assert hasattr(import_module(module), attribute)


def test_each_folder_with_a_table_is_in_the_list() -> None:
    assert {path.parent.name for path in SOURCES.glob("*/feature.py")} == set(FEATURES)


def test_to_read_all_tables_imports_neither_torch_nor_numpy() -> None:
    code = "import devtrace, sys; devtrace.__all__; assert not {'torch', 'numpy', 'IPython'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=LIMIT)


@pytest.fixture(scope="module")
def torch_alone() -> Iterator[Warm]:
    with Warm(needed=("torch", "numpy.ma", "IPython.core.completer", "IPython.core.magics")) as python:
        yield python


@pytest.mark.parametrize("feature", FEATURES)
def test_the_kernel_works_without_a_feature(feature: str, tmp_path: Path, torch_alone: Warm) -> None:
    copy = tmp_path / "src" / "devtrace"
    shutil.copytree(SOURCES, copy, ignore=shutil.ignore_patterns("labextension"))
    shutil.rmtree(copy / feature)
    table = copy / "features.py"
    text, count = re.subn(rf'"{feature}", ?', "", table.read_text(encoding="utf-8"), count=1)
    assert count
    table.write_text(text, encoding="utf-8")
    done = torch_alone.main_of(tmp_path, tmp_path / "src", "kernel_smoke", *map(str, TRACES))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("part", offers("observer"))
def test_a_report_can_say_what_is_lost_without_an_observer(part: str) -> None:
    assert "a fault" in note_without(part, "a fault")
