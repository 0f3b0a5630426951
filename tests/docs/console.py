"""Runs the console examples of a document: every `$ epochal …` in it, and what stands below is what it prints.

`…` stands for anything within a line, and alone on a line for any lines.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Example:
    """A command and what it is said to print."""

    command: str
    output: tuple[str, ...]

    @property
    def arguments(self) -> list[str]:
        """What follows `epochal`."""
        return shlex.split(self.command)[1:]

    def printed(self, text: str) -> bool:
        """Whether `text` is what the document says."""
        pattern = "".join(
            "(?:.*\n)*" if line == "…" else re.escape(line).replace("…", ".*") + "\n" for line in self.output
        )
        return re.fullmatch(pattern, "".join(f"{line.rstrip()}\n" for line in text.splitlines())) is not None


def examples(document: Path) -> Iterator[Example]:
    """The examples, in their order."""
    for block in _BLOCK.findall(document.read_text("utf-8")):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *output = part.splitlines()
            yield Example(command, tuple(line.rstrip() for line in output))
