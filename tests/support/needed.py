"""The programs that this repository needs and pip cannot bring, looked for before anything is installed: hence on the
standard library alone.

`python -m tests.support.needed` checks them, or those that are named, and lists everything missing at once, so that a
fresh machine needs one `apt-get`, not one per attempt.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from epochal.contrib.local.errors import ProgramMissing
from epochal.contrib.local.programs import NODE, NPM, Program, find

JAVA = Program(
    name="java",
    purpose="runs DynamoDB Local, which judges the storage code",
    version_option="-version",  # with one dash every release from 8 on understands it
    minimum=11,
    how="apt-get install default-jre-headless, or brew install openjdk",
)
ALL = (NODE, NPM, JAVA)


def main(names: Sequence[str]) -> int:
    """Print which of the named programs, or of all, are missing; the exit status says whether there are any."""
    problems: list[ProgramMissing] = []
    for program in ALL:
        try:
            if not names or program.name in names:
                find(program)
        except ProgramMissing as error:
            problems.append(error)
    for problem in problems:
        sys.stderr.write(f"missing: {problem}\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
