"""A process that appends to all three layouts until it has performed its operations: `python -m tests.faults.writer`.

It may be killed at any moment. What it needs to go on is in its log: each try before it is made, each answer after it
came. An operation whose answer is not in the log is tried again, with the same key, ids or version as before.

    streams          any version under an idempotency key; or the token of the last load, with the key
    aggregates       the lock of a replay that shows that the operation's events are not there yet
    tagged events    ids that follow from the operation; half of them on condition that nobody else has appended
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable

from epochal.errors import Unavailable
from epochal.layout.dcb.append import Written
from epochal.model.aggregates import AggregateEvent, AggregateId
from epochal.model.dcb import Query, QueryItem, TaggedEvent
from epochal.model.events import Event
from epochal.model.outcomes import Appended
from epochal.model.versions import ANY, NO_STREAM, AtVersion, ExpectedVersion
from epochal.store.aggregates import AggregateAppended
from tests.faults.site import AGGREGATES, STREAMS, TAGS, Site


class Writer:
    """Performs operation after operation; `tried` has the version of the last try of each that knew one."""

    def __init__(self, site: Site, name: str) -> None:
        self.site, self.name, self.log = site, name, site.log(name)
        self.streams, self.aggregates = site.open_streams(), site.open_aggregates()
        self.tagged = site.open_tagged()

    def run(self) -> None:
        done = {entry[1] for entry in self.log if entry[0] == "done"}
        tried = {entry[1]: entry[2] for entry in self.log if entry[0] == "try"}
        layouts = (self.append_to_stream, self.append_to_aggregate, self.append_tagged)
        for number in range(self.site.operations):
            if number not in done:
                patiently(layouts[number % 3], number, tried)
                self.log.add("done", number)

    def append_to_stream(self, number: int, tried: dict[int, int]) -> None:
        stream = STREAMS[number // 3 % len(STREAMS)]
        events = [Event(type="E", data=each.encode()) for each in facts(self.name, number)]
        key = f"{self.name} {number}"
        while True:
            expected = self._expectation(stream, number, tried)
            outcome = self.streams.try_append(stream, events, expected=expected, idempotency_key=key)
            if isinstance(outcome, Appended):
                self.log.add("streams", number, stream, outcome.first)
                return
            tried.pop(number, None)

    def _expectation(self, stream: str, number: int, tried: dict[int, int]) -> ExpectedVersion:
        """Any version, or a known one; the same as before where it is not known what came of that."""
        if number % 2:
            return ANY
        if number not in tried:
            state = self.streams.load(stream)
            tried[number] = 0 if state is None else state.version
            self.log.add("try", number, tried[number])
        return AtVersion(version=tried[number])

    def append_to_aggregate(self, number: int, _tried: dict[int, int]) -> None:
        aggregate = AGGREGATES[number // 3 % len(AGGREGATES)]
        ours = facts(self.name, number)
        while True:
            replay = self.aggregates.replay(aggregate)
            first = None if replay is None else self._first(aggregate, ours[0])
            if first is None:
                outcome = self.aggregates.try_append(
                    aggregate,
                    [AggregateEvent(type="E", data=each.encode()) for each in ours],
                    snapshot=b"{}" if replay is None or number % 2 else None,
                    expected=NO_STREAM if replay is None else replay.snapshot.lock,
                )
                if not isinstance(outcome, AggregateAppended):
                    continue
                first = outcome.first
            self.log.add("aggregates", number, str(aggregate), first)
            return

    def _first(self, aggregate: AggregateId, fact: str) -> int | None:
        events = self.aggregates.events_after(aggregate)
        return next((event.seq_nr for event in events if event.data.decode() == fact), None)

    def append_tagged(self, number: int, _tried: dict[int, int]) -> None:
        turn = number // 3
        tags = tuple(TAGS[(turn + k) % len(TAGS)] for k in range(1 + turn % 2))
        events = [
            TaggedEvent(type="E", data=each, tags=tags, id=str(uuid.uuid5(uuid.NAMESPACE_OID, each)))
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
            if isinstance(outcome, Written):
                self.log.add("tagged", number, [event.id for event in outcome.events])
                return
            position = outcome.position


def facts(name: str, number: int) -> list[str]:
    """What the events of an operation say; nobody else says it. JSON, as two of the layouts ask."""
    return [f'"{name} {number} {part}"' for part in range(1 + number // 3 % 3)]


def patiently(perform: Callable[[int, dict[int, int]], None], number: int, tried: dict[int, int]) -> None:
    """Try until there is an answer."""
    while True:
        try:
            perform(number, tried)
        except Unavailable:
            continue
        return


if __name__ == "__main__":
    Writer(Site.parse(sys.argv[1]), sys.argv[2]).run()
