"""README and docs name what a reader can meet: rules, causes, notebooks, and pictures that are there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import make_docs
import pytest
import torch

import devtrace
import readme_example
from devtrace.diagnosis.slugs import CauseSlug, RuleSlug
from documents import PAGES, README
from folders import ROOT
from shells import new_shell


def test_the_example_shows_the_report_of_its_program() -> None:
    finding, _, _ = readme_example.made().text.partition("\n\n")
    assert readme_example.shown() == finding


def blocks(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)


def test_thirty_seconds_of_readme_end_in_a_report() -> None:
    _, loads, fails, records = blocks(README)
    with new_shell() as shell:
        shell.run(loads)
        ran = shell.run(fails)
        assert isinstance(ran.error, RuntimeError)
        assert len(ran.reports) == 1
        assert "`model.1.weight` and `.bias` are on cpu" in ran.text
    names = {"devtrace": devtrace, "train": lambda: torch.ones(2, device="cuda:0").sum()}
    exec(records, names)


def test_the_lines_for_programs_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [code] = blocks(PAGES["outside-the-notebook.md"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank in "01":
        monkeypatch.setenv("RANK", rank)
        with devtrace.record(save="a.devtrace") as recording:
            torch.ones(2)
    with devtrace.simulate("cuda:2"):
        model = torch.nn.Linear(2, 2).to("cuda:0")
        optimizer = torch.optim.SGD(model.parameters())
        known = {
            "model": model,
            "optimizer": optimizer,
            "batch": {"x": model.weight.detach()},
        }
        known |= {"train": lambda: model(torch.ones(2)), "recording": recording, "devtrace": devtrace, "pytest": pytest}
        exec(re.sub(r"^.*write_image.*$", "", code, flags=re.M), known)
    assert Path("run.json").exists()


@pytest.mark.parametrize("page", PAGES)
def test_tables_and_examples_are_those_of_the_code(page: str) -> None:
    assert make_docs.made_anew(PAGES[page]) == PAGES[page], "run: make docs"


@pytest.mark.parametrize("slug", [*get_args(RuleSlug), *get_args(CauseSlug)])
def test_the_docs_explain_what_each_rule_and_cause_means(slug: str) -> None:
    assert slug == "expectation" or re.search(rf"^\| `{slug}` \| \S.* \|$", PAGES["findings.md"], re.M)


def test_readme_is_read_in_a_few_minutes() -> None:
    assert len(README.encode()) <= 8_000


@pytest.mark.parametrize("page", ["README.md", *PAGES])
def test_a_page_links_to_nothing_that_is_not_there(page: str) -> None:
    text, folder = (README, ROOT) if page == "README.md" else (PAGES[page], ROOT / "docs")
    linked = re.findall(r"\]\(([\w./-]+\.(?:md|ipynb|png))\)", text)
    assert [name for name in linked if not (folder / name).exists()] == []


def test_readme_points_at_every_notebook_and_at_nothing_that_is_not_there() -> None:
    linked = set(re.findall(r"\((notebooks/[^)]+\.ipynb)\)", README))
    assert linked == {f"notebooks/{path.name}" for path in (ROOT / "notebooks").glob("*.ipynb")}


def test_readme_shows_pictures_of_a_modest_size() -> None:
    shown = set(re.findall(r'(?:src|srcset)="([^"]+)"', README))
    assert len(shown) == 2
    assert all((ROOT / name).stat().st_size < 150_000 for name in shown)
