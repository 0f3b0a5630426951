"""A stranger's layout of named streams, in one file: a card a stream, with all of its events.

It has no unfolds, prunes nothing and keeps no archive: whoever asks for that is refused in words, and all else works.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import pytest

from epochal import plugins
from epochal.codec import json
from epochal.codec.bodies import Encoded
from epochal.contrib.transfer.copying.sources import StreamSource
from epochal.contrib.transfer.copying.stream_copy import StreamCopier
from epochal.deployment import Deployment
from epochal.errors import ConflictError, CorruptData, InvalidInput
from epochal.http import streams as http_streams
from epochal.http.gateway import Performers
from epochal.http.operation import Operation, Perform, Request
from epochal.layout.changes import Span
from epochal.layout.healing import heal_streams
from epochal.layout.outcomes import conflict_at
from epochal.layout.port import Permission, Port
from epochal.layout.source import End, Source
from epochal.layout.streams import Batch, EncodedEvent, EncodedUnfold, Known, ReadPart
from epochal.model.events import Event, Unfold
from epochal.model.expected_version import NO_STREAM, ExpectedVersion, meets
from epochal.model.outcomes import Appended, Outcome
from epochal.model.stream_append import StreamAppend
from epochal.model.tokens import Token
from epochal.plan.conditions import Absent, equals
from epochal.plan.limits import ITEM_BYTES
from epochal.plan.ops import Done, Get, Put, Steps
from epochal.plan.tables import KeyAttribute, TableSpec
from epochal.plan.values import Item, binary, number, read_number, text
from epochal.plugins import BASE_DISTANCE, Layout, Plugin
from epochal.settings import Options, Settings, variable
from epochal.store.driver import Driver, Meter
from epochal.store.encoding import BodyCodec
from epochal.store.streams import Streams
from epochal.testing.feeds import MemoryStore
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import MemoryBucket, memory_streams
from tests.support.layout_contract import LayoutContract, Writer

CARDS: Final = TableSpec(
    kind="cards",
    partition=KeyAttribute(name="card", type="S"),
    sort=KeyAttribute(name="n", type="N"),
    stream=True,
)


# ------------------------------------------------------------------------------------------------------------- a stream


@dataclass(frozen=True, slots=True)
class Events:
    """All of a stream, or those from one on."""

    base: int
    events: tuple[EncodedEvent, ...]

    @property
    def next(self) -> int:
        return self.base + len(self.events)

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(event.type for event in self.events)

    def read(self, offset: int) -> EncodedEvent:
        return self.events[offset]

    def type(self, offset: int) -> str:
        return self.events[offset].type

    def timestamp(self, offset: int) -> str:
        return self.events[offset].timestamp


@dataclass(frozen=True, slots=True)
class Card:
    stream: str
    etag: str
    events: tuple[EncodedEvent, ...]
    latest: int
    low_water = 0
    deleted = False
    earlier_spans = ()

    @property
    def version(self) -> int:
        return len(self.events)

    @property
    def span(self) -> Events:
        return Events(0, self.events)

    def token(self) -> Token:
        return Token(version=self.version, etag=self.etag)

    def read_unfolds(self) -> Sequence[EncodedUnfold]:
        return ()


@dataclass(frozen=True, slots=True)
class Cursor:
    head: Card
    at: int
    forward: bool

    @property
    def at_end(self) -> bool:
        return self.at >= self.head.version if self.forward else self.at <= 0


def write(card: Card) -> Item:
    events = [[e.type, e.timestamp, e.data.encoding, e.data.data.hex()] for e in card.events]
    return {
        "card": text(card.stream),
        "n": number(0),
        "etag": text(card.etag),
        "latest": number(card.latest),
        "events": binary(json.dumps(events)),
    }


def read(item: Item) -> Card:
    events = tuple(
        EncodedEvent(type=kind, data=Encoded(encoding, bytes.fromhex(data)), timestamp=at)
        for kind, at, encoding, data in json.loads(item["events"]["B"])
    )
    latest = read_number(item, "latest") or 0
    if not 0 < latest <= len(events):
        raise CorruptData(f"{item['card']['S']}: a card whose events do not fit its latest append")
    return Card(item["card"]["S"], item["etag"]["S"], events, latest)


class Cards:
    """Streams as cards. An append looks whether the card has its etag already, and that is all it knows of retries."""

    name = "cards"
    compress_from = 48
    keeps_unfolds = False
    keeps_ids = False

    def room(self, unfolds: Sequence[EncodedUnfold]) -> int:  # noqa: ARG002  there are none
        return ITEM_BYTES // 4

    def append(
        self,
        table: str,
        batch: Batch,
        expected: ExpectedVersion,
        key: None = None,  # noqa: ARG002  it is given none
    ) -> Steps[Outcome]:
        while True:
            found = yield from self.load(table, batch.stream)
            if found is not None and found.etag == batch.etag:
                return self._written(found)
            version = None if found is None else found.version
            fits = (
                found is not None and found.token() == expected
                if isinstance(expected, Token)
                else meets(expected, version)
            )
            if not fits:
                return conflict_at(found)
            result = yield from self._put(table, batch, found)
            if result is not None:
                return result

    def append_on(self, table: str, batch: Batch, known: Known[Card]) -> Steps[Outcome]:
        expected = NO_STREAM if known is None else known.token() if isinstance(known, Card) else known
        return (yield from self.append(table, batch, expected))

    def load(
        self,
        table: str,
        stream: str,
        *,
        consistent: bool = True,
        whole: bool = False,  # noqa: ARG002  it always is
        recent: bool = False,  # noqa: ARG002  likewise
    ) -> Steps[Card | None]:
        key = {"card": text(stream), "n": number(0)}
        reply = yield Get(table=table, key=key, consistent=consistent)
        return None if reply.item is None else read(reply.item)

    def begin(
        self,
        table: str,
        stream: str,
        start: int | None,
        *,
        forward: bool,
        limit: int | None = None,  # noqa: ARG002  a card is read whole
    ) -> Steps[Cursor | None]:
        head = yield from self.load(table, stream)
        return None if head is None else self.stand(head, start, forward=forward)

    def stand(self, head: Card, start: int | None, *, forward: bool) -> Cursor:
        last = head.version if start is None else min(start + 1, head.version)
        return Cursor(head, start or 0 if forward else last, forward)

    def advance(
        self,
        table: str,  # noqa: ARG002  the cursor has the card
        cursor: Cursor,
        limit: int | None,  # noqa: ARG002  likewise
        *,
        consistent: bool = True,  # noqa: ARG002  likewise
    ) -> Steps[ReadPart[Events, Cursor]]:
        yield from ()
        head, at = cursor.head, cursor.at
        if cursor.forward:
            return ReadPart(spans=(Events(at, head.events[at:]),), cursor=replace(cursor, at=head.version))
        return ReadPart(spans=(Events(0, head.events[:at]),), cursor=replace(cursor, at=0))

    def _put(self, table: str, batch: Batch, found: Card | None) -> Steps[Appended | None]:
        before = () if found is None else found.events
        card = Card(batch.stream, batch.etag, (*before, *batch.events), len(batch.events))
        condition = Absent("card") if found is None else equals("etag", text(found.etag))
        reply = yield Put(table=table, item=write(card), condition=condition)
        return self._written(card) if isinstance(reply, Done) else None

    def _written(self, card: Card) -> Appended:
        return Appended(first=card.version - card.latest, version=card.version, token=card.token())


# ---------------------------------------------------------------------------------------------------------- the plug-in


def end(item: Item) -> End | None:
    return End(read(item).stream, read(item).version)


def latest(item: Item) -> Span:
    card = read(item)
    return Span(card.stream, card.version - card.latest, card.span.types[card.version - card.latest :])


def everything(item: Item) -> Span:
    return Span(read(item).stream, 0, read(item).span.types)


def source(settings: Settings) -> Source:
    table = settings.table("cards")
    return Source(
        name="cards",
        table=table,
        partitions=settings.partitions("cards_partitions"),
        setting=variable("cards_partitions"),
        appended=latest,
        heal=heal_streams("cards", partial(begin, table), partial(Cards().advance, table, limit=None)),
        end=end,
        change_up_to=everything,
        where=equals("n", number(0)),
        moved=None,
        stored=everything,
    )


def begin(table: str, stream: str, index: int) -> Steps[Cursor | None]:
    return Cards().begin(table, stream, index, forward=True)


def access(_: Options) -> dict[str, tuple[Permission, ...]]:
    reading = ("GetItem",)
    actions = {
        **dict.fromkeys(("replay", "feed", "indexer", "reaction"), reading),
        "append": ("GetItem", "PutItem"),
        "auditor": ("GetItem", "Scan"),
    }
    return {name: (Permission(table=CARDS, actions=each),) for name, each in actions.items()}


PORT = Port(
    tables=(CARDS,),
    kind_of=lambda item: CARDS.kind if item.keys() >= set(CARDS.keys) else None,
    access=access,
    heads=CARDS,
    source=source,
)


def opened(deployment: Deployment) -> Streams:
    return cards_of(deployment.settings, deployment.driver, deployment.codec)


def cards_of(settings: Settings, driver: Driver, codec: BodyCodec) -> Streams:
    return Streams(driver=driver, table=settings.table("cards"), codec=codec, layout=Cards())


ENTRY = Layout(
    name="cards",
    base=7 * BASE_DISTANCE,
    table="cards_table",
    partitions="cards_partitions",
    of=Plugin(port=lambda: PORT, open_streams=cards_of, stores={"cards": opened}),
)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "LAYOUTS", (*plugins.LAYOUTS, ENTRY))


SETTINGS = Settings.of(cards_table="cards")


class TestCards(LayoutContract):
    writer = Writer(
        settings=SETTINGS,
        streams=("Cart-1", "Cart-2"),
        foreign=(),
        malformed={**write(Card("Cart-3", "e", (), 0))},
        append=lambda driver, stream, types: cards_of(SETTINGS, driver, BodyCodec()).append(
            stream, [Event(type=each) for each in types]
        ),
    )


# ------------------------------------------------------------------------------------------------------- what it can do


@pytest.fixture
def toy() -> Deployment:
    tables = MemoryTables({CARDS.kind: CARDS})
    return Deployment(
        settings=SETTINGS,
        driver=Driver(execute=tables.execute, meter=Meter(), sleep=lambda _: None),
        bucket=MemoryBucket(),
    )


@pytest.fixture
def streams(toy: Deployment) -> Streams:
    return opened(toy)


def put(streams: Streams) -> None:
    streams.append("Cart-1", [Event(type=kind, data=b'{"n":1}') for kind in "ab"])


def test_streams_are_appended_to_loaded_and_read_in_either_direction(streams: Streams) -> None:
    put(streams)
    loaded = streams.load("Cart-1", start=0)
    assert loaded is not None
    streams.append("Cart-1", [Event(type="c")], expected=loaded.token)
    with pytest.raises(ConflictError):
        streams.append("Cart-1", [Event(type="d")], expected=loaded.token)
    assert [(each.index, each.type) for each in streams.read("Cart-1")] == [(0, "a"), (1, "b"), (2, "c")]
    page = streams.page("Cart-1", direction="backward", limit=2)
    assert [each.type for each in page.events] == ["c", "b"]


REFUSED: Final[dict[str, tuple[Any, str]]] = {
    "a key": (
        lambda streams: streams.append("Cart-1", [Event(type="a")], idempotency_key="k"),
        "idempotency_key: is not supported by the layout cards",
    ),
    "a decision under a key": (
        lambda streams: streams.decision_key("Cart-1", "k"),
        "idempotency_key: is not supported by the layout cards",
    ),
    "an unfold": (
        lambda streams: streams.append("Cart-1", [], unfolds=[Unfold(type="s", data=b"{}")]),
        "unfolds: are not supported by the layout cards",
    ),
    "a prune": (
        lambda streams: streams.prune("Cart-1", 1),
        "stream: cannot be pruned, because the layout cards does not support it",
    ),
    "a deletion": (
        lambda streams: streams.delete("Cart-1"),
        "stream: cannot be deleted, because the layout cards does not support it",
    ),
    "an archive": (
        lambda streams: replace(streams, archive=replace(streams, table="others")).copy_to_archive(
            "Cart-1", 1
        ),
        "stream: cannot be archived, because the layout cards does not support it",
    ),
    "an append to several": (
        lambda streams: streams.append_all(
            [StreamAppend(stream=f"Cart-{n}", events=[Event(type="a")]) for n in (1, 2)]
        ),
        "appends: cannot be appended in one transaction with the layout cards",
    ),
}


@pytest.mark.parametrize("asked", REFUSED)
def test_what_it_leaves_out_is_refused_in_words_and_nothing_is_sent(streams: Streams, asked: str) -> None:
    put(streams)
    call, words = REFUSED[asked]
    meter = streams.driver.meter
    before = meter.capacity
    with pytest.raises(InvalidInput) as refused:
        call(streams)
    assert str(refused.value) == words
    assert meter.capacity == before


def test_streams_are_copied_to_it_but_for_those_that_begin_later(streams: Streams) -> None:
    pages = memory_streams()
    for name in ("Cart-1", "Cart-2"):
        pages.append(name, [Event(type=kind) for kind in "ab"])
    pages.prune("Cart-2", 1)
    copier = StreamCopier(source=StreamSource(pages), target=streams)
    assert copier.copy("Cart-1").version == 2
    kept = copier.copy("Cart-2")
    assert "cannot be copied from a later event on, because the layout cards does not support it" in kept.why


# ------------------------------------------------------------------------------------------------------------ over HTTP


def call(deployment: Deployment, perform: Perform, body: object = None, **path: str) -> tuple[int, Any]:
    operation = Operation(
        "POST",
        "/cards",
        perform,
        opened=http_streams.opened,
        function="append",
        scope="append",
        table="cards",
        store="cards",
    )
    content = b"" if body is None else json.dumps(body)
    request = Request(path=path, body=content, headers={"content-type": "application/json"})
    answer = Performers(deployment).of(operation)(request)
    return answer.status, json.loads((answer.body or "null").encode())


def test_the_api_serves_it_and_refuses_what_it_leaves_out(toy: Deployment) -> None:
    event = {"type": "a", "data": {"n": 1}}
    status, _ = call(toy, http_streams.append_events, {"events": [event]}, stream="Cart-1")
    assert status == 201
    _, state = call(toy, http_streams.read_state, stream="Cart-1")
    assert (state["version"], state["unfolds"]) == (1, [])
    _, page = call(toy, http_streams.read_events, stream="Cart-1")
    assert [each["data"] for each in page["events"]] == [{"n": 1}]
    unfold = {"type": "s", "data": {}}
    for perform, body in (
        (http_streams.append_events, {"events": [event], "unfolds": [unfold]}),
        (http_streams.prune_stream, {"before": 1}),
        (http_streams.delete_stream, None),
    ):
        with pytest.raises(
            InvalidInput, match="supported by the layout cards|because the layout cards does not support it"
        ):
            call(toy, perform, body, stream="Cart-1")


# ---------------------------------------------------------------------------------------------------------- in the feed


def test_a_reaction_is_given_its_events() -> None:
    feed = MemoryStore()
    put(feed.cards)
    feed.index()
    (page,) = feed.feed.read(ENTRY.base, data=True)
    assert [(each.stream, each.index, each.type) for each in page.items] == [
        ("Cart-1", 0, "a"),
        ("Cart-1", 1, "b"),
    ]
    assert [each.event.data for each in page.items if each.event] == [b'{"n":1}'] * 2
