"""What a decision is given as `metadata` is that of its events, as often as it is made, in every layout."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from epochal import Decider, Deciders, Decisions, Event, metadata, projection
from epochal.codec import json
from epochal.contrib.equinox import memory_tips
from epochal.contrib.sekiban import memory_dcb_events
from epochal.deciders.codecs import EventCodec
from epochal.deciders.on_streams import handle_all
from epochal.errors import InvalidInput
from epochal.model.events import Recorded
from epochal.model.tags import Query, QueryItem
from epochal.store.streams import Streams
from epochal.store.tagged import TaggedStore
from epochal.testing.stores import memory_streams, memory_tagged_events

CODEC = EventCodec[Event](
    encode=lambda event: event, decode=lambda stored: Event(type=stored.type, data=stored.data)
)
DECIDER = Decider[Event, int, Event](
    initial=int, evolve=lambda count, _: count + 1, decide=lambda event, _: [event]
)
TAKEN = projection(tags=["course:1"], on={"Taken": lambda count, _: count + 1}, initial=0)
COURSE = Query(items=(QueryItem(tags=frozenset({"course:1"})),))


@pytest.fixture(params=[memory_streams, memory_tips])
def streams(request: pytest.FixtureRequest) -> Streams:
    found: Streams = request.param()
    return found


@pytest.fixture(params=[memory_tagged_events, memory_dcb_events])
def tagged(request: pytest.FixtureRequest) -> TaggedStore:
    found: TaggedStore = request.param()
    return found


def doors(streams: Streams) -> Deciders[Event, int, Event]:
    return Deciders(streams=streams, decider=DECIDER, codec=CODEC)


def told(streams: Streams, stream: str = "Door-1") -> list[tuple[Any, str | None, str | None]]:
    return [
        (json.loads(event.meta) if event.meta else None, event.correlation_id, event.causation_id)  # type: ignore[arg-type]
        for event in streams.read(stream)
    ]


def taken(tagged: TaggedStore) -> list[Recorded]:
    return list(tagged.read(COURSE).events)


GIVEN: Mapping[str, Any] = {"user": "ada", "correlation_id": "c-1", "causation_id": "e-1"}


def test_every_way_to_decide_on_a_stream_takes_it(streams: Streams) -> None:
    deciders = doors(streams)
    deciders.handle("Door-1", Event(type="Opened"), metadata=GIVEN)
    deciders.handle("Door-1", decide=lambda _: [Event(type="Shut"), Event(type="Locked")], metadata=GIVEN)
    lost = deciders.handle(
        "Door-1", decide=lambda count: (count, [Event(type="Lost")]), metadata=GIVEN, with_result=True
    )
    assert lost[0] == 3
    assert told(streams) == [({"user": "ada"}, "c-1", "e-1")] * 4
    deciders.handle("Door-1", Event(type="Opened"))
    assert told(streams)[-1] == (None, None, None)


def test_a_decision_on_several_streams_has_it_in_each() -> None:
    streams = memory_streams()
    deciders = doors(streams)
    parties = (deciders.on("Door-1"), deciders.on("Door-2"))
    handle_all(parties, lambda *_: ([Event(type="Opened")], [Event(type="Shut")]), metadata=GIVEN)
    assert told(streams, "Door-1") == told(streams, "Door-2") == [({"user": "ada"}, "c-1", "e-1")]


def test_it_wins_over_the_block_around_and_an_event_s_own_wins_over_it(streams: Streams) -> None:
    own = Event(type="Opened", meta=b'{"user":"eve"}', causation_id="own")
    with metadata(user="bob", tenant="north", correlation_id="block", causation_id="block"):
        doors(streams).handle("Door-1", own, metadata={"tenant": "south", "correlation_id": "given"})
        streams.append("Door-1", [Event(type="Shut")])
    assert told(streams) == [
        ({"user": "eve", "tenant": "south"}, "given", "own"),
        ({"user": "bob", "tenant": "north"}, "block", "block"),
    ]


def test_tagged_decisions_take_it_between_block_and_event_likewise(tagged: TaggedStore) -> None:
    own = Event(type="Taken", tags=["course:1"], meta=b'{"seat":7}', causation_id="own")

    def take(_: Mapping[str, Any]) -> Sequence[Event]:
        return [own]

    with metadata(seat=1, user="bob", tenant="north"):
        Decisions(store=tagged).handle({"taken": TAKEN}, take, metadata={**GIVEN, "seat": 2})
    (event,) = taken(tagged)
    assert json.loads(event.meta) == {"seat": 7, "user": "ada", "tenant": "north"}  # type: ignore[arg-type]
    assert (event.correlation_id, event.causation_id) == ("c-1", "own")


def test_a_decision_that_is_made_again_carries_the_same(streams: Streams) -> None:
    states: list[int] = []

    def decide(count: int) -> Sequence[Event]:
        states.append(count)
        if len(states) < 3:
            streams.append("Door-1", [Event(type="Faster")])
        return [Event(type="Opened")]

    doors(streams).handle("Door-1", decide=decide, metadata=GIVEN)
    assert states == [0, 1, 2]
    assert told(streams)[-1] == ({"user": "ada"}, "c-1", "e-1")


def test_a_decision_on_several_streams_that_is_made_again_carries_the_same() -> None:
    streams, calls = memory_streams(), []

    def decide(*counts: int) -> Sequence[Sequence[Event]]:
        calls.append(counts)
        if len(calls) == 1:
            streams.append("Door-2", [Event(type="Faster")])
        return [[Event(type="Opened")], [Event(type="Opened")]]

    deciders = doors(streams)
    handle_all([deciders.on("Door-1"), deciders.on("Door-2")], decide, metadata=GIVEN)
    assert calls == [(0, 0), (0, 1)]
    assert told(streams, "Door-1")[-1] == told(streams, "Door-2")[-1] == ({"user": "ada"}, "c-1", "e-1")


def test_a_tagged_decision_that_is_made_again_carries_the_same(tagged: TaggedStore) -> None:
    counts: list[int] = []

    def take(states: Mapping[str, Any]) -> Sequence[Event]:
        counts.append(states["taken"])
        event = Event(type="Taken", tags=["course:1"])
        if len(counts) == 1:
            tagged.append([event])
        return [event]

    Decisions(store=tagged).handle({"taken": TAKEN}, take, metadata=GIVEN)
    assert counts == [0, 1]
    last = taken(tagged)[-1]
    assert (last.meta, last.correlation_id, last.causation_id) == (b'{"user":"ada"}', "c-1", "e-1")


WRONG: list[tuple[Any, str]] = [
    ({"user": object()}, "user: must be JSON"),
    ({"amount": float("nan")}, "amount: must be JSON"),
    ({"correlation_id": ""}, "correlation_id: must be 1 to 1,024 bytes"),
    ({"causation_id": "x" * 1025}, "causation_id: must be 1 to 1,024 bytes"),
    ({"correlation_id": 7}, "correlation_id: must be text, not int"),
    ({7: "user"}, "metadata: must be a mapping whose keys are text, not int"),
    ([("user", "ada")], "metadata: must be a mapping, not list"),
]


def deciding(given: Any) -> list[Callable[[Callable[..., Any]], object]]:
    streams = memory_streams()
    deciders = doors(streams)
    return [
        lambda decide: deciders.handle("Door-1", decide=decide, metadata=given),
        lambda decide: handle_all([deciders.on("Door-1")], decide, metadata=given),
        lambda decide: Decisions(store=memory_tagged_events()).handle({"t": TAKEN}, decide, metadata=given),
    ]


@pytest.mark.parametrize(("given", "refusal"), WRONG, ids=[refusal for _, refusal in WRONG])
def test_what_a_block_would_refuse_is_refused_before_anything_is_decided(given: Any, refusal: str) -> None:
    asked: list[object] = []
    for decision in deciding(given):
        with pytest.raises(InvalidInput, match=refusal):
            decision(lambda *states: asked.append(states) or [])
    assert asked == []


def test_an_event_whose_own_metadata_take_no_members_is_refused(streams: Streams) -> None:
    odd = Event(type="Opened", meta=b"[1]")
    with pytest.raises(InvalidInput, match=r"events\.meta.* must be a JSON object, .* \(Opened\)"):
        doors(streams).handle("Door-1", odd, metadata={"user": "ada"})
    assert streams.load("Door-1") is None
    doors(streams).handle("Door-1", odd, metadata={"correlation_id": "c-1"})


def test_a_decision_that_fails_leaves_nothing_of_it_behind(streams: Streams) -> None:
    def fails(_: int) -> Sequence[Event]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        doors(streams).handle("Door-1", decide=fails, metadata=GIVEN)
    streams.append("Door-1", [Event(type="Opened")])
    assert told(streams) == [(None, None, None)]
