"""Programs that pip cannot bring: whether they are here, new enough, and how to get them.

`python -m epochal.local.programs` checks them, or those that are named, and lists everything missing at once, so that
a fresh machine needs one `apt-get`, not one per attempt. It runs before anything is installed, hence on the standard
library alone.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from epochal.local.errors import ProgramMissing


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program found on PATH, the lowest major version that works, and why it is needed."""

    name: str
    purpose: str
    version_option: str
    minimum: int
    how: str


NODE = Program(
    name="node",
    purpose="runs the CDK command line",
    version_option="--version",
    minimum=18,
    how="apt-get install nodejs npm, or brew install node",
)
NPM = Program(
    name="npm",
    purpose="installs the CDK command line and fetches DynamoDB Local",
    version_option="--version",
    minimum=9,
    how="apt-get install nodejs npm, or brew install node",
)
JAVA = Program(
    name="java",
    purpose="runs DynamoDB Local, which judges the storage code",
    version_option="-version",  # with one dash every release from 8 on understands it
    minimum=11,
    how="apt-get install default-jre-headless, or brew install openjdk",
)
ALL = (NODE, NPM, JAVA)


def find(program: Program) -> str:
    """The path of `program`, or `ProgramMissing` saying what was found instead."""
    path = shutil.which(program.name)
    if path is None:
        raise ProgramMissing(program.name, f"not on PATH ({program.purpose})", program.how)
    try:
        ran = subprocess.run(
            [path, program.version_option], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ProgramMissing(
            program.name, f"{path} does not run: {str(error).rstrip('.')}", program.how
        ) from error
    major = major_version(ran.stdout + ran.stderr)
    if major < program.minimum:
        found = f"{path} is version {major}, {program.minimum} or newer is needed ({program.purpose})"
        raise ProgramMissing(program.name, found, program.how)
    return path


def major_version(text: str) -> int:
    """The first version in what a program prints about itself; 0 when it names none."""
    match = re.search(r"(?:^|v|\")(\d+)(?:\.(\d+))?", text, re.MULTILINE)
    if match is None:
        return 0
    first, second = match.groups()
    # Java called itself 1.8 before it became 9.
    return int(second) if first == "1" and second else int(first)


def missing(programs: Sequence[Program]) -> list[ProgramMissing]:
    """Every one of `programs` that cannot be used, in order."""
    found: list[ProgramMissing] = []
    for program in programs:
        try:
            find(program)
        except ProgramMissing as error:
            found.append(error)
    return found


def main(names: Sequence[str]) -> int:
    """Print what is missing of the programs named, or of all; the exit status says whether anything is."""
    problems = missing([program for program in ALL if not names or program.name in names])
    for problem in problems:
        print(f"missing: {problem}", file=sys.stderr)  # noqa: T201  this is the check's one purpose
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
