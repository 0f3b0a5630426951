"""Conflicts over items that have more than 4 MB together, as users meet them: over HTTP, awaited, and in decisions.

Streams and tags in pages, aggregates of event-store-adapter and events in Sekiban's tables can have that many. A write
to one stream, an append joined with others, and what Equinox's layout writes are of two items at most, which have room.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import pytest

from epochal import NO_STREAM, ConflictError, Event, StreamAppend
from epochal.aio.stores import AsyncDeciders, AsyncPlace, AsyncStreams
from epochal.aio.stores import handle_all as async_handle_all
from epochal.contrib.event_store_adapter.deciders import AggregateDeciders
from epochal.contrib.event_store_adapter.ids import AggregateId, aggregate_id
from epochal.contrib.event_store_adapter.model import AggregateEvent
from epochal.contrib.event_store_adapter.state_codecs import StateCodec
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.contrib.event_store_adapter.store import opened as aggregates_of
from epochal.contrib.local.endpoint import Endpoint
from epochal.deciders.codecs import EventCodec
from epochal.deciders.on_queries import Decisions
from epochal.deciders.on_streams import Decider, Deciders, handle_all
from epochal.deciders.projections import projection
from epochal.deployment import Deployment
from epochal.dynamo.interpreter import carrier_interpreter
from epochal.errors import InvalidInput
from epochal.layout.registry import declared
from epochal.layout.tables import store_tables
from epochal.model.outcomes import Conflict
from epochal.model.tags import Query, QueryItem
from epochal.plan.ops import Execute, Op, Oversized, Reply
from epochal.store.tagged_pages import TaggedEvents
from tests.support.api import Answer, Api
from tests.support.async_deciders import async_aggregate_deciders, async_decisions
from tests.support.tables import Tables, light

pytestmark = pytest.mark.slow

COUNT = 24
"""Streams, tags or events that are in the way: they have 4.8 MB together."""

BODY = Random(4).randbytes(200_000)
LARGE = Event(type="Large", data=BODY)
SMALL = Event(type="Small", data=b"{}")
JSON = b'{"hex": "%s"}' % BODY[:100_000].hex().encode()
Names = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Where the tables of the tests are.

    Attributes:
        endpoint: of DynamoDB Local; None in memory.
        settings: names of the tables there.
        around: the interpreter that takes the place of an API's own in memory.
    """

    endpoint: Endpoint | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    around: Callable[[Execute], Execute] = lambda execute: execute


@pytest.fixture(scope="module", params=["memory", pytest.param("ddbl", marks=pytest.mark.ddbl)])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """Memory, then DynamoDB Local."""
    if request.param == "memory":
        yield World()
        return
    endpoint: Endpoint = request.getfixturevalue("ddbl")
    carrier = light(endpoint)
    with Tables(endpoint) as tables:
        names = {spec.kind: tables.create(spec) for spec in store_tables()}
        settings = {each.name: names[each.table] for each in declared().values() if each.table in names}
        yield World(endpoint=endpoint, settings=settings, around=lambda _: carrier_interpreter(carrier))
    carrier.close()


class Large:
    """An interpreter that counts refusals which have no room in one response."""

    def __init__(self, execute: Execute) -> None:
        self._execute = execute
        self.refusals = 0

    def execute(self, op: Op) -> Reply:
        reply = self._execute(op)
        self.refusals += isinstance(reply, Oversized)
        return reply


@pytest.fixture
def large() -> list[Large]:
    """The interpreters that count."""
    return []


@pytest.fixture
def api(world: World, large: list[Large]) -> Iterator[Api]:
    """The HTTP API over stores in memory or on DynamoDB Local. Its test meets a refusal of more than 4 MB."""

    def counting(execute: Execute) -> Execute:
        large.append(Large(world.around(execute)))
        return large[-1].execute

    yield Api(around=counting, chosen=world.settings, pages=True)
    assert sum(each.refusals for each in large), "no refusal was as large as this test means it to be"


@pytest.fixture
def names(request: pytest.FixtureRequest) -> Names:
    """Streams that no other test has, or what tags are made of."""
    digest = Random(request.node.name).randrange(10**9)
    return tuple(f"Large-{digest}-{number}" for number in range(COUNT))


def tags_of(names: Names) -> Names:
    return tuple(f"large:{each}" for each in names)


def query_of(names: Names) -> Query:
    return Query(items=tuple(QueryItem(tags=frozenset({tag})) for tag in tags_of(names)))


# Streams in pages.


def post(api: Api, appends: Sequence[dict[str, Any]]) -> Answer:
    return api.call("POST", "/streams", {"appends": list(appends)})


def stale(names: Names, expected: Sequence[object]) -> list[dict[str, Any]]:
    small = [{"type": "Small", "data": {}}]
    return [
        {"stream": name, "events": small, "expected": each}
        for name, each in zip(names, expected, strict=True)
    ]


