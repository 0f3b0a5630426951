"""Sagas over several streams, shards and partitions: within the window no effect comes before its cause."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any

import pytest

from epochal.feed import ordered
from epochal.feed.ordered import OrderedReader, Released
from epochal.feed.results import FeedItem
from epochal.model.moments import Ticks
from tests.simulation.saga_world import Sagas, table, too_early
from tests.simulation.seeds import ranges

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-it-works.md"

SEEDS_OF_MUTANTS = 40


def played(seed: int) -> Sagas:
    """Every other time writers' clocks are worth nothing, and chains of causes are indexed in any order."""
    skew, by_itself = ((1.5, 0.4), (60.0, 0.9))[seed // 3 % 2]
    world = Sagas(
        seed=seed,
        shards=(1, 2, 4, 8)[seed % 4],
        partitions=(1, 2, 4)[seed // 4 % 3],
        skew=skew,
        by_itself=by_itself,
    )
    world.play()
    return world


def places(items: list[FeedItem]) -> list[tuple[str, int]]:
    return [(item.stream, item.index) for item in items]


def wrong(world: Sagas) -> list[str]:
    """What a reader in order may not show."""
    found = too_early(world.ordered)
    read, there = places(world.ordered), places(world.came)
    found += [f"{place} is lost" for place in there if place not in read]
    found += [f"{place} comes twice" for place in {*read} if read.count(place) > 1]
    for stream in {stream for stream, _ in read}:
        mine = [index for name, index in read if name == stream]
        found += [] if mine == sorted(mine) else [f"{stream} runs backwards: {mine}"]
    return found


@ranges(size=40, count=25)
def test_no_effect_comes_before_its_cause_and_nothing_is_lost_or_comes_twice(seeds: range) -> None:
    for seed in seeds:
        assert not wrong(played(seed)), f"seed {seed}"


def test_without_the_window_effects_come_before_their_causes() -> None:
    assert any(too_early(played(seed).came) for seed in range(4))


@pytest.mark.proof
def test_the_page_says_how_often_an_effect_comes_before_its_cause() -> None:
    assert "\n".join(table()) in PAGE.read_text("utf-8")


def _nothing_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    real = OrderedReader.__init__

    def begin(reader: OrderedReader, **named: Any) -> None:
        real(reader, **{**named, "window": 0})

    monkeypatch.setattr(OrderedReader, "__init__", begin)


def _a_cause_has_no_precedence(monkeypatch: pytest.MonkeyPatch) -> None:
    def before(_: OrderedReader, held: ordered._Held) -> ordered._Held | None:
        return held.queue[0] if held.queue[0] is not held else None

    monkeypatch.setattr(OrderedReader, "_before", before)


def _an_effect_does_not_wait_with_its_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    placed, released = OrderedReader._time, OrderedReader._with_causes  # noqa: SLF001  the rules left out

    def time(reader: OrderedReader, held: ordered._Held, entry: Ticks) -> int:
        known = dict(reader._named)  # noqa: SLF001
        if held.cause is not None and reader._named.pop(held.cause, None):  # noqa: SLF001
            reader._recent[held.cause] = None  # noqa: SLF001
        found = placed(reader, held, entry)
        reader._named.update(known)  # noqa: SLF001
        return found

    def with_causes(reader: OrderedReader, wanted: ordered._Held, most: int, latest: float) -> list[FeedItem]:
        return released(reader, wanted, most, max(latest, inf))

    monkeypatch.setattr(OrderedReader, "_time", time)
    monkeypatch.setattr(OrderedReader, "_with_causes", with_causes)


def _an_effect_does_not_wait_for_a_cause_that_has_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    real = OrderedReader._time  # noqa: SLF001  the rule that is left out

    def time(reader: OrderedReader, held: ordered._Held, entry: Ticks) -> int:
        if held.cause is not None:
            reader._recent[held.cause] = None  # noqa: SLF001
        return real(reader, held, entry)

    monkeypatch.setattr(OrderedReader, "_time", time)


def _a_checkpoint_forgets_what_was_released_beyond_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ordered._Partition.update_progress  # noqa: SLF001  the rule that is left out
    monkeypatch.setattr(
        ordered._Partition,  # noqa: SLF001
        "update_progress",
        lambda partition: Released(checkpoint=real(partition).checkpoint),
    )


def _a_checkpoint_passes_what_is_held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ordered._Partition.update_progress  # noqa: SLF001  the rule that is left out

    def place(partition: ordered._Partition) -> Released:
        found = real(partition)
        last = partition.entries[-1].after if partition.entries else found.checkpoint
        return Released(checkpoint=last)

    monkeypatch.setattr(ordered._Partition, "update_progress", place)  # noqa: SLF001


@pytest.mark.parametrize(
    "leave_out",
    [
        _nothing_is_waited_for,
        _a_cause_has_no_precedence,
        _an_effect_does_not_wait_with_its_cause,
        _an_effect_does_not_wait_for_a_cause_that_has_not_come,
        _a_checkpoint_forgets_what_was_released_beyond_it,
        _a_checkpoint_passes_what_is_held_back,
    ],
)
def test_a_seed_finds_out_when_a_rule_is_left_out(
    leave_out: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_out(monkeypatch)
    assert any(wrong(played(seed)) for seed in range(SEEDS_OF_MUTANTS))
