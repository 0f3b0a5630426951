"""A read of a stream by type and time has what is wanted of all its events, in their order."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from epochal.contrib.equinox import memory_tips
from epochal.errors import EventsPruned, InvalidInput
from epochal.model.events import Event, Recorded
from epochal.store.reading import Direction
from epochal.store.streams import Streams
from epochal.testing.stores import memory_streams, memory_tables
from tests.support.api import Api
from tests.support.examples import seeds
from tests.support.terminal import Terminal

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


def stored(seed: int, *, tips: bool) -> tuple[Streams, list[Recorded]]:
    """A stream of events whose own times are in no order, and all of them."""
    rng = random.Random(seed)
    streams = memory_tips(memory_tables()) if tips else memory_streams()
    for _ in range(rng.randint(1, 30)):
        times = [(NOON + timedelta(hours=rng.randint(-9, 9))).isoformat() for _ in range(rng.randint(1, 4))]
        streams.append("A-1", [Event(type=rng.choice("XYZ"), timestamp=time) for time in times])
    return streams, [*streams.read("A-1")]


def asked(rng: random.Random) -> dict[str, Any]:
    """Some of what can be asked for."""
    found: dict[str, Any] = {
        "types": rng.sample("XYZ", rng.randint(1, 2)),
        "since": NOON + timedelta(hours=rng.randint(-9, 3)),
        "until": (NOON + timedelta(hours=rng.randint(0, 9))).isoformat(),
    }
    return {name: value for name, value in found.items() if rng.random() < 0.6}


def is_wanted(event: Recorded, types: Any = None, since: Any = None, until: Any = None) -> bool:
    time = datetime.fromisoformat(f"{event.timestamp[:19]}+00:00")
    return (
        (types is None or event.type in types)
        and (since is None or since <= time)
        and (until is None or time < datetime.fromisoformat(until))
    )


@pytest.mark.slow
@seeds(40, 12)
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_what_is_wanted_comes_in_order_and_the_limit_counts_it_alone(seed: int, direction: Direction) -> None:
    rng = random.Random(seed)
    streams, everything = stored(seed, tips=bool(seed % 2))
    start, limit, options = rng.choice([None, 3]), rng.choice([None, 1, 4]), asked(rng)
    if start is not None and start >= len(everything):
        start = None
    onward = (
        everything[start:]
        if direction == "forward"
        else everything[: None if start is None else start + 1][::-1]
    )
    wanted = [each for each in onward if is_wanted(each, **options)]
    found = streams.read("A-1", start=start, limit=limit, direction=direction, **options)
    assert [*found] == wanted[:limit]

    paged, following = list[Recorded](), start
    while True:
        page = streams.page("A-1", start=following, limit=4, direction=direction, **options)
        paged += page.events
        if page.next is None:
            break
        following = page.next
    assert paged == wanted


def test_an_hour_in_a_stream_is_from_since_up_to_and_without_until() -> None:
    streams = memory_streams()
    streams.append(
        "A-1", [Event(type=f"T{h}", timestamp=f"2026-11-23T{h:02d}:00:00Z") for h in range(10, 15)]
    )
    found = streams.read("A-1", since="2026-11-23T11:00:00Z", until="2026-11-23T14:00+01:00")
    assert [each.type for each in found] == ["T11", "T12"]


def test_what_is_gone_is_an_error_whatever_is_wanted() -> None:
    streams = memory_streams()
    streams.append("A-1", [Event(type="X")] * 4)
    streams.prune("A-1", 2)
    with pytest.raises(EventsPruned):
        [*streams.read("A-1", start=0, types=["Y"])]


@pytest.mark.parametrize(
    ("options", "field"),
    [({"types": "X"}, "types"), ({"since": "soon"}, "since"), ({"until": datetime(2026, 1, 1)}, "until")],  # noqa: DTZ001
)
def test_what_cannot_be_wanted_is_refused_by_name(options: dict[str, Any], field: str) -> None:
    for call in (memory_streams().read, memory_streams().page):
        with pytest.raises(InvalidInput) as refusal:
            call("A-1", **options)
        assert refusal.value.field == field


def test_over_http_a_page_has_the_types_and_times_that_are_asked_for() -> None:
    api = Api()
    events = [{"type": f"T{h % 2}", "timestamp": f"2026-11-23T{h:02d}:00:00Z"} for h in range(10, 15)]
    assert api.call("POST", "/streams/A-1/events", {"events": events}).status == 201

    def found(query: str) -> tuple[list[int], int | None]:
        page = api.call("GET", "/streams/A-1/events", query=query).json
        return [each["index"] for each in page["events"]], page.get("next")

    assert found("type=T0") == ([0, 2, 4], None)
    assert found("type=T0&type=T1&since=2026-11-23T13:00:00Z") == ([3, 4], None)
    assert found("until=2026-11-23T12:00:00Z&direction=backward") == ([1, 0], None)
    assert found("type=T1&limit=1") == ([], 1)
    answer = api.call("GET", "/streams/A-1/events", query="since=soon")
    assert (answer.status, answer.problem, answer.json["field"]) == (400, "invalid-input", "since")


def test_the_command_line_prints_the_types_and_times_that_are_asked_for() -> None:
    terminal = Terminal(named="tips", layouts=("tips",))
    terminal.streams.append(
        "A-1", [Event(type=f"T{h % 2}", timestamp=f"2026-11-23T{h:02d}:00:00Z") for h in range(10, 15)]
    )

    def found(*options: str) -> list[int]:
        return [each["index"] for each in terminal.documents("read", "A-1", *options)]

    assert found("--type", "T0") == [0, 2, 4]
    assert found("--type", "T0", "--limit", "2", "--backward") == [4, 2]
    assert found("--since", "2026-11-23T11:00Z", "--until", "2026-11-23T13:00Z") == [1, 2]
