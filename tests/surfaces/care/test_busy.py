"""Verify while the indexer closes epochs just where it reads; and what becomes of it without its second looks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from epochal.care import verify
from epochal.index import chain_check
from epochal.index.checkpoints import Checkpoint, epoch_stream, marks_name
from epochal.index.tip import load_tip
from epochal.plan.ops import Get, Op, Query, Reply
from epochal.plan.values import text
from epochal.store.driver import Driver, Meter
from tests.surfaces.care.damage import Damaged

BUSY = 8
"""Requests at the end of the chain before which the indexer is at work: for ever, and nobody would come to its end."""


def kinds(turn: int) -> set[str]:
    """What is found in an index that is right, and grows by epochs at every second look (`turn`: which) at its end."""
    world = Damaged()
    world.fill()
    looks, marks = 0, 0

    def index(*streams: str) -> None:
        for stream in streams:
            world.layouts.append(stream, "added")
            world.layouts.index()

    def execute(op: Op) -> Reply:
        nonlocal looks, marks
        if isinstance(op, Get) and op.key["p"]["S"] in ends(world):
            looks += 1
            # Every second look, so that what it sees first has changed at the next.
            if looks <= BUSY and looks % 2 == turn:
                index("Busy-1", "Busy-2", "Busy-3")
        if isinstance(op, Query) and op.partition == ("p", text(marks_name(0))):
            marks += 1
            if marks == 1:
                index("Cart-1", *(f"Busy-{number}" for number in range(10)))
        return world.layouts.execute(op)

    driver = Driver(execute=execute, meter=Meter(), sleep=world.naps.append)
    verifier = world.verifier()
    busy = replace(verifier, mender=replace(verifier.mender, driver=driver))
    found = {finding.kind for finding in busy.findings()}
    assert looks > BUSY
    assert marks
    return found


def ends(world: Damaged) -> set[str]:
    """The newest epoch of the streams' chain, and the next two."""
    last = world.last_epoch(0)
    return {epoch_stream(0, last + ahead) for ahead in range(3)}


@pytest.mark.slow
def test_nothing_is_said_of_an_index_that_grows_by_epochs_while_it_is_walked() -> None:
    assert kinds(0) | kinds(1) == set()


def takes_what_is_closing_for_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """An epoch whose Tip was read before it closed is not read again."""
    whole = chain_check._at_end  # noqa: SLF001  # what is broken is inside

    def at_end(table: str, place: chain_check.ChainPosition, cursor: Any) -> Any:
        following = epoch_stream(place.partition, place.epoch + 1)
        if place.closed or (yield from load_tip(table, following)) is None:
            return (yield from whole(table, place, cursor))
        fault = chain_check.ChainFault(kind="epoch left open", at=Checkpoint.of(place.epoch, cursor.at))
        return chain_check.ChainPage(faults=(fault,), place=place.following)

    monkeypatch.setattr(chain_check, "_at_end", at_end)


def believes_a_chain_once_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mark that was raised since the walk seems to be too high."""
    monkeypatch.setattr(verify._Pass, "_grown", lambda *_: {})  # noqa: SLF001  # as above


@pytest.mark.slow
@pytest.mark.parametrize(
    ("broken", "kind"),
    [
        (takes_what_is_closing_for_left_open, "epoch left open"),
        (believes_a_chain_once_walked, "mark high"),
    ],
)
def test_without_a_second_look_it_would_be_taken_for_broken(
    monkeypatch: pytest.MonkeyPatch, broken: Callable[[pytest.MonkeyPatch], None], kind: str
) -> None:
    broken(monkeypatch)
    assert kind in kinds(0) | kinds(1)
