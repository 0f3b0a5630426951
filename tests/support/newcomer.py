"""Follows a page of the documentation as a reader does: runs its commands, and makes the changes that it describes.

A page has these blocks, and is followed from top to bottom:

    sh               commands for a shell, which go on in the folder where the block before ended
    console          commands after `$ `, and what they print
    python # in F    code that is in the file F of the project
    python # to F    code to put into F: a new file; tests are added below those that are there, and definitions take
                     the place of those of their names

A sentence such as "Seven tests pass." or "The test fails." below a block is checked by running pytest.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

NUMBERS = {"six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
BLOCK = re.compile(
    r"^```(?P<kind>sh|console|python)\n(?:# (?P<verb>in|to) (?P<file>\S+)\n)?(?P<code>.*?)^```$"
    r"(?=\n*(?P<below>[^\n]*))",
    re.MULTILINE | re.DOTALL,
)
SECONDS = 600
"""Of a command, at most: the first `pip install` fetches some hundred megabytes."""


@dataclass
class Newcomer:
    """Somebody with a shell, a folder, and pages to follow.

    Attributes:
        folder: folder in which the shell is now.
        environment: variables of the shell.
        words: texts of pages that readers are told to replace, with what they put in their place.
        servers: programs that were started and go on.
        log: commands and what they printed.
    """

    folder: Path
    environment: Mapping[str, str]
    words: Mapping[str, str] = field(default_factory=dict)
    servers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    def follow(self, page: str, *, until: str = "", serving: Collection[str] = ()) -> int:
        """Follow a page, and return the number of its blocks.

        Args:
            page: text of the page.
            until: heading at which to stop; empty for the end.
            serving: commands that do not end: they are started, and awaited at the port of `UVICORN_PORT`.
        """
        text = page.partition(f"\n{until}\n")[0] if until else page
        assert not until or text != page, f"the page has no heading {until}"
        blocks = list(BLOCK.finditer(text))
        for block in blocks:
            code, file = self._said(block["code"]), self.folder / (block["file"] or "")
            match block["kind"], block["verb"]:
                case "sh", _ if code.strip() in serving:
                    self.serve(code)
                case "sh", _:
                    self.run(code)
                case "console", _:
                    self._compare(code)
                case "python", "in":
                    assert code in file.read_text("utf-8"), f"{file} has not\n{code}"
                case "python", "to":
                    write(file, code)
                case _:
                    raise AssertionError(f"nothing says where this code goes:\n{code}")
            self._check(block["below"])
        return len(blocks)

    def run(self, commands: str, *, fails: bool = False) -> str:
        """Run commands in the shell, and return what they print."""
        place = self.folder.parent / ".folder"
        script = f"set -euo pipefail\n{commands}\npwd > '{place}'\n"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        self.log.append(f"$ {commands}\n{done.stdout}")
        assert (done.returncode != 0) == fails, "\n".join(self.log)
        if not fails:
            self.folder = Path(place.read_text().strip())
        return done.stdout

    def serve(self, command: str) -> None:
        """Start a program that goes on, and wait until it answers."""
        log = (self.folder.parent / "server.log").open("wb")
        with log:
            server = subprocess.Popen(
                ["bash", "-c", f"exec {command}"],
                cwd=self.folder,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.servers.append(server)
        ends = time.monotonic() + SECONDS
        address = f"http://localhost:{self.environment['UVICORN_PORT']}/openapi.json"
        while time.monotonic() < ends and server.poll() is None:
            with suppress(URLError), urlopen(address, timeout=5):
                return
            time.sleep(0.1)
        raise AssertionError(Path(log.name).read_text("utf-8"))

    def leave(self) -> None:
        """Stop the programs that were started."""
        for server in self.servers:
            server.terminate()
            server.wait(SECONDS)

    def _said(self, code: str) -> str:
        for text, replacement in self.words.items():
            code = code.replace(text, replacement)
        return code

    def _compare(self, code: str) -> None:
        """Run the commands after `$ `, and compare their output with the page."""
        for part in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            assert self.run(command).strip() == output.strip()

    def _check(self, sentence: str) -> None:
        """Check what a sentence says about the tests."""
        if found := re.match(r"(\w+) tests pass\.", sentence):
            assert f"{NUMBERS[found[1].lower()]} passed" in self.run("pytest")
        elif sentence.startswith(("The test fails.", "It fails.")):
            self.run("pytest", fails=True)


def write(file: Path, code: str) -> None:
    """Put code into a file of a project, as a page describes it."""
    if not file.exists():
        file.write_text(code, "utf-8")
        return
    text = file.read_text("utf-8")
    file.write_text(f"{text}\n\n{code}" if file.name.startswith("test_") else replaced(text, code), "utf-8")


def replaced(source: str, new: str) -> str:
    """Return a module in which statements take the place of those of their names.

    Other statements stand before the next one that does.
    """
    old_lines, new_lines = source.splitlines(), new.splitlines()
    old_nodes = {name: node for node in ast.parse(source).body if (name := _name_of(node)) is not None}
    line, edits = len(old_lines), []
    for node in reversed(ast.parse(new).body):
        lines = new_lines[_first_line(node) - 1 : node.end_lineno]
        old = old_nodes.get(_name_of(node) or "")
        if old is None:
            edits.append((line, line, [*lines, "", ""]))
        else:
            line = _first_line(old) - 1
            edits.append((line, old.end_lineno or line, lines))
    for start, end, lines in edits:
        old_lines[start:end] = lines
    return "\n".join(old_lines) + "\n"


def _name_of(node: ast.stmt) -> str | None:
    """Return the name that a statement defines, or the module that it imports from."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Assign(targets=[ast.Name(id=name)]):
            return name
        case ast.ImportFrom(module=module):
            return f"from {module}"
        case _:
            return None


def _first_line(node: ast.stmt) -> int:
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef | ast.ClassDef) else []
    return min((decorator.lineno for decorator in decorators), default=node.lineno)


def clean_environment() -> dict[str, str]:
    """Return the variables of this process without those of AWS, Epochal, pytest and pip."""
    prefixes = ("AWS_", "EPOCHAL_", "PYTEST_", "PIP_", "PYTHON", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