def test_over_http_it_is_409_with_every_stream_in_the_way_and_tokens_to_go_on_from(
    api: Api, names: Names
) -> None:
    store = api.deployment.streams
    for name in names:
        store.append(name, [LARGE])

    refused = post(api, stale(names, ["no_stream"] * COUNT))
    found = {each["stream"]: each for each in refused.json["streams"]}
    made = post(api, stale(names, [found[name]["token"] for name in names]))

    assert (refused.status, refused.problem) == (409, "version-conflict")
    assert (
        refused.json["detail"] == f"{names[0]} is at version 1, with {COUNT - 1:,} more streams in conflict"
    )
    assert [each["version"] for each in refused.json["streams"]] == [1] * COUNT
    assert made.status == 201
    assert {each["version"] for each in made.json["streams"]} == {2}


CODEC = EventCodec[Event](encode=lambda event: event, decode=lambda stored: Event(type=stored.type))
COUNTING = Decider[None, int, Event](
    initial=int, evolve=lambda total, _: total + 1, decide=lambda _, total: [SMALL] if total < 9 else []
)


def test_a_decision_over_many_streams_is_made_again_on_what_was_in_its_way(api: Api, names: Names) -> None:
    store = api.deployment.streams
    deciders = Deciders(streams=store, decider=COUNTING, codec=CODEC)
    calls: list[tuple[int, ...]] = []

    def decide(*totals: int) -> tuple[list[Event], ...]:
        calls.append(totals)
        if len(calls) == 1:
            for name in names:
                store.append(name, [LARGE])
        return tuple([SMALL] for _ in totals)

    made = handle_all(tuple(map(deciders.on, names)), decide)

    assert calls == [(0,) * COUNT, (1,) * COUNT]
    assert {(each.version, each.state) for each in made.parties} == {(2, 2)}


# Tagged events, and streams of events with tags, in pages.


def test_over_http_a_condition_on_many_tags_fails_with_409_and_the_events_in_the_way(
    api: Api, names: Names
) -> None:
    tags, asked = tags_of(names), {"items": [{"tags": [tag]} for tag in tags_of(names)]}
    before = api.call("POST", "/events/query", {"query": asked})
    store = api.deployment.tagged
    for tag in tags:
        store.append([Event(type="Large", data=BODY, tags=(tag,))])
    body = {"events": [{"type": "Small", "data": {}, "tags": list(tags)}], "failIf": asked}

    refused = api.call("POST", "/events", {**body, "after": before.json["position"]})
    after = refused.json["position"]
    while True:
        answer = api.call("POST", "/events", {**body, "after": after})
        if answer.status == 201:
            break
        after = answer.json["position"]

    assert (refused.status, refused.problem) == (409, "condition-failed")
    assert {each["type"] for each in refused.json["events"]} == {"Large"}
    assert answer.json["versions"] == dict.fromkeys(tags, 2)


def test_a_decision_on_many_tags_is_made_again_on_what_was_in_its_way(api: Api, names: Names) -> None:
    store = api.deployment.tagged
    assert grown_meanwhile(store, names, Decisions(store=store).handle) == [0, COUNT]
    assert len(store.read(query_of(names)).events) == COUNT + 1


def grown_meanwhile(store: TaggedEvents, names: Names, decide: Callable[..., object]) -> list[int]:
    """The models that a decision on all tags is made on while each of them gets a large event."""
    models: list[int] = []
    counts = {
        tag: projection(tags=[tag], initial=0, on={"Large": lambda total, _: total + 1})
        for tag in tags_of(names)
    }

    def decided(model: Any) -> list[Event]:
        models.append(sum(model[tag] for tag in counts))
        if len(models) == 1:
            for tag in counts:
                store.append([Event(type="Large", data=BODY, tags=(tag,))])
        return [Event(type="Small", data=b"{}", tags=tuple(counts))]

    decide(counts, decided)
    return models


# Aggregates of event-store-adapter: an append meets the events of others in the journal.


def begun(store: AggregateStore, names: Names) -> AggregateId:
    alice = aggregate_id("user-account", names[0])
    store.append(alice, [AggregateEvent(type="Small", data=b"{}")], snapshot=b"{}")
    return alice


