"""The sidebar and its kernels: each state that the two can be in, and what comes over the comm that should not."""

from __future__ import annotations

import json
import sys

import pytest
from playwright.sync_api import ConsoleMessage, Page, WebSocketRoute, expect

from e2e.lab import Lab
from e2e.notebook import Notebook
from e2e.server import Server
from e2e.sidebar import Sidebar

pytestmark = pytest.mark.e2e

LOAD = "%load_ext devtrace\nimport torch"
TRACED = "%%devtrace\ntorch.ones(3) + 1"

# A kernel in whose environment there is no devtrace.
MISSING = """
import sys

class Missing:
    def find_spec(self, name, path, target=None):
        if name == "devtrace":
            raise ModuleNotFoundError("No module named 'devtrace'")

sys.meta_path.insert(0, Missing())
"""

# A kernel of another language, as far as JupyterLab can tell, that needs nothing installed.
FOREIGN = """
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp

class Kernel(IPythonKernel):
    language_info = {**IPythonKernel.language_info, "name": "julia"}

IPKernelApp.launch_instance(kernel_class=Kernel)
"""

# A kernel's end of the comm that says what it likes.
IMPOSTOR = """
def opened(comm, message):
    for data in {messages!r}:
        comm.send(data)

from IPython import get_ipython
get_ipython().kernel.comm_manager.register_target("devtrace", opened)
"""


def test_without_a_notebook_the_panel_shows_what_it_is_for(lab: Lab) -> None:
    notebook = lab.open("closed.ipynb", "1")
    sidebar = Sidebar.open(notebook, link="absent")
    notebook.command("docmanager:save")
    notebook.command("application:close")
    sidebar.wait_link("nowhere")
    expect(sidebar.status).to_contain_text("Open a notebook or a console")


