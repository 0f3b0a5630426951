"""How processes share the tests: a file stays in one of them, and so do folders that share what is dear to set up.

Each of them imports all tests before it runs its own. Where nothing is compiled yet, that takes 18 s of CPU: so every
second one goes through a folder from its last file on, and finds compiled what the others have gone through.

xdist's own groups are read from a mark, which it puts into the ids of tests; that pytest 9.2 builds ids otherwise, it
does not notice, and deals out test by test. So the groups are told from the path alone.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.support.kinds import KINDS, TESTS, kind_of

TOGETHER: Final = {"deploy": "embedded", "local": "embedded", "surfaces/stacks": "synthesis"}
"""Folders whose tests stay in one process, each with its group: there is one deployment, and one engine of CDK's."""


class ByGroup(LoadScopeScheduling):
    """Gives a process one group after another, in the order that the tests are in."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(TESTS.parent / nodeid.partition("::")[0])


def group_of(path: Path) -> str:
    """What stays in the process that runs a file: all of its folder, or the file alone."""
    inside = path.relative_to(TESTS).as_posix()
    for folder, group in TOGETHER.items():
        if inside.startswith(f"{folder}/"):
            return group
    return inside


FIRST: Final = TESTS / "deploy" / "test_demo.py"
"""Looks at all of the feed, and can do so on the deployment that all share as long as nobody else has used it."""

LAST: Final = tuple(TESTS / "deploy" / f"test_{name}.py" for name in ("timers", "process", "reactions"))
"""The first two want something to be a minute past, which goes by while others run; the third deploys other reactions
in the place of those that the others share.
"""


@cache
def turn(path: Path) -> tuple[int, int, int, tuple[str, ...]]:
    """A file's place among all: the groups of folders, the kinds in their order, then names, as pytest sorts them."""
    groups = [*dict.fromkeys(TOGETHER.values())]
    group = group_of(path)
    place = groups.index(group) if group in groups else len(groups)
    last = LAST.index(path) + 1 if path in LAST else 0
    return place, (path != FIRST) + last, KINDS.index(kind_of(path)), path.parts


def from_the_last(config: pytest.Config) -> bool:
    """Whether this process goes through folders from their last file on; none does where it is alone."""
    worker: str = getattr(config, "workerinput", {"workerid": "gw0"})["workerid"]
    return int(worker.removeprefix("gw")) % 2 == 1
