"""Both forms of a store have the same methods with the same arguments; what has no awaited form is named here."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

import pytest

import epochal
from epochal import Decider, Deciders, Decisions, Event, projection
from epochal.aio.bridge import each, run, wait
from epochal.aio.stores import (
    AsyncDeciders,
    AsyncDecisions,
    AsyncFeed,
    AsyncJoinedAppends,
    AsyncPlace,
    AsyncReadModel,
    AsyncReadModels,
    AsyncStreams,
    AsyncTaggedEvents,
    handle_all,
)
from epochal.contrib import equinox, event_store_adapter, sekiban
from epochal.contrib.equinox import open_tips
from epochal.contrib.event_store_adapter.aio import AsyncAggregateDeciders, AsyncAggregates
from epochal.contrib.event_store_adapter.deciders import AggregateDeciders
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.contrib.sekiban import open_dcb_events, open_projection_states
from epochal.contrib.sekiban.aio import AsyncProjectionStates
from epochal.contrib.sekiban.projections import ProjectionStates
from epochal.contrib.sekiban.store import DcbEvents
from epochal.contrib.subjects import sealing
from epochal.contrib.subjects.aio import AsyncSubjects
from epochal.contrib.subjects.sealing import Subjects
from epochal.deciders import on_streams
from epochal.deciders.codecs import EventCodec
from epochal.dynamo.stores import Place
from epochal.errors import InvalidInput
from epochal.feed.reader import FeedReader
from epochal.pages.items import ARCHIVE as STREAMS_ARCHIVE
from epochal.plan.ops import Op, Reply
from epochal.read_models.documents import ReadModel, ReadModels
from epochal.store.joined import JoinedAppends
from epochal.store.listings import listings_of
from epochal.store.streams import Streams
from epochal.store.tagged_pages import TaggedEvents
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_streams, memory_tagged_events
from tests.support.async_deciders import async_decisions

OF_LAYOUTS: Final = {
    "append_on",
    "batch",
    "batches",
    "decided_all",
    "decision_key",
    "head",
    "newest",
    "reader",
}
PAGES: Final = {
    "beginning",
    "verify_seals",
    "with_body_limit",
    "seal_position",
    "normalize_event",
    "condition",
    "counts",
    "heads_watched",
    "queues_of",
    "page",
    "page_back",
    "whole",
}
WITHOUT: Final = {"metered", "within", "on"}
"""They ask for nothing: `AsyncStreams(streams.store.within(5))`."""

FORMS: Final[list[tuple[type, type, set[str]]]] = [
    (Streams, AsyncStreams, OF_LAYOUTS | WITHOUT),
    (TaggedEvents, AsyncTaggedEvents, PAGES | WITHOUT | {"batch", "between", "count"}),
    (DcbEvents, AsyncTaggedEvents, PAGES | WITHOUT),
    (AggregateStore, AsyncAggregates, {"decided", "since", "recorded"} | WITHOUT),
    (
        FeedReader,
        AsyncFeed,
        {"page_within", "categories", "hydrate", "hydrate_unopened", "removal_of"} | WITHOUT,
    ),
    (ReadModels, AsyncReadModels, set()),
    (ReadModel, AsyncReadModel, set()),
    (ProjectionStates, AsyncProjectionStates, {"projectors_in"}),
    (Subjects, AsyncSubjects, set()),
    (JoinedAppends, AsyncJoinedAppends, set()),
    (Deciders, AsyncDeciders, {"check_key", "earlier", "planned"}),
    (AggregateDeciders, AsyncAggregateDeciders, set()),
    (Decisions, AsyncDecisions, set()),
]
"""The ordinary form, the awaited one, and the methods that other rooms of the library call, which it does not have."""


def methods(form: type) -> dict[str, Any]:
    return {name: found for name, found in inspect.getmembers(form, callable) if not name.startswith("_")}


def arguments(function: Callable[..., Any], *, besides: str = "self") -> list[tuple[str, Any, Any, Any]]:
    given = inspect.signature(function).parameters.values()
    return [(one.name, one.kind, one.default, one.annotation) for one in given if one.name != besides]


@pytest.mark.parametrize(("ordinary", "awaited", "without"), FORMS, ids=[one.__name__ for one, _, _ in FORMS])
def test_what_the_ordinary_form_has_the_awaited_one_has_with_the_same_arguments(
    ordinary: type, awaited: type, without: set[str]
) -> None:
    ours, theirs = methods(ordinary), methods(awaited)
    fields = {name for name in ours if name in getattr(ordinary, "__dataclass_fields__", {})}
    assert ours.keys() - theirs.keys() - fields <= without
    assert theirs.keys() <= ours.keys()
    for name, function in theirs.items():
        if name in fields:
            continue
        expected = arguments(ours[name])
        assert [one[:3] for one in arguments(function)] == [one[:3] for one in expected], name
        asked = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
        assert asked or name in {"on", "open"}, f"{name} would block"


def test_whatever_a_program_can_open_it_can_open_in_the_place_of_an_event_loop() -> None:
    assert issubclass(AsyncPlace, Place)
    for of in (epochal, sealing, equinox, event_store_adapter, sekiban):
        for name in (one for one in (*dir(of), *getattr(of, "__all__", ())) if one.startswith("open_")):
            opening = inspect.signature(getattr(of, name)).parameters["place"]
            assert (opening.annotation, type(opening.default)) == ("Place", Place), name


def test_all_of_them_are_opened_before_the_place_is_entered_and_say_so_where_they_are_used() -> None:
    place = AsyncPlace(region="eu-central-1")
    streams = AsyncStreams(epochal.open_streams("s", bucket="b", place=place))
    tips = AsyncStreams(open_tips("t", equinox=True, place=place))
    tagged = AsyncTaggedEvents(epochal.open_tagged_events("s", types=["Paid"], place=place))
    dcb = AsyncTaggedEvents(open_dcb_events("e", "t", service="x", place=place))
    states = AsyncProjectionStates(
        open_projection_states("p", bucket="b", cache_bytes=1_000_000, place=place)
    )
    feed = AsyncFeed(epochal.open_feed("i", tips.store, dcb.store, place=place))
    subjects = AsyncSubjects(sealing.open_subjects("keys", kms_key="alias/x", log="log", place=place))
    with pytest.raises(InvalidInput, match="store: must be a store of events, not TaggedEvents"):
        epochal.open_feed("i", tagged.store, place=place)
    with pytest.raises(InvalidInput, match="stores: must be of different layouts"):
        epochal.open_feed("i", streams.store, streams.store, place=place)
    with pytest.raises(InvalidInput, match="tombstone"):
        asyncio.run(tips.delete("Door-1"))
    for asked in (
        streams.load("Door-1"),
        tagged.event("00000000-0000-0000-0000-000000000001"),
        feed.partitions(),
        states.find("a", "1"),
        subjects.seal("ada", b""),
    ):
        with pytest.raises(InvalidInput, match="must be entered first"):
            asyncio.run(asked)


def test_the_two_ways_to_decide_on_several_streams_take_the_same() -> None:
    ours, theirs = arguments(on_streams.handle_all), arguments(handle_all)
    assert [one[:3] for one in theirs] == [one[:3] for one in ours]


def turns(streams: Streams) -> AsyncStreams:
    def execute(op: Op) -> Reply:
        wait(asyncio.sleep(0))
        return streams.driver.execute(op)

    return AsyncStreams(replace(streams, driver=replace(streams.driver, execute=execute)))


CODEC = EventCodec[Event](encode=lambda event: event, decode=lambda stored: Event(type=stored.type))
DECIDER = Decider[Event, int, Event](
    initial=int, evolve=lambda count, _: count + 1, decide=lambda event, _: [event]
)
OPENED = Event(type="Opened")


def test_tasks_that_decide_on_two_streams_at_once_each_decide_on_what_is_there() -> None:
    async def live() -> None:
        streams = turns(memory_streams())
        doors = AsyncDeciders(streams=streams, decider=DECIDER, codec=CODEC)

        async def both() -> None:
            parties = (doors.on("Door-1"), doors.on("Door-2"))
            await handle_all(parties, lambda *_: ([OPENED], [OPENED]), attempts=50)

        await asyncio.gather(*(both() for _ in range(4)))
        assert [await doors.query(f"Door-{n}", lambda count: count) for n in (1, 2)] == [4, 4]

    asyncio.run(live())


def test_metadata_of_a_decision_are_handed_on_by_every_awaited_way_to_decide() -> None:
    async def live() -> None:
        streams = turns(memory_streams())
        doors = AsyncDeciders(streams=streams, decider=DECIDER, codec=CODEC)
        given = {"user": "ada", "correlation_id": "c-1"}
        await doors.handle("Door-1", OPENED, metadata=given)
        await doors.handle("Door-1", decide=lambda _: [OPENED], metadata=given)
        await doors.handle("Door-1", decide=lambda _: (None, [OPENED]), metadata=given, with_result=True)
        await handle_all([doors.on("Door-1")], lambda _: [[OPENED]], metadata=given)
        events = [event async for event in streams.read("Door-1")]
        assert [(event.meta, event.correlation_id) for event in events] == [(b'{"user":"ada"}', "c-1")] * 4

        taken = projection(tags=["course:1"], on={"Taken": lambda count, _: count + 1}, initial=0)
        decisions = async_decisions(Decisions(store=memory_tagged_events()))
        event = Event(type="Taken", tags=["course:1"])
        decided = await decisions.handle({"taken": taken}, lambda _: [event], metadata=given)
        assert (decided.events[0].meta, decided.events[0].correlation_id) == (b'{"user":"ada"}', "c-1")

    asyncio.run(live())


def test_what_has_no_awaited_form_is_awaited_by_the_bridge() -> None:
    async def live() -> None:
        tagged = AsyncTaggedEvents(memory_tagged_events())
        own = str(UUID(int=7))
        await tagged.append([Event(type="Taken", tags=["course:1", "student:7"], id=own)])
        assert [one.tag for one in await run(listings_of(tagged.store).tags, "course")] == ["course:1"]
        found = [event async for event in each(listings_of(tagged.store).tagged, "student:7")]
        assert [event.type for event in found] == ["Taken"]
        assert await tagged.events([own]) == {own: found[0]}

    asyncio.run(live())


def test_what_is_archived_is_pruned_and_read_from_the_archive() -> None:
    store = memory_streams(MemoryTables({"streams": STREAMS_ARCHIVE, "archive": STREAMS_ARCHIVE}))

    async def live() -> None:
        streams = turns(replace(store, archive=replace(store, table="archive")))
        await streams.append("Door-1", [OPENED] * 3)
        assert await streams.copy_to_archive("Door-1", 3) == 3
        pruned = await streams.archive_and_prune("Door-1", 3)
        assert pruned is not None
        assert pruned.low_water == 3
        assert [event.index async for event in streams.read("Door-1")] == [0, 1, 2]

    asyncio.run(live())