def overtake(store: AggregateStore, aggregate: AggregateId) -> None:
    """Another writer's large events, in two appends."""
    for _ in range(2):
        store.append(aggregate, [AggregateEvent(type="Large", data=JSON)] * (COUNT // 2))


def test_over_http_an_append_to_an_aggregate_that_meets_many_large_events_is_412_with_its_version(
    api: Api, names: Names
) -> None:
    store = api.aggregates
    alice = begun(store, names)
    overtake(store, alice)
    path = f"/aggregates/user-account/{names[0]}/events"
    body = {"events": [{"type": "Small", "data": {}}] * COUNT}

    refused = api.call("POST", path, body, headers={"If-Match": '"1.1"'})
    made = api.call("POST", path, body, headers={"If-Match": refused.etag})

    assert (refused.status, refused.problem) == (412, "precondition-failed")
    assert (refused.json["version"], refused.etag) == (3, f'"3.{1 + COUNT}"')
    assert (made.status, made.json["lastSeqNr"]) == (201, 1 + 2 * COUNT)


def aggregate_deciders(store: AggregateStore) -> AggregateDeciders[None, int, AggregateEvent]:
    return AggregateDeciders(
        store=store,
        decider=Decider(initial=int, evolve=lambda total, _: total + 1, decide=lambda *_: []),
        codec=EventCodec(
            encode=lambda event: Event(type=event, data=b"{}"), decode=lambda stored: stored.type
        ),
        state=StateCodec(encode=lambda total: b"%d" % total, decode=int),
        policy=lambda _: False,
    )


def test_a_decision_on_an_aggregate_is_made_again_after_many_large_events(api: Api, names: Names) -> None:
    store = api.aggregates
    alice = begun(store, names)
    calls = 0

    def decide(_: int) -> list[str]:
        nonlocal calls
        calls += 1
        if calls == 1:
            overtake(store, alice)
        return ["Small"] * COUNT

    made = aggregate_deciders(store).handle(alice, decide=decide)

    assert calls == 2
    assert made.standing.lock.seq_nr == 1 + 2 * COUNT


# Events in Sekiban's tables: an append meets events of its own ids.


def test_ids_of_many_large_events_of_others_are_refused_as_taken(api: Api, names: Names) -> None:
    store = api.tagged
    ids = [str(uuid5(NAMESPACE_OID, name)) for name in names]
    for half in (ids[::2], ids[1::2]):
        store.append([Event(id=each, type="Large", data=BODY, tags=("large:1",)) for each in half])

    with pytest.raises(InvalidInput, match="exists, but with other contents"):
        store.append([Event(id=each, type="Small", data=b"{}", tags=("large:1",)) for each in ids])


# The same, awaited, by requests that an event loop carries.


@asynccontextmanager
async def awaited(world: World, api: Api, large: list[Large]) -> AsyncIterator[Deployment]:
    """The deployment, for an event loop."""
    if world.endpoint is None:
        yield api.deployment
        return
    async with AsyncPlace(endpoint=world.endpoint.url, region=world.endpoint.region) as place:
        found = place.deployment(api.settings)
        large.append(Large(found.driver.execute))
        yield replace(found, driver=replace(found.driver, execute=large[-1].execute))


def test_awaited_it_is_the_conflict_and_the_next_append_goes_on_from_it(
    world: World, api: Api, large: list[Large], names: Names
) -> None:
    for name in names:
        api.deployment.streams.append(name, [LARGE])
    appends = [StreamAppend(stream=name, events=[SMALL], expected=NO_STREAM) for name in names]

    async def live() -> None:
        async with awaited(world, api, large) as deployment:
            streams = AsyncStreams(deployment.streams)
            with pytest.raises(ConflictError):
                await streams.append_all(appends)
            refused = await streams.try_append_all(appends)
            assert isinstance(refused, Conflict)
            tokens = {name: found.token for name, found in refused.streams.items()}
            made = await streams.append_all([replace(each, expected=tokens[each.stream]) for each in appends])
            assert [each.version for each in made.streams.values()] == [2] * COUNT

    asyncio.run(live())


def test_awaited_decisions_on_streams_and_on_aggregates_are_made_again(
    world: World, api: Api, large: list[Large], names: Names
) -> None:
    blocking, aggregates = api.deployment, api.aggregates
    alice = begun(aggregates, names)
    totals: list[tuple[int, ...]] = []
    counts: list[int] = []

    def decide(*found: int) -> tuple[list[Event], ...]:
        totals.append(found)
        if len(totals) == 1:
            for name in names:
                blocking.streams.append(name, [LARGE])
        return tuple([SMALL] for _ in found)

    def decide_for_alice(count: int) -> list[str]:
        counts.append(count)
        if len(counts) == 1:
            overtake(aggregates, alice)
        return ["Small"] * COUNT

    async def live() -> None:
        async with awaited(world, api, large) as deployment:
            deciders = AsyncDeciders(streams=AsyncStreams(deployment.streams), decider=COUNTING, codec=CODEC)
            await async_handle_all(tuple(map(deciders.on, names)), decide)
            on_aggregates = async_aggregate_deciders(aggregate_deciders(aggregates_of(deployment)))
            await on_aggregates.handle(alice, decide=decide_for_alice)

    asyncio.run(live())

    assert totals == [(0,) * COUNT, (1,) * COUNT]
    assert counts == [1, 1 + COUNT]
    assert {blocking.streams.head(name).version for name in names} == {2}
    assert aggregates.lock(alice).seq_nr == 1 + 2 * COUNT


def test_an_awaited_decision_on_tags_is_made_again(
    world: World, api: Api, large: list[Large], names: Names
) -> None:
    store = api.deployment.tagged

    def decide(*given: Any) -> None:
        async def live() -> None:
            async with awaited(world, api, large) as deployment:
                await async_decisions(Decisions(store=deployment.tagged)).handle(*given)

        asyncio.run(live())

    assert grown_meanwhile(store, names, decide) == [0, COUNT]
