"""`epochal new`: a small project that is complete, to begin one's own from.

Its files are beside this one, in `project`: each ends in `.tmpl`, so that no tool takes it for a module of the library.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Final

import click

from epochal.cli import output
from epochal.errors import InvalidInput

PROJECT: Final = Path(__file__).with_name("project")
SUFFIX: Final = ".tmpl"
HIDDEN: Final = "dot-"
"""How names begin that begin with a dot in the project."""

NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
LENGTH: Final = 40
"""Of a name: those of stacks are made of it, and of functions of those."""


@click.command()
@click.argument("name")
@output.json_option
def new(name: str, as_json: bool) -> None:
    """Write a small, complete project into a new folder.

    It has rules, a reaction with a read model, a stack and tests.

    NAME is that of the folder and of the stack: lower-case letters, digits and hyphens.
    """
    folder = Path(name)
    if not NAME.fullmatch(name) or len(name) > LENGTH:
        raise InvalidInput(
            "NAME",
            f"must be at most {LENGTH} lower-case letters, digits and single hyphens, from a letter on",
        )
    if folder.exists():
        raise InvalidInput("NAME", f"{folder} is there already")
    files = [str(each) for each in _write(folder, {"name": name, "version": version("epochal")})]
    lines = [*files, "", f"cd {name} && pip install -r requirements.txt && pytest"]
    output.document({"folder": name, "files": files}, lines, as_json=as_json)


def _write(folder: Path, words: dict[str, str]) -> Iterator[Path]:
    for template in sorted(PROJECT.rglob(f"*{SUFFIX}")):
        parts = template.relative_to(PROJECT).with_suffix("").parts
        file = folder.joinpath(*(re.sub(f"^{HIDDEN}", ".", part) for part in parts))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(re.sub(r"\{\{ (\w+) \}\}", lambda found: words[found[1]], template.read_text()))
        yield file
