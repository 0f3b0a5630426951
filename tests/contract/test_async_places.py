"""What a place of an event loop opens, on AWS's own DynamoDB, through aiohttp."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from epochal import (
    Delivery,
    Event,
    FeedEvent,
    Query,
    QueryItem,
    open_feed,
    open_read_models,
    open_streams,
    reaction,
)
from epochal.aio.bridge import in_threads
from epochal.aio.stores import (
    AsyncFeed,
    AsyncJoinedAppends,
    AsyncPlace,
    AsyncReadModels,
    AsyncStreams,
    AsyncTaggedEvents,
)
from epochal.contrib.event_store_adapter import AsyncAggregates, open_aggregates
from epochal.contrib.event_store_adapter.ids import aggregate_id
from epochal.contrib.event_store_adapter.model import AggregateEvent
from epochal.contrib.event_store_adapter.outcomes import AggregateAppended
from epochal.contrib.sekiban import open_dcb_events, open_projection_states
from epochal.contrib.sekiban.aio import AsyncProjectionStates
from epochal.contrib.sekiban.items import EVENTS, PROJECTION_STATES, TAGS
from epochal.contrib.subjects import sealing
from epochal.contrib.subjects.aio import AsyncSubjects
from epochal.contrib.subjects.items import SUBJECT_KEYS
from epochal.contrib.subjects.sealing import Shredded
from epochal.contrib.subjects.testing import MemoryWrapping
from epochal.layout.tables import READ_MODELS
from epochal.model.outcomes import Appended
from epochal.pages.items import STREAMS
from epochal.reactions.group_member import Member
from epochal.reactions.reactor import Reactor
from epochal.read_models.documents import Documents
from epochal.store.joined import JoinedAppends
from tests.contract.test_feed_layouts import Deployment, deployed  # noqa: F401  a fixture
from tests.support.tables import Tables

pytestmark = pytest.mark.ddbl


def count(documents: Documents, event: FeedEvent) -> None:
    documents.put(event.type, documents.get(event.type, 0) + 1)


@pytest.mark.proof
def test_what_tasks_append_is_fed_to_a_handler_that_is_awaited_and_folded_into_a_read_model(
    deployed: Deployment,  # noqa: F811  the fixture
) -> None:
    settings, endpoint = deployed.settings, deployed.tables.endpoint

    def place() -> AsyncPlace:
        return AsyncPlace(endpoint=endpoint.url, region=endpoint.region)

    account = aggregate_id("user-account", "1")
    opened = AggregateEvent(type="Opened", data=b"{}")

    async def append() -> None:
        async with place() as here:
            streams = AsyncStreams(open_streams(settings.table("streams"), place=here))
            tables = settings.table("journal"), settings.table("snapshot")
            aggregates = AsyncAggregates(open_aggregates(*tables, types=["user-account"], place=here))
            await asyncio.gather(*(streams.append(f"Cart-{n % 4}", [Event(type="Paid")]) for n in range(12)))
            begun = await aggregates.append(account, [opened], snapshot=b"{}")
            answers = await asyncio.gather(
                *(aggregates.try_append(account, [opened], expected=begun.lock) for _ in range(4))
            )
            assert sum(isinstance(answer, AggregateAppended) for answer in answers) == 1

    asyncio.run(append())
    assert not any(report.failed or report.set_aside for report in deployed.index())

    handling = place()
    models = AsyncReadModels(open_read_models(deployed.tables.create(READ_MODELS), place=handling))
    model = models.open("counts", 1)

    @reaction(name="counts", within=handling)
    async def counts(delivery: Delivery) -> None:
        await model.apply(delivery, count)

    reactor = Reactor(member=Member(reaction=counts, reader=deployed.reader))
    with reactor.calls:
        partitions = [each.partition for each in deployed.reader.partitions()]
        handled = [reactor.run(partition, seconds=30) for partition in partitions]
    assert (sum(ran.events for ran in handled), [ran.parked for ran in handled if ran.parked]) == (14, [])

    async def look() -> None:
        async with handling as here:
            assert (await model.get("Paid"), await model.get("Opened")) == (12, 2)
            assert await model.wait_for("Cart-3", 3)
            stored = open_streams(settings.table("streams"), place=here)
            feed = AsyncFeed(open_feed(settings.index_table, stored, place=here))
            found = [
                item.event
                for each in await feed.partitions()
                if each.partition in range(30_000, 40_000)
                async for page in feed.read(each.partition, data=True, limit=5)
                for item in page.items
            ]
            assert sorted((event.stream, event.index) for event in found if event) == [
                (f"Cart-{n}", index) for n in range(4) for index in range(3)
            ]

    asyncio.run(look())


def test_tasks_join_appends_enrol_in_sekiban_s_tables_store_states_and_forget(
    ddbl_tables: Tables,
) -> None:
    endpoint = ddbl_tables.endpoint
    streams, events, tags, states, keys = map(
        ddbl_tables.create, (STREAMS, EVENTS, TAGS, PROJECTION_STATES, SUBJECT_KEYS)
    )
    course = Query(items=(QueryItem(tags=frozenset({"course:1"})),))

    async def live() -> None:
        async with AsyncPlace(endpoint=endpoint.url, region=endpoint.region) as place:
            store = AsyncStreams(open_streams(streams, place=place))
            together = AsyncJoinedAppends(JoinedAppends(store.store))
            told = await asyncio.gather(
                *(together.append("Sensor-1", [Event(type=f"N{n}")]) for n in range(40))
            )
            found = {event.index: event.type async for event in store.read("Sensor-1")}
            assert found == {each.first: f"N{n}" for n, each in enumerate(told)}
            assert sum(each.capacity.requests for each in told) < 10

            tagged = AsyncTaggedEvents(open_dcb_events(events, tags, place=place))
            seen = await tagged.read(course)
            taken = Event(type="Taken", data=b"{}", tags=["course:1"])
            answers = await asyncio.gather(
                *(tagged.try_append([taken], fail_if=course, after=seen.position) for _ in range(4))
            )
            assert [type(each) for each in answers].count(Appended) == 1

            totals = AsyncProjectionStates(open_projection_states(states, place=place))
            await totals.save("Totals", "v1", [b"a", b"b"], events_processed=1, last_sortable_id="0" * 30)
            (state,) = await totals.list("Totals")
            assert [chunk async for chunk in totals.open(state)] == [b"ab"]

            opened = sealing.open_subjects(keys, kms_key="alias/none", place=place)
            subjects = AsyncSubjects(replace(opened, wrapping=in_threads(MemoryWrapping())))
            sealed = await asyncio.gather(*(subjects.seal("ada", b"{}") for _ in range(4)))
            assert [await subjects.unseal(each) for each in sealed] == [b"{}"] * 4
            await subjects.forget("ada")
            assert await subjects.unseal(sealed[0]) == Shredded("ada")

    asyncio.run(live())
