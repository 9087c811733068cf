"""JupyterLab in Chinese: the panel, the views, the settings, the commands and the reports are too."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from e2e.notebook import Notebook, wait_for_look
from e2e.server import Server
from e2e.sidebar import STORY, Sidebar
from e2e.test_fix_notebook import CELLS, ROUNDS, Fix, expect_undone

pytestmark = pytest.mark.e2e

TRANSLATION = "@jupyterlab/translation-extension:plugin"
# What a reader sees or hears, but code, names of ops and devices, and types.
SHOWN = """root => {
    const shown = [];
    const code = 'code, s, .dt-op, .dt-code, .dt-chip, .dt-side-what, .dt-box-name, .dt-op-row';
    const isCode = node => node.closest(code);
    const walk = document.createTreeWalker(root, NodeFilter.SHOW_ALL);
    for (let node = walk.currentNode; node; node = walk.nextNode()) {
        if (node.nodeType === Node.TEXT_NODE) {
            if (!isCode(node.parentElement)) shown.push(node.data);
        } else if (!isCode(node)) {
            shown.push(...['title', 'aria-label', 'placeholder'].map(name => node.getAttribute(name) ?? ''));
        }
    }
    return shown.filter(text => text.trim() !== '');
}"""
# Names in this story, units, and the terms that Chinese readers know in English.
KNOWN = re.compile(
    r"\S+\.py\b|`[^`]*`|%\w+|\bIn\[\d+\]|\bcpu\b|\bcuda:\d|\bCPU\b|\bCUDA\b|[Dd]evtrace|load_ext|\.to\(\)|\w+\.ipynb"
    r"|\b(?:numpy|ns|µs|ms|s|min|B|KB|KiB|MiB|GiB|C|G\d|Home|Enter|i|forward|Net|model|x|out_head|weight|bias|Module|Linear|Sequential|body)\b"
)


@pytest.fixture
def chinese(server: Server) -> Iterator[Server]:
    with server.settings(TRANSLATION, locale="zh_CN"):
        yield server


def english(root: Locator) -> list[str]:
    """Return what is shown in Latin letters that no Chinese reader would write so."""
    shown: list[str] = root.evaluate(SHOWN)
    return [text for text in shown if re.search("[A-Za-z]{2,}", KNOWN.sub("", text))]


def test_panel_report_and_views_are_chinese(page: Page, chinese: Server) -> None:
    notebook = Notebook.open(page, chinese, chinese.write("chinese.ipynb", *STORY))
    sidebar = Sidebar.open(notebook, link=None)
    notebook.run_all()
    finding = sidebar.findings.first
    expect(finding).to_have_attribute("data-rule", "device-mismatch")
    expect(finding.locator(".dt-message")).to_contain_text("在 cpu 上")
    expect(finding.get_by_text("创建于", exact=True)).to_be_visible()
    expect(finding.get_by_role("button", name="直接插入（未试运行）")).to_be_visible()
    sidebar.device("cuda:0").wait_for()
    assert english(sidebar.root) == []

    report = notebook.wait_ready("report")
    for tab in ("模块", "代码行", "运算", "时间线"):
        report.get_by_role("tab", name=tab, exact=True).click()
    assert english(report) == []


@pytest.mark.breadth
def test_fix_the_notebook_is_chinese_from_its_button_to_the_clean_run(page: Page, chinese: Server) -> None:
    notebook = Notebook.open(page, chinese, chinese.write("fixed.ipynb", *CELLS))
    notebook.run_all()
    fix = Fix(notebook)
    assert english(fix.root) == []
    fix.button("修复整个笔记本").click()
    fix.wait("proven")
    expect(fix.root.locator(".dt-fix-bug")).to_have_count(3)
    assert english(fix.root) == []
    fix.button("应用全部改动").click()
    fix.root.get_by_role("button", name="重新运行").click()
    expect(fix.root.locator(".dt-fix-after")).to_contain_text("运行无误", timeout=ROUNDS)
    expect(notebook.cell(5).locator(".jp-OutputArea-output").first).to_contain_text("done (3, 2)")
    assert english(fix.root) == []
    expect_undone(notebook, fix, 4, CELLS, "应用全部改动")


@pytest.mark.breadth
def test_a_kernel_learns_the_display_language(page: Page, chinese: Server) -> None:
    asked = "import os\nos.environ['DEVTRACE_LANGUAGE'] = 'en'\n%load_ext devtrace\n%devtrace simulate cuda:1"
    show = "from devtrace.words import language\nprint(language.current())"
    notebook = Notebook.open(page, chinese, chinese.write("language.ipynb", asked, show))
    notebook.run(0)
    Sidebar.open(notebook)
    notebook.run(1)
    expect(notebook.cell(1).locator(".jp-OutputArea-output")).to_have_text("zh")


@pytest.mark.breadth
def test_commands_and_settings_are_chinese(page: Page, chinese: Server) -> None:
    notebook = Notebook.open(page, chinese, chinese.write("settings.ipynb", "1"), kernel=False)
    wait_for_look(page, "command => jupyterapp.commands.label(command)", "显示面板", at="devtrace:show-panel")
    notebook.command("settingeditor:open", query="Devtrace")
    settings = page.locator("#json-setting-editor, .jp-SettingsPanel").first
    for text in ("追踪每个单元格", "启动时的模拟 CUDA 设备", "一个追踪记录的运算数上限", "设备条纹", "为诊断加下划线"):
        expect(settings.get_by_text(text, exact=True).first).to_be_visible()
    assert "Trace each cell of a kernel" not in settings.inner_text()
