"""What a traced cell shows, and the page: one report for a renderer, a sanitiser, a script, a terminal."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import bleach
import nbformat
import pytest
import torch
from nbconvert.filters.strings import clean_html
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import devtrace
import make_traces
import needs
import report_example
from built import SCRIPT
from devtrace.api.results import Report, Trace, diagnose
from devtrace.contract.code_scanning import github_annotations
from devtrace.contract.entries import Entry
from devtrace.contract.findings_json import FINDINGS_TYPE, compact
from devtrace.diagnosis.findings import Culprit, Edit, Finding, Grade, Line, Site, from_json
from devtrace.drawing.svg import without_loose_words
from devtrace.report import mime, page, renderer
from devtrace.report.html import MOST_FINDINGS, fragment
from devtrace.report.mime import MIME_TYPE, mime_bundle
from devtrace.trace import format
from devtrace.trace.format import decode
from devtrace.trace.memory_curves import curves, lives_until_use
from devtrace.words import language
from goldens import assert_golden
from samples import training
from traces import empty_trace, head_trace, odd_trace, story_trace

MARKS = (
    "VSCODE_PID",
    "VSCODE_ESM_ENTRYPOINT",
    "VSCODE_HANDLES_UNCAUGHT_ERRORS",
    "COLAB_RELEASE_TAG",
    "KAGGLE_KERNEL_RUN_TYPE",
    "DATABRICKS_RUNTIME_VERSION",
)
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u202e\x00\ud800'\"&" + "y" * 1_000_000


class Seen(HTMLParser):
    """Tags, attributes and text of a fragment."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(autouse=True)
