"""`epochal mcp`: what it says on standard output is the protocol and nothing else, and what it lacks it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from epochal.cli.main import epochal
from tests.support.terminal import Terminal

ASKED = (
    {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/call", "params": {"name": "read", "arguments": {"stream": "Order-1"}}},
)


PROGRAM = """
from epochal import Event
from epochal.cli.main import epochal
from tests.support.terminal import Terminal

terminal = Terminal()
terminal.streams.append("Order-1", [Event(type="Placed", data=b"{}")])
epochal.main(["mcp"], obj=lambda: terminal.store)
"""


@pytest.mark.slow
def test_a_client_is_answered_over_standard_input_and_output() -> None:
    command = [sys.executable, "-c", PROGRAM]
    path = os.pathsep.join(each for each in sys.path if each)
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for each in ASKED:
            process.stdin.write(f"{json.dumps({'jsonrpc': '2.0', **each})}\n")
        process.stdin.flush()
        begun, read = (json.loads(process.stdout.readline()) for _ in range(2))
        process.stdin.close()
        assert process.stdout.read() == ""
    assert process.returncode == 0
    assert begun["result"]["serverInfo"]["name"] == "epochal"
    (content,) = read["result"]["content"]
    assert json.loads(content["text"])["events"][0]["type"] == "Placed"


def test_without_its_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "epochal.contrib.mcp.server", raising=False)
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    terminal = Terminal()
    found = CliRunner().invoke(epochal, ["mcp"], obj=lambda: terminal.store)
    assert "epochal[mcp]" in str(found.exception)
