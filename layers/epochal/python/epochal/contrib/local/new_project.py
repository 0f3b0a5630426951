"""`epochal new`: a small, complete project to start from.

The files of each kind of project are in a folder beside this module. Each ends in `.tmpl`, so that no tool takes it
for a module of the library.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from epochal.cli import output
from epochal.contrib.local.installed_from import WHEELS, Requirement, requirement_of_project
from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProjectKind:
    """A kind of project that `epochal new` writes.

    Attributes:
        folder: folder of the templates.
        extras: extras of the library that the work on the project needs, separated by commas.
    """

    folder: Path
    extras: str


KINDS: Final = {
    "service": ProjectKind(Path(__file__).with_name("project"), "cdk,cli,console,lambda,local,pytest"),
    "web": ProjectKind(Path(__file__).with_name("web_project"), "async,cli,console,pytest"),
}
SUFFIX: Final = ".tmpl"
DOTTED: Final = "dot-"
"""Prefix of template names in the place of a leading dot in the project."""

NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
LENGTH: Final = 40
"""Characters of a project's name, at most: names of stacks and functions contain it."""


@click.command()
@click.argument("name")
@click.option(
    "--kind",
    type=click.Choice(tuple(KINDS)),
    default="service",
    show_default=True,
    help="Kind of project: a service with a stack, or a web service with FastAPI, Flask or Lambda.",
)
@output.with_json
def new(name: str, kind: str) -> None:
    """Create a small, complete project in a new folder.

    A service has rules, a reaction with a read model, a stack and tests. A web service has rules, HTTP
    operations, a read model and tests.

    NAME is the name of the folder and of the stack: lower-case letters, digits and hyphens.
    """
    folder = Path(name)
    if not NAME.fullmatch(name) or len(name) > LENGTH:
        raise InvalidInput(
            "NAME",
            f"must be at most {LENGTH} lower-case letters, digits and single hyphens, and begin with a letter",
        )
    if folder.exists():
        raise InvalidInput("NAME", f"{folder} already exists")
    library = requirement_of_project(KINDS[kind].extras)
    files = [str(path) for path in _write(KINDS[kind].folder, folder, name, library)]
    lines = [*files, "", f"cd {name} && pip install -r requirements.txt && pytest"]
    output.document({"folder": name, "files": files}, lines)


def _write(templates: Path, folder: Path, name: str, library: Requirement) -> Iterator[Path]:
    """Write a project's files from templates, and the library's wheel if needed; yield each path."""
    words = {"name": name, "requirement": library.line}
    for template in sorted(templates.rglob(f"*{SUFFIX}")):
        parts = template.relative_to(templates).with_suffix("").parts
        file = folder.joinpath(*(re.sub(f"^{DOTTED}", ".", part) for part in parts))
        file.parent.mkdir(parents=True, exist_ok=True)
        text = re.sub(r"\{\{ (\w+) \}\}", lambda match_: words[match_[1]], template.read_text("utf-8"))
        file.write_text(text, "utf-8")
        yield file
    if library.wheel is not None:
        file = folder / WHEELS / library.wheel.name
        file.parent.mkdir()
        shutil.copyfile(library.wheel, file)
        yield file
