"""A real IPython kernel for tests: run a cell as a front end does, and read what it sent."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from devtrace.report.mime import MIME_TYPE

LIMIT = 300  # seconds a cell may take: the first import of torch takes ten on a busy machine
_COLOR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Sent:
    """Messages of a kernel for one cell: its reply and its outputs, in order."""

    reply: dict[str, Any] = field(default_factory=dict)
    outputs: list[dict[str, Any]] = field(default_factory=list)

    @property
    def status(self) -> str:
        return str(self.reply["status"])

    @property
    def kinds(self) -> list[str]:
        """Return the message types of the outputs; streams are joined."""
        kinds = [output["type"] for output in self.outputs]
        return [kind for index, kind in enumerate(kinds) if kinds[index - 1 : index] != [kind] or kind != "stream"]

    @property
    def reports(self) -> list[dict[str, Any]]:
        return [output["data"] for output in self.outputs if MIME_TYPE in output.get("data", {})]

    @property
    def result(self) -> str | None:
        """Return the text of the cell's value."""
        texts = [output["data"]["text/plain"] for output in self.outputs if output["type"] == "execute_result"]
        return texts[0] if texts else None

    @property
    def streams(self) -> str:
        return "".join(output["text"] for output in self.outputs if output["type"] == "stream")

    @property
    def traceback(self) -> str:
        errors = ["\n".join(output["traceback"]) for output in self.outputs if output["type"] == "error"]
        return _COLOR.sub("", "\n".join(errors))


class Kernel:
    """A kernel and a front end of it."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager = manager
        self.client = client

    def run(self, *lines: str, cell_id: str | None = None, at: Callable[[dict[str, Any]], None] | None = None) -> Sent:
        """Run a cell; `at` is called with each output as it comes."""
        content = {"code": "\n".join(lines), "silent": False, "store_history": True, "user_expressions": {}}
        message = self.client.session.msg("execute_request", content | {"allow_stdin": False, "stop_on_error": True})
        message["metadata"] = {"cellId": cell_id} if cell_id else {}
        self.client.shell_channel.send(message)
        sent = Sent()
        for output in self._outputs(message["header"]["msg_id"]):
            sent.outputs.append(output)
            if at is not None:
                at(output)
        sent.reply = self._reply(message["header"]["msg_id"])
        return sent

    def _reply(self, id: str) -> dict[str, Any]:
        while True:  # a slow start leaves answers to its own questions
            reply = self.client.get_shell_msg(timeout=LIMIT)
            if reply["parent_header"].get("msg_id") == id:
                content: dict[str, Any] = reply["content"]
                return content

    def _outputs(self, id: str) -> Iterator[dict[str, Any]]:
        while True:
            message = self.client.get_iopub_msg(timeout=LIMIT)
            kind, content = message["msg_type"], message["content"]
            if message["parent_header"].get("msg_id") != id or kind == "execute_input":
                continue
            if kind == "status":
                if content["execution_state"] == "idle":
                    return
                continue
            yield {"type": kind, "buffers": message.get("buffers", []), **content}

    def fixing(self, cells: list[dict[str, Any]], runs: str = "") -> Iterator[dict[str, Any]]:
        """Ask for a fix as JupyterLab does, on a comm that has a subshell; `runs`: a cell that runs meanwhile."""
        session, comm = self.client.session, uuid4().hex
        self.client.control_channel.send(session.msg("create_subshell_request"))
        while "subshell_id" not in (reply := self.client.get_control_msg(timeout=LIMIT)["content"]):
            pass
        if runs:
            self.client.execute(runs)
            while self.client.get_iopub_msg(timeout=LIMIT)["content"].get("code") != runs:
                pass
        hello = {"kind": "hello", "request": 1, "protocol": 1, "visible": True}
        fix = {"kind": "fix", "request": 2, "cells": cells, "as_far": False, "one": False}
        for kind, data in (("comm_open", hello), ("comm_msg", fix)):
            message = session.msg(kind, {"comm_id": comm, "target_name": "devtrace", "data": data})
            message["header"]["subshell_id"] = reply["subshell_id"]
            self.client.shell_channel.send(message)
        state: dict[str, Any] = {"state": "running"}
        while state["state"] == "running":
            told = self.client.get_iopub_msg(timeout=LIMIT)
            if told["msg_type"] == "comm_msg" and "fixing" in told["content"]["data"]:
                state = told["content"]["data"]["fixing"]
                yield state

    def send(self, comm: str, content: dict[str, Any]) -> None:
        """Send a custom message of a widget's view."""
        data = {"comm_id": comm, "data": {"method": "custom", "content": content}}
        self.client.shell_channel.send(self.client.session.msg("comm_msg", data))


@contextmanager
def new_kernel(python: str = sys.executable, **environment: str) -> Iterator[Kernel]:
    """Start a kernel in a process of its own, and end it."""
    manager = KernelManager(kernel_name="python3")
    assert manager.kernel_spec is not None
    manager.kernel_spec.argv[0] = python
    manager.start_kernel(env={**os.environ, **environment})
    client = manager.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=LIMIT)
        yield Kernel(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