@pytest.mark.breadth
def test_without_a_kernel_the_traces_of_the_outputs_are_shown(lab: Lab) -> None:
    page = lab.page
    notebook = lab.open("kernelless.ipynb", LOAD, TRACED, run="all")
    sidebar = Sidebar.open(notebook)
    sidebar.expect_traces("In[2]")
    page.evaluate("() => jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    sidebar.wait_link("no-kernel")
    expect(sidebar.status).to_contain_text("has no kernel")
    sidebar.expect_traces("In[2]")
    expect(notebook.cell(1).locator(".dt-stripe")).to_have_count(1)
    sidebar.traces.first.click()
    page.locator(".dt-tab-page [data-devtrace=report][data-ready=true]").wait_for()


def test_devtrace_is_loaded_from_the_panel(lab: Lab) -> None:
    notebook = lab.open("load.ipynb", "1")
    sidebar = Sidebar.open(notebook, link="absent")
    expect(sidebar.tracing).to_have_attribute("aria-disabled", "true")
    devices = sidebar.root.locator("details[data-part=devices]")
    expect(devices).to_be_hidden()
    sidebar.root.get_by_role("button", name="Run %load_ext devtrace").click()
    sidebar.wait_link("connected")
    expect(sidebar.tracing).to_have_attribute("aria-disabled", "false")
    expect(devices).to_be_visible()


@pytest.mark.breadth
def test_for_a_kernel_without_devtrace_the_panel_shows_how_to_install_it(lab: Lab) -> None:
    notebook = lab.open("none.ipynb", MISSING, run="first")
    sidebar = Sidebar.open(notebook, link="absent")
    sidebar.root.get_by_role("button", name="Run %load_ext devtrace").click()
    expect(sidebar.status).to_contain_text("not installed where this kernel runs. Run %pip install devtrace")
    expect(sidebar.tracing).to_have_attribute("aria-disabled", "true")


def test_a_restart_with_the_panel_open_begins_anew(lab: Lab) -> None:
    notebook = lab.open("restart.ipynb", LOAD, TRACED, run="all")
    sidebar = Sidebar.open(notebook)
    sidebar.simulated(2).check()
    expect(sidebar.simulated(2)).to_be_checked()
    expect(sidebar.simulated(2)).to_be_enabled()
    lab.page.evaluate("() => { void jupyterapp.shell.currentWidget.sessionContext.restartKernel(); }")
    sidebar.wait_link("absent")
    sidebar.expect_traces("In[2]")
    notebook.wait_idle()
    notebook.run_all()
    sidebar.wait_link("connected")
    expect(sidebar.simulated(2)).to_be_checked()
    expect(sidebar.traces).to_have_count(1)
    expect(notebook.cell(1).locator(".dt-stripe")).to_have_count(1)


@pytest.mark.breadth
def test_an_interrupted_cell_is_not_shown_as_running(lab: Lab) -> None:
    endless = "%%devtrace\nwhile True:\n    torch.ones(8, 8) @ torch.ones(8, 8)"
    notebook = lab.open("interrupt.ipynb", LOAD, endless, run="first")
    sidebar = Sidebar.open(notebook)
    notebook.start(1)
    sidebar.root.locator("[data-live=ops]").wait_for()
    notebook.command("notebook:interrupt-kernel")
    notebook.wait_idle()
    sidebar.expect_traces("In[2]")
    expect(sidebar.root.locator("[data-live=ops]")).to_have_count(0)


@pytest.mark.breadth
def test_the_panel_connects_again_when_jupyter_has_restarted_a_kernel_that_died(lab: Lab) -> None:
    notebook = lab.open("dies.ipynb", LOAD, TRACED, "import os; os._exit(1)", run="first")
    notebook.run(1)
    sidebar = Sidebar.open(notebook)
    sidebar.expect_traces("In[2]")
    notebook.start(2)
    sidebar.wait_link("absent")
    sidebar.expect_traces("In[2]")
    lab.page.locator(".jp-Dialog").get_by_role("button").first.click()  # that the kernel has restarted
    notebook.run(0)
    sidebar.wait_link("connected")


@pytest.mark.breadth
def test_a_page_that_is_loaded_while_a_cell_runs_shows_that_and_connects_after_it(page: Page, server: Server) -> None:
    running = "import os\nwhile not os.path.exists('loaded-again'): pass"
    notebook = Notebook.open(page, server, server.write("busy.ipynb", LOAD, running, TRACED))
    notebook.run(0)
    notebook.start(1)
    page.wait_for_function("jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'busy'")
    notebook = Notebook.open(page, server, "busy.ipynb", kernel=False)
    sidebar = Sidebar.open(notebook, link="busy")
    expect(sidebar.status).to_contain_text("a cell runs. The panel connects when it is free")
    (server.folder / "loaded-again").touch()
    sidebar.wait_link("connected")
    notebook.wait_idle()
    notebook.run(2)
    expect(sidebar.traces).to_have_count(1)


@pytest.mark.breadth
def test_a_lost_connection_is_shown_and_comes_back(page: Page, server: Server) -> None:
    routes: list[WebSocketRoute] = []
    cut = False

    def pass_on(route: WebSocketRoute) -> None:
        if cut:
            route.close(code=1011)
        else:
            routes.append(route)
            route.connect_to_server()

    page.route_web_socket(lambda url: "/channels" in url, pass_on)
    notebook = Notebook.open(page, server, server.write("lost.ipynb", LOAD, TRACED))
    notebook.run(0)
    sidebar = Sidebar.open(notebook)
    cut = True
    for route in list(routes):
        route.close(code=1011)
    sidebar.wait_link("disconnected")
    expect(sidebar.status).to_contain_text("connection to the kernel is lost")
    cut = False
    sidebar.wait_link("connected")
    notebook.wait_idle()
    notebook.run(1)
    sidebar.expect_traces("In[2]")


def test_two_notebooks_have_each_its_own_state(lab: Lab) -> None:
    notebook = lab.open("one.ipynb", LOAD, TRACED, run="all")
    sidebar = Sidebar.open(notebook)
    sidebar.tracing.click()
    expect(sidebar.tracing).to_be_checked()
    sidebar.expect_traces("In[2]")
    lab.open("two.ipynb", LOAD, "1")
    expect(sidebar.root).to_contain_text("two.ipynb")
    sidebar.wait_link("absent")
    notebook.run(0)
    sidebar.wait_link("connected")
    expect(sidebar.tracing).not_to_be_checked()
    expect(sidebar.traces).to_have_count(0)
    notebook.go_to("one.ipynb")
    expect(sidebar.tracing).to_be_checked()
    sidebar.expect_traces("In[2]")


@pytest.mark.breadth
def test_two_notebooks_on_one_kernel_share_its_state_and_show_each_its_own_traces(lab: Lab) -> None:
    page = lab.page
    notebook = lab.open("first.ipynb", LOAD, TRACED, run="all")
    sidebar = Sidebar.open(notebook)
    sidebar.expect_traces("In[2]")
    lab.open("second.ipynb", "torch.ones(5) * 2")
    page.evaluate(
        "async () => { const open = [...jupyterapp.shell.widgets('main')];"
        " const [first, second] = ['first.ipynb', 'second.ipynb']"
        ".map(name => open.find(widget => widget.title.label === name).sessionContext);"
        " await second.changeKernel({ id: first.session.kernel.id }); }"
    )
    notebook.wait_idle()
    sidebar.wait_link("connected")
    expect(sidebar.traces).to_have_count(0)
    sidebar.tracing.click()
    expect(sidebar.tracing).to_be_checked()
    notebook.run(0)
    sidebar.expect_traces("In[3]")
    notebook.go_to("first.ipynb")
    expect(sidebar.tracing).to_be_checked()
    sidebar.expect_traces("In[2]")


@pytest.mark.breadth
def test_two_browsers_on_one_notebook_see_the_same(lab: Lab) -> None:
    notebook = lab.open("shared.ipynb", LOAD, TRACED, run="first")
    sidebar = Sidebar.open(notebook)
    with lab.second_page() as page:
        others = Sidebar.open(Notebook.open(page, lab.server, "shared.ipynb"))
        sidebar.tracing.click()
        expect(others.tracing).to_be_checked()
        notebook.run(1)
        sidebar.expect_traces("In[2]")
        others.expect_traces("In[2]")
        others.traces.first.click()
        page.locator(".dt-tab-page [data-devtrace=report][data-ready=true]").wait_for()


@pytest.mark.breadth
def test_a_console_has_a_panel_too(lab: Lab) -> None:
    page = lab.page
    notebook = lab.open("beside.ipynb", LOAD, run="first")
    sidebar = Sidebar.open(notebook)
    notebook.command("notebook:create-console")
    prompt = page.locator(".jp-CodeConsole-promptCell .cm-content")
    prompt.wait_for()
    expect(sidebar.root).to_contain_text("(console)")
    sidebar.wait_link("connected")
    prompt.click()
    page.keyboard.type("%%devtrace\ntorch.ones(3) + 1")
    page.keyboard.press("Shift+Enter")
    sidebar.expect_traces("In[2]")


@pytest.mark.breadth
def test_a_kernel_of_another_language_is_left_alone(page: Page, server: Server) -> None:
    folder = server.folder.parent / "home" / "share" / "kernels" / "foreign"
    folder.mkdir(parents=True, exist_ok=True)
    argv = [sys.executable, "-c", FOREIGN, "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "Julia, so it says", "language": "julia"}
    (folder / "kernel.json").write_text(json.dumps(spec))
    notebook = Notebook.open(page, server, server.write("foreign.ipynb", "1", kernel="foreign"))
    sidebar = Sidebar.open(notebook, link="foreign")
    expect(sidebar.status).to_contain_text("devtrace works in Python kernels")


@pytest.mark.breadth
@pytest.mark.parametrize(("protocol", "link"), [(99, "newer"), (0, "older")])
def test_another_devtrace_in_the_kernel_is_not_taken_for_ours(lab: Lab, protocol: int, link: str) -> None:
    welcome = {"kind": "welcome", "request": 1, "protocol": protocol, "version": "9.9", "mood": "fine"}
    notebook = lab.open(f"{link}.ipynb", IMPOSTOR.format(messages=[welcome]), run="first")
    sidebar = Sidebar.open(notebook, link=link)
    expect(sidebar.status).to_contain_text(f"{link} devtrace than this panel")
    expect(sidebar.status).to_contain_text("It is 9.9.")


@pytest.mark.breadth
def test_what_does_not_fit_is_refused_with_one_line_and_markup_stays_text(lab: Lab) -> None:
    page = lab.page
    markup = "<img src=x onerror='window.hacked = 1'><script>window.hacked = 1</script>"
    welcome = {"kind": "welcome", "request": 1, "protocol": 1, "version": markup, "folder": "/", "fresh": False}
    device = {"device": markup, "simulated": True, "tensors": 1, "parameters": 0, "bytes": 7}
    holding = {"kind": "tensor", "name": markup, "names": [], "type": markup, "dtype": markup, "shape": [1]}
    inventory = {
        "devices": [device],
        "holdings": [holding | {"devices": [{key: device[key] for key in device if key != "simulated"}]}],
        "left_out": 0,
        "cut": True,
    }
    bad = [
        {"kind": "run", "code": "window.hacked = 1"},
        {"kind": "update", "state": {"tracing": "yes"}},
        {"kind": "update", "script": "window.hacked = 1"},
        "hello",
    ]
    live = {"label": markup, "cell": markup, "seconds": 1, "ops": 1, "copies": 1, "copied": 1, "devices": []}
    state = {"tracing": False, "simulated": 0, "max_ops": 1, "running": True}
    good = {"kind": "update", "inventory": inventory, "state": state, "live": live}
    lines: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type == "error" and "devtrace" in message.text:
            lines.append(message.text)

    page.on("console", note)
    cell = IMPOSTOR.format(messages=[welcome, *bad, good])
    notebook = lab.open("hostile.ipynb", cell, run="first")
    sidebar = Sidebar.open(notebook)
    expect(sidebar.row_of(markup)).to_contain_text(markup)
    expect(sidebar.root.locator("[data-part=live]")).to_contain_text(f"{markup} is running")
    assert len(lines) == len(bad)
    assert all(line.startswith("devtrace: refused from the kernel: ") and "\n" not in line for line in lines)
    assert page.evaluate("window.hacked") is None
    assert sidebar.root.locator("img, script").count() == 0
    page.remove_listener("console", note)
