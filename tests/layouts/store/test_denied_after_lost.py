"""A write's response is lost, and whatever would tell what became of it is denied: the error says that it may have been
applied, whoever writes and wherever it is met (G13).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pytest

from epochal import (
    Decider,
    Deciders,
    Decisions,
    Delivery,
    Event,
    Query,
    QueryItem,
    StreamAppend,
    Unfold,
    projection,
)
from epochal.aio.stores import AsyncStreams
from epochal.contrib.equinox.port import ARCHIVE
from epochal.contrib.event_store_adapter.ids import aggregate_id
from epochal.contrib.event_store_adapter.model import AggregateEvent
from epochal.deciders.codecs import EventCodec
from epochal.deciders.on_streams import handle_all
from epochal.errors import EpochalError, InvalidRequest, Misconfigured, Refused, Unavailable
from epochal.feed.events import FeedEvent
from epochal.layout.tables import READ_MODELS, store_tables
from epochal.plan.failures import Lost
from epochal.plan.ops import Delete, Op, Put, Reply, Transact, Update
from epochal.reactions.definition import reaction
from epochal.read_models.documents import Documents
from epochal.store.joined import JoinedAppends
from epochal.testing.feeds import MemoryStore
from epochal.testing.memory import MemoryTables

WRITES: Final = (Put, Update, Delete, Transact)
OPENED = Event(type="Opened")
ACCOUNT = aggregate_id("account", "1")
COURSE = Query(items=(QueryItem(tags=frozenset({"course:1"})),))
TAKEN = Event(type="Taken", tags=["course:1", "student:7"])
COUNT = projection(tags=["course:1"], on={"Taken": lambda count, _: count + 1}, initial=0)
CODEC = EventCodec[Event](encode=lambda event: event, decode=lambda stored: Event(type=stored.type))
DECIDER = Decider[Event, int, Event](
    initial=int, evolve=lambda count, _: count + 1, decide=lambda event, _: [event]
)

ERRORS: dict[str, Callable[[], EpochalError]] = {
    "expired": lambda: Refused("PutItem", "the security token is expired"),
    "no credentials": lambda: Misconfigured("credentials", "log in again"),
    "malformed": lambda: InvalidRequest("PutItem", "ValidationException", "no such thing"),
}


class Denying(MemoryTables):
    """Of the writes that follow, the answer of one is lost, and everything from some request after it on is denied.

    Attributes:
        left: writes until then; None for no end.
        applied: the write whose answer is lost is applied.
        passing: requests after it that are not denied.
        denied: what all requests meet from then on.
        over: the answer was lost.
    """

    left: int | None = None
    applied: bool = True
    passing: int = 0
    denied: Callable[[], EpochalError]
    over: bool = False

    def execute(self, op: Op) -> Reply:
        if self.over:
            self.passing -= 1
            if self.passing < 0:
                raise self.denied()
            return super().execute(op)
        if self.left is not None and isinstance(op, WRITES):
            self.left -= 1
            if self.left < 0:
                self.over = True
                if self.applied:
                    super().execute(op)
                raise Lost("the test's fault")
        return super().execute(op)


def appended(feed: MemoryStore) -> None:
    feed.streams.append("Door-1", [OPENED], unfolds=[Unfold(type="State")])


def appended_under_a_key(feed: MemoryStore) -> None:
    feed.streams.append("Door-1", [OPENED], idempotency_key="k")


def appended_to_tips(feed: MemoryStore) -> None:
    feed.tips.append("Door-1", [Event(type="Opened", data=b"x" * 3_000)] * 20)
    feed.tips.append("Door-1", [OPENED])


def appended_to_several(feed: MemoryStore) -> None:
    feed.streams.append_all([StreamAppend(stream=name, events=[OPENED]) for name in ("Door-1", "Door-2")])


def appended_together(feed: MemoryStore) -> None:
    JoinedAppends(feed.streams).append("Door-1", [OPENED])


def appended_awaited(feed: MemoryStore) -> None:
    asyncio.run(AsyncStreams(feed.streams).append("Door-1", [OPENED]))


def pruned(feed: MemoryStore) -> None:
    feed.streams.append("Door-1", [OPENED] * 3)
    feed.streams.prune("Door-1", 2)
    feed.streams.delete("Door-1")


def archived(feed: MemoryStore) -> None:
    archive = replace(feed.tips, table=ARCHIVE.kind)
    tips = replace(feed.tips, archive=archive)
    tips.append("Door-1", [OPENED] * 3)
    tips.archive_and_prune("Door-1", 2)


def decided(feed: MemoryStore) -> None:
    Deciders(streams=feed.streams, decider=DECIDER, codec=CODEC).handle("Door-1", decide=lambda _: [OPENED])


def decided_on_several(feed: MemoryStore) -> None:
    doors = Deciders(streams=feed.streams, decider=DECIDER, codec=CODEC)
    handle_all((doors.on("Door-1"), doors.on("Door-2")), lambda *_: ([OPENED], [OPENED]))


def tagged(feed: MemoryStore) -> None:
    feed.tagged.append([TAKEN], fail_if=COURSE)


def tagged_in_sekibans_tables(feed: MemoryStore) -> None:
    feed.dcb.append([TAKEN], fail_if=COURSE)


def decided_on_tags(feed: MemoryStore) -> None:
    def take(_: Mapping[str, Any]) -> Sequence[Event]:
        return [TAKEN]

    Decisions(store=feed.tagged).handle({"taken": COUNT}, take)


def appended_to_an_aggregate(feed: MemoryStore) -> None:
    opened = AggregateEvent(type="Opened", data=b"{}")
    feed.aggregates.append(ACCOUNT, [opened], snapshot=b"{}")
    feed.aggregates.append(ACCOUNT, [AggregateEvent(type="Paid", data=b"{}")])


def indexed(feed: MemoryStore) -> None:
    """What an indexer cannot write it answers, and is asked for again."""
    feed.streams.append("Door-1", [OPENED])
    feed.index()


def folded(feed: MemoryStore) -> None:
    event = FeedEvent(stream="Door-1", index=0, type="Opened")
    delivery = Delivery(group="counts", partition=30_000, stream="Door-1", events=(event,))

    def count(documents: Documents, event: FeedEvent) -> None:
        documents.put(event.type, documents.get(event.type, 0) + 1)

    feed.read_models.open("counts", 1).apply(delivery, count)


def reacted(feed: MemoryStore) -> None:
    """A group begins, and keeps a checkpoint."""
    assert isinstance(feed.tables, Denying)
    left, feed.tables.left = feed.tables.left, None
    feed.streams.append("Door-1", [OPENED])
    feed.index()
    feed.tables.left = left
    feed.react(reaction(name="counts", categories=["Door"])(lambda _: None))


CALLS: dict[str, Callable[[MemoryStore], None]] = {
    name.replace("_", " "): call
    for name, call in globals().items()
    if callable(call) and getattr(call, "__annotations__", {}) == {"feed": "MemoryStore", "return": "None"}
}


def raised_by(call: Callable[[MemoryStore], None], feed: MemoryStore) -> EpochalError | None:
    try:
        call(feed)
    except EpochalError as error:
        return error
    return None


@pytest.mark.slow
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("call", CALLS)
def test_a_write_whose_answer_is_lost_before_all_else_is_denied_is_said_to_be_perhaps_applied(
    call: str, error: str
) -> None:
    for lost in range(100):
        tables = Denying({spec.kind: spec for spec in (*store_tables(), READ_MODELS, ARCHIVE)})
        tables.denied = ERRORS[error]
        feed = MemoryStore(tables=tables)
        tables.left = lost
        raised = raised_by(CALLS[call], feed)
        if raised is None and not tables.over:
            assert lost > 0
            return
        if raised is None:
            assert CALLS[call] is indexed, "nobody was told"
            continue
        assert isinstance(raised, Unavailable)
        assert raised.maybe_applied
        assert isinstance(raised.__cause__, type(ERRORS[error]()))
    pytest.fail("it never ends")


ONE_WRITE: Final = {
    name: call
    for name, call in CALLS.items()
    if call not in (appended_to_tips, pruned, archived, appended_to_an_aggregate, indexed, folded, reacted)
}
"""Of a single call that writes events, so that whether it has written any can be told from what is there."""


def events_of(feed: MemoryStore) -> int:
    streams = (store.read(name) for store in (feed.streams, feed.tips) for name in ("Door-1", "Door-2"))
    tagged = (store.read(COURSE).events for store in (feed.tagged, feed.dcb))
    return sum(len(list(events)) for events in (*streams, *tagged))


@pytest.mark.parametrize("applied", [True, False], ids=["applied", "not applied"])
@pytest.mark.parametrize("call", ONE_WRITE)
def test_wherever_all_is_denied_after_a_lost_answer_an_error_that_knows_of_no_write_is_right(
    call: str, applied: bool
) -> None:
    for lost in range(100):
        for passing in range(100):
            tables = Denying({spec.kind: spec for spec in (*store_tables(), READ_MODELS, ARCHIVE)})
            feed = MemoryStore(tables=tables)
            tables.left, tables.applied, tables.passing = lost, applied, passing
            tables.denied = ERRORS["expired"]
            raised = raised_by(CALLS[call], feed)
            if raised is None:
                break
            if not (isinstance(raised, Unavailable) and raised.maybe_applied):
                tables.over, tables.left = False, None
                assert events_of(feed) == 0, f"{raised}, {passing} requests after write {lost} was lost"
        if not tables.over:
            return
    pytest.fail("it never ends")
