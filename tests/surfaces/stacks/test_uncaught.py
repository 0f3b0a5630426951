"""An app that ends by the error of a construct prints the error and its own lines, and no stack trace."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.surfaces.stacks.templates import ROOT

APP = """
from aws_cdk import App, Stack
from epochal.cdk import EventStore

class Shop(Stack):
    def __init__(self, scope, id_):
        super().__init__(scope, id_)
        {line}

def main():
    Shop(App(), "Shop")

main()
"""


def printed(folder: Path, line: str) -> list[str]:
    """What an app prints to standard error that runs this line in a stack, and fails."""
    (folder / "app.py").write_text(APP.format(line=line))
    ran = subprocess.run(
        [sys.executable, "app.py"],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT / "layers" / "epochal" / "python"),
            "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    return ran.stderr.splitlines()


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (
            'EventStore(self, "Events", partitions=4)',
            "epochal: EventStore.partitions is not an argument; did you mean tips_partitions, journal_partitions",
        ),
        (
            'EventStore(self, "Events", api=None, watch=False).grant_append(None)',
            "epochal: grant_append must be given ",
        ),
    ],
    ids=["of a constructor", "of a method"],
)
def test_the_error_of_a_construct_comes_with_the_lines_of_the_app_and_without_a_trace(
    tmp_path: Path, line: str, error: str
) -> None:
    first, *places = printed(tmp_path, line)
    assert first.startswith(error)
    assert places == [
        "  at app.py:13, in <module>: main()",
        '  at app.py:11, in main: Shop(App(), "Shop")',
        f"  at app.py:8, in __init__: {line}",
    ]


def test_another_error_keeps_its_trace(tmp_path: Path) -> None:
    lines = printed(tmp_path, 'EventStore(self, "Events", api=None, watch=False).nothing')
    assert lines[0] == "Traceback (most recent call last):"
    assert "AttributeError" in lines[-1]
