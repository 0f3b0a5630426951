"""docs/guide/processes.md: its code runs, its arguments and outputs are those there are."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import get_args

from epochal.contrib.processes import Output, process

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "guide" / "processes.md").read_text()


def test_the_guide_to_processes_runs_from_top_to_bottom() -> None:
    names: dict[str, object] = {"__name__": __name__}
    blocks = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, "processes.md", "exec", dont_inherit=True), names)  # noqa: S102


def test_its_arguments_and_outputs_are_those_there_are() -> None:
    tables = re.findall(r"^(?:\| .*\n)+", TEXT, re.MULTILINE)
    (outputs,) = (each for each in tables if "| `Send(" in each)
    (arguments,) = (each for each in tables if "| `name`" in each)
    classes = {each.__name__ for each in get_args(Output)} - {"Later", "Event"}  # `later(…)` and `cancel(…)`
    assert set(re.findall(r"`(\w+)\(", outputs)) >= {*classes, "later", "cancel"}
    rows = "".join(re.findall(r"^\| (`[^|]*) \|", arguments, re.MULTILINE))
    assert re.findall(r"`(\w+)`", rows) == list(inspect.signature(process).parameters)
