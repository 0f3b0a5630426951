"""CHANGELOG.md: each name that has moved is where the table says, and no longer where it was."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.public import library_names

TEXT = (Path(__file__).resolve().parents[2] / "CHANGELOG.md").read_text("utf-8")
TABLE = TEXT.partition("\n| before | now |\n|---|---|\n")[2].partition("\n\n")[0]
MOVED = [
    (f"epochal.{before}", f"epochal.{now}") for before, now in re.findall(r"`([\w.]+)` \| `([\w.]+)`", TABLE)
]


def is_there(dotted: str) -> bool:
    """Whether the source has a module, a name of a module, or a member of a class of that name."""
    if dotted in library_names.modules() or library_names.place_of(dotted):
        return True
    owner, _, member = dotted.rpartition(".")
    place = library_names.place_of(owner) if owner.count(".") > 1 else None
    return place is not None and any(
        re.split(r"[( ]", line)[0] == f"{place[0].name}.{place[1]}.{member}"
        for line in library_names.described(*place)
    )


@pytest.mark.parametrize(("before", "now"), MOVED)
def test_a_name_that_has_moved_is_where_the_table_says(before: str, now: str) -> None:
    assert is_there(now)
    assert not is_there(before)


def test_members_of_classes_are_looked_for() -> None:
    assert is_there("epochal.aio.stores.AsyncStreams.store")
    assert not is_there("epochal.aio.stores.AsyncStreams.nothing")


def test_the_table_is_read() -> None:
    old, new = ("epochal.timers_of", "epochal.contrib.timers.stores.timers_of")
    assert (old, new) in MOVED
    assert len(MOVED) == len(TABLE.splitlines()) > 30
