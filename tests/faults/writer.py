"""A process that appends to all layouts until it has performed its operations: `python -m tests.faults.writer`.

It may be killed at any moment. What it needs to go on is in its log: each answer after it came. An operation whose
answer is not in the log is tried again, with the same key or ids as before. The writers' clocks are hours apart.

    streams          in Tips and as pages: a key, and at each try another expectation: any version, one just loaded, its
                     token
    aggregates       a key and the lock of a replay just made; or no key, where the replay lacks the operation's events
    tagged events    ids that follow from the operation; half of them on condition that nobody else has appended
    in bulk          an append for each fact, with a key of its own, to two streams of pages; what had no answer, again
"""

from __future__ import annotations

import random
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import replace

from epochal.contrib.event_store_adapter.ids import AggregateId
from epochal.contrib.event_store_adapter.model import AggregateEvent
from epochal.contrib.event_store_adapter.outcomes import AggregateAppended
from epochal.errors import Unavailable
from epochal.model.events import Event
from epochal.model.expected_version import ANY, NO_STREAM, AtVersion, ExpectedVersion
from epochal.model.outcomes import Appended
from epochal.model.tags import Query, QueryItem
from epochal.store.bulk import Bulk, BulkAppend
from tests.faults.site import AGGREGATES, PAGED, STREAMS, TAGS, Site

KINDS = 4
"""Of operations, which take turns."""

BULK = sorted(PAGED)
"""Streams that bulk appends go to."""

HOURS = {"ann": 6, "cid": -6}
"""By which clocks are wrong."""


class Writer:
    """Performs operation after operation."""

    def __init__(self, site: Site, name: str) -> None:
        def now() -> int:
            return time.time_ns() + HOURS.get(name, 0) * 3600 * 10**9

        self.site, self.name, self.log = site, name, site.log(name)
        self.streams = {stream: replace(store, now=now) for stream, store in site.open_streams().items()}
        self.aggregates = replace(site.open_aggregates(), now=now)
        self.tagged = replace(site.open_tagged(), now=now)

    def run(self) -> None:
        done = {entry[1] for entry in self.log if entry[0] == "done"}
        kinds = (self.append_to_stream, self.append_to_aggregate, self.append_tagged, self.append_in_bulk)
        for number in range(self.site.operations):
            if number not in done:
                patiently(kinds[number % KINDS], number)
                self.log.add("done", number)

    def append_to_stream(self, number: int) -> None:
        stream = STREAMS[number // KINDS % len(STREAMS)]
        events = [Event(type="E", data=each.encode()) for each in facts(self.name, number)]
        key = f"{self.name} {number}"
        while True:
            expected = self._expectation(stream)
            outcome = self.streams[stream].try_append(stream, events, expected=expected, idempotency_key=key)
            if isinstance(outcome, Appended):
                self.log.add("streams", number, stream, outcome.first)
                return

    def _expectation(self, stream: str) -> ExpectedVersion:
        """Any version, or the one that is there now, whatever was expected when the operation was last tried."""
        if random.random() < 0.3:
            return ANY
        state = self.streams[stream].load(stream)
        if state is None:
            return NO_STREAM
        return random.choice((state.token, AtVersion(version=state.version)))

    def append_to_aggregate(self, number: int) -> None:
        aggregate = AGGREGATES[number // KINDS % len(AGGREGATES)]
        ours = facts(self.name, number)
        key = f"{self.name} {number}" if number % 2 else None
        while True:
            replay = self.aggregates.replay(aggregate)
            first = None if replay is None or key else self._first(aggregate, ours[0])
            if first is None:
                outcome = self.aggregates.try_append(
                    aggregate,
                    [AggregateEvent(type="E", data=each.encode()) for each in ours],
                    snapshot=b"{}" if replay is None or key else None,
                    expected=NO_STREAM if replay is None else replay.snapshot.lock,
                    idempotency_key=key,
                )
                if not isinstance(outcome, AggregateAppended):
                    continue
                first = outcome.first
            self.log.add("aggregates", number, str(aggregate), first)
            return

    def _first(self, aggregate: AggregateId, fact: str) -> int | None:
        events = self.aggregates.events_after(aggregate)
        return next((event.seq_nr for event in events if event.data.decode() == fact), None)

    def append_tagged(self, number: int) -> None:
        turn = number // KINDS
        tags = tuple(TAGS[(turn + k) % len(TAGS)] for k in range(1 + turn % 2))
        events = [
            Event(type="E", data=each.encode(), tags=tags, id=str(uuid.uuid5(uuid.NAMESPACE_OID, each)))
            for each in facts(self.name, number)
        ]
        query = Query(items=(QueryItem(types=frozenset(), tags=frozenset(tags[:1])),))
        position = None
        while True:
            if turn % 4 > 1:
                outcome = self.tagged.try_append(events)
            else:
                position = position or self.tagged.read(query).position
                outcome = self.tagged.try_append(events, fail_if=query, after=position)
            if isinstance(outcome, Appended):
                self.log.add("tagged", number, [event.id for event in outcome.events])
                return
            position = outcome.position

    def append_in_bulk(self, number: int) -> None:
        left = list(enumerate(facts(self.name, number)))
        while left:
            appends = [
                BulkAppend(
                    stream=(stream := BULK[part // 2]),
                    events=[Event(type="E", data=fact.encode())],
                    expected=self._expectation(stream),
                    idempotency_key=f"{self.name} {number} {part}",
                )
                for part, fact in left
            ]
            answers = Bulk(self.streams[BULK[0]]).append(appends)
            for append, (part, fact), answer in zip(appends, tuple(left), answers, strict=True):
                if isinstance(answer, Appended):
                    self.log.add("bulk", number, part, append.stream, answer.first)
                    left.remove((part, fact))


def facts(name: str, number: int) -> list[str]:
    """What the events of an operation say; nobody else says it. JSON, as two of the layouts ask."""
    return [f'"{name} {number} {part}"' for part in range(1 + number // KINDS % 3)]


def patiently(perform: Callable[[int], None], number: int) -> None:
    """Try until there is an answer."""
    while True:
        try:
            perform(number)
        except Unavailable:
            continue
        return


if __name__ == "__main__":
    Writer(Site.parse(sys.argv[1]), sys.argv[2]).run()
