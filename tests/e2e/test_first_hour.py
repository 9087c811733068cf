"""What a new user trips over in the first hour: each test does what that user did."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from e2e.lab import Lab
from e2e.notebook import wait_for_look
from e2e.sidebar import STORY, Sidebar, expect_selected, expect_stripes, source

pytestmark = pytest.mark.e2e

LOAD = "%load_ext devtrace\n%devtrace simulate cuda:2\nimport torch"
MIXED = "%%devtrace\ny = torch.ones(8, 8)\ntotal = torch.ones(8, 8, device='cuda:0') + y"
CLEAN = "%%devtrace\nz = torch.ones(8, 8, device='cuda:0') * 2"


SLOW = """%%devtrace
net = torch.nn.Linear(8, 2).to("cuda:0")
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
class_weights = torch.tensor([1.0, 2.0])
history, total = [], 0.0
for step in range({steps}):
    out = net(x)
    loss = (out * class_weights.to("cuda:0")).square().mean()
    sgd.zero_grad()
    loss.backward()
    sgd.step()
    {line}"""
SPELLINGS = (
    "total = total + loss.item()",
    "history.append(loss.item())",
    "print(step, loss.item())",
    "array = loss.detach().cpu().numpy()",
    "if loss < 0: break",
)


@pytest.mark.breadth
def test_a_slow_loop_is_a_warning_with_a_fix_in_every_spelling_and_a_short_one_a_note(lab: Lab) -> None:
    long = [SLOW.format(steps=12, line=line) for line in SPELLINGS]
    short = [SLOW.format(steps=4, line=line) for line in SPELLINGS]
    notebook = lab.open("slow.ipynb", *long, *short, warm=True)
    for index in range(len(SPELLINGS)):
        notebook.run(index)
        findings = notebook.wait_ready("report", index).locator('[data-devtrace="finding"][data-severity="warning"]')
        expect(findings).to_have_count(2)
        for each in findings.all():
            expect(each.locator("dt")).to_contain_text(["Fix"])
        expect(findings.filter(has_text="in each step")).to_have_count(1)
        expect(findings.filter(has_text='class_weights = class_weights.to("cuda:0")')).to_have_count(1)
    for index in range(len(SPELLINGS), 2 * len(SPELLINGS)):
        notebook.run(index)
        report = notebook.wait_ready("report", index)
        report.locator(".dt-more").click()
        notes = report.locator('[data-devtrace="finding"][data-severity="note"]')
        expect(notes.filter(has_text="in each step")).to_have_count(2)


@pytest.mark.breadth
def test_after_a_cell_with_devices_of_its_own_the_panel_agrees_with_the_tensor_and_the_way_on_is_named(
    lab: Lab,
) -> None:
    made = "%%devtrace --simulate cuda:1\nx = torch.ones(8, 8, device='cuda:0')"
    cells = ("%load_ext devtrace\nimport torch", made, "x.device", "x + 1", "%devtrace simulate cuda:1", "x + 1")
    notebook = lab.open("own.ipynb", *cells, run="all")
    sidebar = Sidebar.open(notebook)
    expect(notebook.cell(2).locator(".jp-OutputArea-output")).to_contain_text("cuda", use_inner_text=True)
    expect(sidebar.row_of("x", "cuda:0")).to_be_visible()
    expect(notebook.wait_ready("report")).to_contain_text("%devtrace simulate cuda:1")
    expect(notebook.cell(3).locator(".jp-OutputArea-output").last).to_contain_text("`%devtrace simulate cuda:1`")
    notebook.run(4)
    notebook.run(5)
    expect(notebook.cell(5).locator(".jp-OutputArea-output").last).to_contain_text("tensor(")


def test_after_insert_the_finding_names_what_to_run_and_is_struck_out_once_that_ran_clean(lab: Lab) -> None:
    notebook = lab.open("after-insert.ipynb", *STORY, run="all")
    sidebar = Sidebar.open(notebook)
    finding = sidebar.findings.first
    finding.get_by_role("button", name="Insert untried").click()
    report = notebook.wait_ready("report")
    for shown in (finding, report.locator('[data-devtrace="finding"]').first):
        expect(shown).to_contain_text("In[5] has the fix: run it and the cells below again, as far as In[7].")
        expect(shown.get_by_role("button", name="✓ Inserted")).to_be_visible()

    notebook.run(6)
    for shown in (finding, report.locator('[data-devtrace="finding"]').first):
        expect(shown).to_contain_text("In[5] has the fix: run it and the cells below again, as far as In[8].")

    notebook.run(4)
    expect(finding).to_contain_text("In[9] has the fix: run the cells below again, as far as In[8].")

    notebook.run(6)
    fixed = sidebar.root.locator('[data-repair="ran"]').filter(visible=True)
    expect(fixed.locator("s").last).to_contain_text("In[2] line 11 self.out_head(self.body(x))")
    expect(fixed.last).to_contain_text("In[10] ran with this fix.")
    expect(sidebar.findings.and_(notebook.page.locator("[data-severity=error]")).filter(visible=True)).to_have_count(0)


@pytest.mark.breadth
def test_an_insert_that_is_undone_can_be_put_in_again(lab: Lab) -> None:
    notebook = lab.open("undone.ipynb", *STORY, run="all")
    sidebar = Sidebar.open(notebook)
    finding = sidebar.findings.first
    insert = finding.get_by_role("button", name="Insert untried")
    insert.click()
    expect(insert).to_have_count(0)
    notebook.page.keyboard.press("Control+z")
    expect(insert).to_be_visible()
    expect(finding).not_to_contain_text("has the fix")
    insert.click()
    expect(finding.get_by_role("button", name="✓ Inserted")).to_be_visible()
    assert source(notebook, 4) != STORY[4]


@pytest.mark.breadth
def test_a_cell_that_ran_before_devtrace_was_loaded_has_a_stripe_a_link_and_a_fix_that_is_followed(lab: Lab) -> None:
    plain_list = (
        "class Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.layers = [torch.nn.Linear(4, 4) for _ in range(2)]\n\n"
        "    def forward(self, x):\n        for layer in self.layers:\n            x = layer(x)\n        return x"
    )
    make = "model = Net().to('cuda:0')\nbatch = torch.ones(2, 4, device='cuda:0')"
    load = "%load_ext devtrace\n%devtrace simulate cuda:1"
    notebook = lab.open("before.ipynb", "import torch", plain_list, load, make, "%%devtrace\nmodel(batch)", run="all")
    expect_stripes(notebook, 1, (8, "cpu cuda:0", False))
    report = notebook.wait_ready("report")
    report.get_by_role("button", name="In[2] line 8").first.click()
    notebook.page.wait_for_function("document.activeElement.closest('.cm-editor') !== null")
    expect_selected(notebook.page, "layer(x)")
    sidebar = Sidebar.open(notebook)
    finding = sidebar.findings.first
    finding.get_by_role("button", name="Insert untried").click()
    expect(finding).to_contain_text("In[2] has the fix: run it and the cells below again")
    notebook.run(1)
    notebook.run(4)
    report = notebook.wait_ready("report")
    for shown in (finding, report.locator('[data-devtrace="finding"]').first):
        expect(shown).to_contain_text("In[6] has the fix: run the cells below again, as far as In[7].")
        expect(shown.get_by_role("button", name="✓ Inserted")).to_be_visible()
    report.get_by_text("In[2] line 4", exact=True).first.click()
    expect(notebook.page.locator(".jp-Cell.jp-mod-active .jp-InputPrompt")).to_contain_text("[6]")
    notebook.run(3)
    notebook.run(4)
    expect(sidebar.root.locator('[data-repair="ran"]').filter(visible=True).last).to_contain_text(
        "In[9] ran with this fix."
    )


@pytest.mark.breadth
def test_findings_of_an_earlier_kernel_are_marked_and_folded(lab: Lab) -> None:
    many_ops = "w = torch.ones(8, 8, device='cuda:0')\nfor _ in range(2000): w = w * 1\n"
    first = MIXED.replace("%%devtrace\n", f"%%devtrace\n{many_ops}")
    notebook = lab.open("earlier.ipynb", LOAD, first, MIXED.replace("total", "other"), run="first")
    notebook.run(1)
    notebook.run(2)
    sidebar = Sidebar.open(notebook)
    expect(sidebar.findings.filter(visible=True)).to_have_count(2)
    notebook.page.evaluate("() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    sidebar.wait_link("absent")
    earlier = sidebar.root.get_by_text("Earlier kernel: 2 errors")
    expect(earlier).to_be_visible()
    notebook.wait_idle()
    notebook.run(0)
    sidebar.wait_link("connected")
    expect(earlier).to_be_visible()
    expect(sidebar.findings.filter(visible=True)).to_have_count(0)
    notebook.run(2)
    expect(sidebar.findings.filter(visible=True)).to_have_count(1)
    expect(sidebar.root.get_by_text("Earlier kernel: 1 error")).to_be_visible()
    expect(sidebar.traces.filter(has_text="earlier kernel")).to_have_count(1)
    label = sidebar.traces.filter(has_text="earlier kernel").locator(".dt-side-label")
    assert label.evaluate("node => node.scrollWidth <= node.clientWidth"), "the label is cut"
    sidebar.root.get_by_text("Earlier kernel: 1 error").click()
    expect(sidebar.findings.filter(visible=True)).to_have_count(2)


def test_errors_warnings_and_notes_are_counted_apart_and_clean_cells_fold_into_one_line(lab: Lab) -> None:
    noted = "%%devtrace\nz = torch.ones(8, 8).to('cuda:0') * 2"
    notebook = lab.open("counts.ipynb", MIXED, noted, CLEAN, CLEAN, noted, CLEAN, warm=True)
    for index in range(6):
        notebook.run(index)
    sidebar = Sidebar.open(notebook)
    counts = sidebar.root.locator("[data-part=findings] .dt-side-counts")
    expect(counts).to_contain_text("1 error")
    clean = sidebar.root.locator("[data-part=findings] .dt-side-clean-line")
    expect(clean).to_have_count(1)
    expect(clean).to_contain_text("✓ No errors or warnings in ")
    expect(sidebar.findings.filter(visible=True)).to_have_count(1)
    folded = sidebar.root.get_by_text("4 traces without errors or warnings")
    expect(folded).to_be_visible()
    expect(sidebar.traces.filter(visible=True)).to_have_count(2)
    folded.click()
    expect(sidebar.traces.filter(visible=True)).to_have_count(6)


@pytest.mark.breadth
def test_displaying_a_report_again_adds_no_findings(lab: Lab) -> None:
    notebook = lab.open("again.ipynb", MIXED, CLEAN, "%devtrace report", warm=True, run="first")
    notebook.run(1)
    sidebar = Sidebar.open(notebook)
    expect(sidebar.traces).to_have_count(2)
    expect(sidebar.findings.filter(visible=True)).to_have_count(1)
    notebook.run(2)
    notebook.wait_ready("report", 2)
    notebook.run(1)
    expect(sidebar.traces).to_have_count(3)
    expect(sidebar.findings.filter(visible=True)).to_have_count(1)


@pytest.mark.breadth
def test_a_note_about_a_loop_underlines_its_header_only(lab: Lab) -> None:
    loop = (
        "%%devtrace\nfrom torch.utils.data import DataLoader, TensorDataset\n"
        "w = torch.ones(4, 4, device='cuda:0')\n"
        "for (b,) in DataLoader(TensorDataset(torch.ones(16, 4)), batch_size=2):\n"
        "    y = b.to('cuda:0') @ w\n"
        "    z = y + 1"
    )
    notebook = lab.open("loop.ipynb", loop, warm=True, run="first")
    header = "for (b,) in DataLoader(TensorDataset(torch.ones(16, 4)), batch_size=2):"
    underlined = "() => [...document.querySelectorAll('.dt-underline')].map(each => each.innerText).join('')"
    wait_for_look(notebook.page, f"header => ({underlined})().includes(header)", True, at=header)
    assert "z = y + 1" not in notebook.page.evaluate(underlined)


@pytest.mark.breadth
def test_an_optimizers_line_says_that_what_it_does_on_the_cpu_is_no_part_of_the_computation(lab: Lab) -> None:
    step = (
        "%%devtrace\nmodel = torch.nn.Linear(8, 8).to('cuda:0')\nadam = torch.optim.Adam(model.parameters())\n"
        "for _ in range(3):\n    model(x).sum().backward()\n    adam.step()"
    )
    notebook = lab.open("adam.ipynb", step, warm=True, run="first")
    stripe = notebook.cell(0).locator('.dt-stripe[data-line="6"]')
    expect(stripe).to_have_attribute("data-devices", "cuda:0 cpu")
    stripe.hover()
    expect(notebook.page.locator(".dt-tip")).to_contain_text("On cpu: nothing of the GPU computation")