def jupyter(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DEVTRACE_RENDERER", *MARKS):
        monkeypatch.delenv(name, raising=False)


def hostile_report() -> Report:
    site = Site(HOSTILE, 1, 0, 1, 4, HOSTILE, HOSTILE, 7, HOSTILE)
    culprit = Culprit(HOSTILE, (HOSTILE,), HOSTILE, (2, 3), HOSTILE, born=site, moved=site, chain=(site,))
    slug: Any = HOSTILE
    finding = Finding(slug, "error", slug, (HOSTILE, "cpu"), site, 0, culprit, 1, 0, HOSTILE, HOSTILE)
    trace = odd_trace()
    return Report(trace, (finding,), notes=(HOSTILE,))


def test_the_fragment_of_readmes_example() -> None:
    html = re.sub('<svg[^>]*"Timeline .*</svg>', "", fragment(report_example.made()), flags=re.S)  # it has real times
    assert_golden("report-head.html", html.replace("><", ">\n<") + "\n")


@pytest.mark.parametrize("trace", [training(), head_trace(), odd_trace(), empty_trace()])
def test_the_html_has_no_script_no_style_and_no_handler(trace: Trace) -> None:
    data, _ = mime_bundle(diagnose(trace))
    seen = Seen(data["text/html"])
    assert not seen.tags & {"script", "style", "link", "iframe", "img", "object"}
    assert not {name for name in seen.attributes if name.startswith("on") or name in ("style", "href", "src")}
    # Of classes only those that hide the picture's tags where they are shown as text.
    classes = set(re.findall(r'\bclass="([^"]*)"', data["text/html"]))
    assert classes <= {"jp-InternalAnchorLink", "jp-text-truncated jp-RenderedHTMLCommon"}


def test_what_a_trace_contains_is_text_in_every_form() -> None:
    report = hostile_report()
    for html in (fragment(report), page.page(report)):
        assert "onerror=alert" not in Seen(html).attributes
        assert "<img" not in html
        assert "\u202e" not in html
        assert html.encode("utf-8")
        assert html.count("<script") == html.count("</script>") == (html != fragment(report) and SCRIPT.exists())
        assert len(fragment(report)) < 50_000
    assert len(mime.plain_text(report)) < 2 * mime.LONGEST_TEXT


@pytest.mark.parametrize("trace", [head_trace(), training(40), odd_trace()])
def test_what_cleans_html_without_knowing_svg_leaves_words_only(trace: Trace) -> None:
    """JupyterLab cleans an untrusted notebook so: tags go, and what stands between them stays."""
    report = diagnose(trace)
    html = fragment(report)
    assert "<svg" in html
    words = bleach.clean(html, tags={"div", "blockquote", "b", "code"}, strip=True)
    assert Seen(words).text.split() == Seen(fragment_of_words(report)).text.split()
    assert Seen(html).text.split() == Seen(fragment_of_words(report)).text.split()


def fragment_of_words(report: Report) -> str:
    return re.sub("<svg.*?</svg>", "", fragment(report, picture=False))


def test_the_words_come_first_and_need_no_tag_that_nbconvert_would_escape() -> None:
    cleaned = clean_html(fragment(diagnose(head_trace())))
    words = cleaned[: cleaned.rindex("&lt;svg xmlns")]
    assert "model.out_head.weight and .bias are on cpu" in words
    assert "4 ops on cuda:0." in words
    assert "&lt;" not in words


def test_without_any_tag_the_words_are_still_apart() -> None:
    words = bleach.clean(fragment(diagnose(head_trace())), tags=(), strip=True).splitlines()
    assert any(line.startswith("Created In[5] line 1") for line in words)
    assert any(line.startswith("Fix move it as you attach it") for line in words)


def test_a_name_with_signs_of_markup_stays_a_name_in_the_picture() -> None:
    drawn = without_loose_words('<text x="1">a &lt;b&gt; c; d</text>')
    assert drawn == '<text x="1"><![CDATA[a ]]>&lt;<![CDATA[b]]>&gt;<![CDATA[ c; d]]></text>'


def test_the_html_names_the_tensor_the_line_that_made_it_the_move_and_the_fix() -> None:
    text = " ".join(Seen(fragment(diagnose(head_trace()))).text.split())
    for part in (
        "In[7] line 6 self.out_head(x) addmm · cuda:0 + cpu",
        "model.out_head.weight and .bias are on cpu; the other 19 tensors of model are on cuda:0.",
        "Created In[5] line 1 model.out_head = nn.Linear(768, 2) after",
        "Missed by In[4] line 1 model.to(device)",
        "Fix move it as you attach it: model.out_head = nn.Linear(768, 2).to(device)",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("chosen", "grade", "label"),
    [("en", "proven", "Proven"), ("en", "tried", "Tried"), ("zh", "proven", "已证明"), ("zh", "tried", "已试运行")],
)
def test_a_fix_that_was_run_names_what_it_was_compared_with(
    chosen: language.Language, grade: Grade, label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(language.CHOICE, "user", chosen)
    edit = Edit("a.py", None, 3, "x = 1", "x = 2", grade)
    report = Report(
        empty_trace(), (Finding("host-sync", "warning", help="h", edits=(edit,), proof="the same 4 values"),)
    )
    assert re.search(rf"^  {label} +the same 4 values$", report.text, re.MULTILINE)
    assert f"<b>{label}</b> the same 4 values" in fragment(report)
    assert re.search("not tried|未试运行", report.text + fragment(report)) is None


@pytest.mark.parametrize(("chosen", "said"), [("en", "h (not tried)"), ("zh", "h（未试运行）")])
@pytest.mark.parametrize("grade", ["not tried", "safe"])  # as an older devtrace wrote it
def test_a_fix_that_nobody_ran_says_so_in_every_form(
    chosen: language.Language, grade: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(language.CHOICE, "user", chosen)
    edit = {"file": "a.py", "cell": None, "line": 3, "before": "x = 1", "after": "x = 2", "grade": grade}
    given = {"rule": "host-sync", "message": "m.", "help": "h", "edits": [edit], "proof": "was run"}
    warning, note = (from_json({**given, "severity": each}) for each in ("warning", "note"))
    for finding in (warning, note):
        report = Report(empty_trace(), (finding,))
        assert said in report.text
        assert said in fragment(report)
        assert said in "".join(github_annotations([Entry(finding)], Path()))
        assert "was run" not in report.text
        assert '"grade"' not in json.dumps(compact(report))


def test_what_a_remark_has_between_backticks_is_code() -> None:
    line = Line("2.0 MiB", Site("a.py", 3), "graphs that `preds` keeps")
    html = fragment(Report(empty_trace(), (Finding("out-of-memory", "error", message="m", lines=(line,)),)))
    assert "graphs that <code>preds</code> keeps" in html


def test_words_without_an_edit_have_no_grade() -> None:
    report = Report(empty_trace(), (Finding("host-sync", "warning", message="m", help="h", proof="was run"),))
    assert "was run" not in report.text


def test_notes_are_not_shown_and_many_findings_are_counted() -> None:
    site = Site("a.py", 3)
    findings = [Finding("host-sync", "warning", "", ("cpu",), site, message=f"m{number}") for number in range(50)]
    note = Finding("host-sync", "note", "", ("cpu",), site, message="a note")
    html = fragment(Report(empty_trace(), (*findings, note)))
    assert html.count('data-devtrace="finding"') == MOST_FINDINGS
    assert "30 more findings" in html
    assert "a note" not in html


def test_the_bundle_has_the_trace_itself_the_html_and_the_text() -> None:
    trace = diagnose(training()).trace
    data, metadata = mime_bundle(diagnose(trace))
    assert list(data) == [MIME_TYPE, "text/html", FINDINGS_TYPE, "text/plain"]
    assert metadata == {}
    assert len(decode(json.loads(json.dumps(data[MIME_TYPE]))).ops) == len(trace.ops)
    assert data["text/plain"] == diagnose(trace).text


def test_without_a_timeline_the_html_is_words() -> None:
    trace = training()
    data, _ = mime_bundle(diagnose(trace), timeline=False)
    assert "Timeline" not in data["text/html"]
    assert "model.out_head.weight" in data["text/html"]


def test_a_training_loop_of_20_000_ops_takes_at_most_300_kb_of_a_notebook() -> None:
    """A loop as people write it, run: real times, names and lines, which deflate less well than made-up ones."""
    with devtrace.record(simulate="cuda:1") as recording:
        model = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 2)).cuda()
        optimizer = torch.optim.Adam(model.parameters())
        examples = TensorDataset(torch.randn(1100, 8), torch.randint(0, 2, (1100,)))
        for x, y in DataLoader(examples, batch_size=4, shuffle=True):
            loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    trace = recording.trace
    data, _ = mime_bundle(recording.report)
    assert len(trace.ops) > 20_000
    cell = nbformat.v4.new_code_cell(outputs=[nbformat.v4.new_output("display_data", data)])
    assert len(nbformat.writes(nbformat.v4.new_notebook(cells=[cell]))) <= 300_000


def test_above_its_budget_a_bundle_has_fewer_ops_and_a_sentence_about_it() -> None:
    trace = training(300)
    data, _ = mime_bundle(diagnose(trace), budget=6_000)
    assert len(json.dumps(data[MIME_TYPE])) <= 6_000
    less = decode(data[MIME_TYPE])
    assert less.truncated == len(trace.ops) - len(less.ops)
    assert less.notes[-1].startswith(f"this notebook holds {len(less.ops):,} ops of the trace")
    assert less.findings
    assert less.ops[less.findings[0]["op"]].duration == -1


def test_a_page_is_one_file_that_asks_nothing_of_a_network(tmp_path: Path) -> None:
    report = diagnose(head_trace())
    text = report.to_html(tmp_path / "run.html").read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert "default-src 'none'" in text
    assert not re.search(r"""(?:src|href)=["'](?!data:)""", fragment(report))
    assert not {"link", "img", "iframe"} & Seen(text).tags


views_are_built = pytest.mark.skipif(
    not SCRIPT.exists() and not needs.CI, reason="the views are not built: run `make build`"
)


@views_are_built
@pytest.mark.parametrize("mark", MARKS)
def test_where_nothing_renders_our_type_but_scripts_run_the_html_carries_the_views(
    mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(mark, "1")
    report = diagnose(odd_trace())
    data, _ = mime_bundle(report)
    html = data["text/html"]
    assert html.count("<script") == html.count("</script>") == 1
    assert "devtraceMount" in html
    assert fragment(report) in html
    assert list(data) == ["text/html", FINDINGS_TYPE, "text/plain"], "the trace is within the html, and there only"


@views_are_built
def test_vs_code_is_known_by_the_name_it_gives_every_kernel_of_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not renderer.sends_script()
    monkeypatch.setattr("__main__.__vsc_ipynb_file__", "/a.ipynb", raising=False)
    assert renderer.sends_script()


@views_are_built
def test_the_user_decides_over_what_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renderer, "_chosen", None)
    monkeypatch.setenv("DEVTRACE_RENDERER", "script")
    assert "<script" in mime_bundle(diagnose(odd_trace()))[0]["text/html"]
    monkeypatch.setenv("VSCODE_PID", "1")
    monkeypatch.setenv("DEVTRACE_RENDERER", "static")
    assert "<script" not in mime_bundle(diagnose(odd_trace()))[0]["text/html"]
    renderer.choose("script")
    assert "<script" in mime_bundle(diagnose(odd_trace()))[0]["text/html"]
    renderer.choose("auto")
    monkeypatch.setenv("DEVTRACE_RENDERER", "no choice of ours")
    assert renderer.sends_script()
    monkeypatch.delenv("VSCODE_PID")
    assert not renderer.sends_script()


@views_are_built
@pytest.mark.parametrize(("trace", "beside"), [(make_traces.failing(), 70_000), (training(400), 70_000)])
def test_html_with_the_views_takes_at_most_70_kb_beside_its_trace(
    trace: Trace, beside: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = len(json.dumps(mime_bundle(diagnose(trace))[0][MIME_TYPE]))
    monkeypatch.setenv("DEVTRACE_RENDERER", "script")
    data, _ = mime_bundle(diagnose(trace))
    assert len(json.dumps(data)) - len(json.dumps(data[FINDINGS_TYPE])) - size <= beside


@views_are_built
def test_html_with_the_views_of_100_000_ops_takes_at_most_450_kb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVTRACE_RENDERER", "script")
    data, _ = mime_bundle(diagnose(make_traces.million(100_000)))
    assert len(json.dumps(data)) <= 450_000


@views_are_built
def test_what_memory_was_for_over_100_000_ops_takes_at_most_10_kb_of_html(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVTRACE_RENDERER", "script")
    trace = make_traces.million(100_000)
    known = replace(trace, memory=tuple(curves(trace, lives_until_use(trace), {}, is_exact=False)))
    plain, whole = (len(json.dumps(mime_bundle(diagnose(each))[0])) for each in (trace, known))
    assert 0 < whole - plain <= 10_000
    assert whole <= 450_000


@views_are_built
def test_the_script_counts_against_the_budget_of_an_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVTRACE_RENDERER", "script")
    report = diagnose(training(20_000))
    data, _ = mime_bundle(report, budget=130_000)
    assert len(data["text/html"]) <= 130_000 + len(fragment(report))


def test_without_built_views_a_page_still_has_everything_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "STATIC", tmp_path)
    html = page.page(diagnose(head_trace()))
    assert "installed without its interactive views" in html
    assert "model.out_head.weight" in html
    assert "<script" not in html


def test_json_in_a_script_can_end_neither_it_nor_the_page() -> None:
    text = page.as_script({"a": "</script><!--\u2028\ud800&amp;"})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"a": "</script><!--\u2028\ud800&amp;"}


def test_a_report_whose_diagnosis_failed_still_shows_its_trace() -> None:
    trace = replace(training(), findings=None, notes=("the diagnosis failed (X: y); the trace is complete",))
    html = fragment(Report(trace, notes=trace.notes))
    assert "devtrace: the diagnosis failed (X: y); the trace is complete" in html
    assert "Timeline of" in html

    """Compare with the golden that the page's tests read too."""
    """The page's tests read the same golden."""
    assert_golden("story-report.txt", diagnose(story_trace()).text + "\n")


def test_a_trace_knows_in_which_language_its_findings_were_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language.CHOICE, "user", "zh")
    trace = diagnose(replace(training(1), findings=None)).trace
    assert trace.findings
    assert decode(format.encode(trace)).language == "zh"
    assert '<html lang="zh-CN">' in page.page(diagnose(trace))


def test_a_recording_that_a_cell_ends_with_shows_its_report() -> None:
    with devtrace.record() as recording:
        torch.ones(2) + 1
    assert recording._repr_mimebundle_() == recording.report._repr_mimebundle_()
    assert str(recording) == recording.report.text
    assert repr(recording) == f"<record: {recording.report!r}>"


def test_a_recording_without_a_report_shows_how_it_gets_one() -> None:
    recording = devtrace.record()
    assert recording._repr_mimebundle_() == ({"text/plain": str(recording)}, {})
    assert "Write `with devtrace.record() as recording:` above a block" in str(recording)
    with recording:
        assert str(recording) == "This recording has not ended. Below its block, it shows the report."
