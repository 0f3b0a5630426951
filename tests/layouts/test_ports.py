"""All layouts keep what every layout has to."""

from __future__ import annotations

from epochal.contrib.equinox.streams import tips_of
from epochal.contrib.event_store_adapter.ids import aggregate_id
from epochal.contrib.event_store_adapter.items import KeyResolver, write_copy
from epochal.contrib.event_store_adapter.model import AggregateEvent, Lock
from epochal.contrib.event_store_adapter.store import aggregates_of
from epochal.contrib.sekiban.items import Keys, write_head
from epochal.contrib.sekiban.store import dcb_of
from epochal.index.checkpoints import TIP
from epochal.model.events import Event, Recorded
from epochal.model.moments import Ticks
from epochal.model.positions import Reached
from epochal.model.tags import EVERYTHING, make_place
from epochal.plan.values import binary, number, text
from epochal.settings import Settings
from epochal.store.driver import Driver
from epochal.store.encoding import BodyCodec
from epochal.store.streams import Streams
from tests.support.layout_contract import LayoutContract, Writer

ORDER = aggregate_id("order", "1")
KEYS = KeyResolver()
PAID = Recorded(
    id="6f1c2f0e-4a43-4a5e-9f0f-0d8a5f6f1c2f",
    place=make_place(Ticks(1), 1),
    type="Paid",
    data=b"{}",
    tags=("order:1",),
    timestamp="2026-11-21T08:00:00.0000000+00:00",
)


STREAMS = Settings.of(tips_table="tips")
AGGREGATES = Settings.of(journal_table="journal", snapshot_table="snapshot")
TAGS = Settings.of(events_table="events", tags_table="tags")


def streams(driver: Driver) -> Streams:
    return tips_of(STREAMS, driver, BodyCodec())


def persist(driver: Driver, stream: str, types: tuple[str, ...]) -> None:
    new = [AggregateEvent(type=kind, data=b"{}") for kind in types]
    aggregates_of(AGGREGATES, driver).append(aggregate_id(*stream.split("-")), new, snapshot=b"{}")


def tag(driver: Driver, stream: str, types: tuple[str, ...]) -> None:
    dcb_of(TAGS, driver).append([Event(type=kind, data=b"{}", tags=(stream,)) for kind in types])


class TestStreams(LayoutContract):
    writer = Writer(
        settings=STREAMS,
        streams=("Cart-1", "Cart-2"),
        foreign=(
            {"p": text("Cart-1"), "i": number(0), "n": number(1), "c": {"L": [text("a")]}},
            {"p": text("$Idempotency-1"), "i": number(0), "ttl": number(1)},
        ),
        malformed={"p": text("Cart-3"), "i": number(TIP), "n": number(1), "c": {"L": [text("a")]}},
        append=lambda driver, stream, types: streams(driver).append(
            stream, [Event(type=each) for each in types]
        ),
        prune=lambda driver, stream, before: streams(driver).prune(stream, before),
        end=lambda driver, stream: streams(driver).delete(stream),
        empty=lambda driver, stream: streams(driver).delete(stream, leave_open=True),
    )


class TestAggregates(LayoutContract):
    writer = Writer(
        settings=AGGREGATES,
        streams=("order-1", "order-2"),
        foreign=(write_copy(KEYS, ORDER, Lock(version=2, seq_nr=2), binary(b"{}"), 0),),
        malformed={
            **KEYS.key(aggregate_id("order", "3"), 0),
            "aid": text("order-3"),
            "seq_nr": number(0),
            "version": number(1),
            "head_version": number(1),
        },
        append=persist,
    )


class TestTags(LayoutContract):
    writer = Writer(
        settings=TAGS,
        streams=("order:1", "order:2"),
        foreign=(
            write_head(Keys(service="other"), "order:1", Reached(), [PAID]),
            write_head(Keys(), EVERYTHING, Reached(), [PAID]),
        ),
        malformed={"pk": text("TAG#order:3"), "sk": text("#"), "n": number(1), "a": number(3)},
        append=tag,
    )
