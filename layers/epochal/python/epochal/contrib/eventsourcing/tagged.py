"""Events of applications with dynamic consistency boundaries: a stream has all of them, and their tags find them.

The library counts events from 1 without gaps, over all of an application. So they are appended to one stream, the log,
where the number of an event is its index and one. They carry their tags there, and each tag has a chain of pages.

    append    to the log on exactly the end that was read, once nothing that forbids it is found up to there
    read      by the pages of its tags; without tags, or near its end, by those of the log
      └ tags  are looked at again together: what the log shows may not be in all of its tags yet, while its transaction
              is carried out

The log alone decides what was appended first, so an append needs no other conditions. Its price: all appends of an
application take turns, some hundreds of them a second at most.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from eventsourcing.dcb.api import (
    DCBAppendCondition,
    DCBEvent,
    DCBQuery,
    DCBQueryItem,
    DCBReadResponse,
    DCBRecorder,
    DCBSequencedEvent,
    DCBSubscription,
)
from eventsourcing.dcb.popo import SimpleDCBReadResponse
from eventsourcing.persistence import IntegrityError, OperationalError, ProgrammingError

from epochal.contrib.eventsourcing.recorders import ATTEMPTS, Inserts, Polled
from epochal.contrib.eventsourcing.records import as_the_library_has_them, tagged_as, tags_of
from epochal.model.events import TAG_STREAMS, Recorded
from epochal.model.tags import Query, QueryItem
from epochal.model.versions import ANY, NO_STREAM, Appended, Conflict, ExpectedVersion, Undetermined
from epochal.plan.ops import BATCH_KEYS
from epochal.store.streams import Streams

NEAR: Final = 100
"""Events of the log that are read rather than those of tags: some 30 KB, in one request where tags take three."""


class EpochalDCBRecorder(DCBRecorder):
    """Appends and reads events with tags.

    Args:
        streams: of the `pages` layout, which has tags.
        category: of the log's name, and of the tags'.
        near: events of the log up to which tags are not asked.
    """

    def __init__(self, streams: Streams, category: str, *, near: int = NEAR) -> None:
        self._streams = streams
        self._log = f"{category}_dcb-all"
        self._prefix = f"{category}_dcb:"
        self._near = near
        self._turn = threading.Lock()
        self.inserts = Inserts()

    def append(self, events: Sequence[DCBEvent], condition: DCBAppendCondition | None = None) -> int:
        """Append events, all or none, unless one that matches the condition is there; the number of the last.

        `IntegrityError` where there is such an event, `DataError` for what no item or tag can hold, and for more than
        99 different tags.
        """
        if not events:
            raise ProgrammingError("an append has one event at least")
        # In turns: a transaction that another one refuses costs as much as its writes.
        with as_the_library_has_them(), self._turn:
            last = self._appended(events, condition)
        self.inserts.add()
        return last

    def read(
        self, query: DCBQuery | None = None, *, after: int | None = None, limit: int | None = None
    ) -> DCBReadResponse:
        """Events that match, above number `after`; the head is the number of the last event of all, or with a limit of
        the last one that is answered.
        """
        with as_the_library_has_them():
            end, _ = self._end()
        found = self._sequenced(query or DCBQuery(), after or 0, end)
        if limit is None:
            return SimpleDCBReadResponse(found, end or None)
        taken = list(islice(found, max(limit, 0)))
        return SimpleDCBReadResponse(iter(taken), taken[-1].position if taken else None)

    def subscribe(
        self, query: DCBQuery | None = None, *, after: int | None = None
    ) -> DCBSubscription[EpochalDCBRecorder]:
        """Events that match, above number `after`, and then those of later appends, as they come."""
        return EpochalDCBSubscription(self, query, after)

    def _appended(self, events: Sequence[DCBEvent], condition: DCBAppendCondition | None) -> int:
        stored = [tagged_as(each.type, each.data, each.tags, self._prefix) for each in events]
        expected: ExpectedVersion = ANY
        after = (condition and condition.after) or 0
        for _ in range(ATTEMPTS):
            if condition is not None:
                end, expected = self._end()
                if any(self._matching(condition.fail_if_events_match, after, end)):
                    raise IntegrityError(condition)
                after = max(after, end)
            match self._streams.try_append(self._log, stored, expected=expected):
                case Appended(version=last):
                    return last
                case Conflict():
                    continue
                case Undetermined():
                    raise OperationalError("a response was lost, and what would tell has been pruned since")
        raise OperationalError(f"overtaken by other writers at each of {ATTEMPTS} attempts")

    def _end(self) -> tuple[int, ExpectedVersion]:
        state = self._streams.load(self._log, fetch=False)
        return (0, NO_STREAM) if state is None else (state.version, state.token)

    def _sequenced(self, query: DCBQuery, after: int, end: int) -> Iterator[DCBSequencedEvent]:
        with as_the_library_has_them():
            for found in self._matching(query, after, end):
                event = DCBEvent(type=found.type, data=found.content, tags=tags_of(found, self._prefix))
                yield DCBSequencedEvent(event=event, position=found.index + 1)

    def _matching(self, query: DCBQuery, after: int, end: int) -> Iterator[Recorded]:
        """Those above number `after`, up to and with `end`, in order."""
        items = [
            QueryItem(types=frozenset(each.types), tags=frozenset(self._prefix + tag for tag in each.tags))
            for each in query.items or [DCBQueryItem()]
        ]
        wanted = Query(items=tuple(items))
        if after >= end:
            return iter(())
        if end - after > self._near and all(each.tags for each in items):
            return iter(self._by_tags(wanted, after, end))
        log = self._streams.read(self._log, start=after, limit=end - after)
        return (each for each in log if wanted.matches(each.type, each.tags))

    def _by_tags(self, query: Query, after: int, end: int) -> Sequence[Recorded]:
        for _ in range(ATTEMPTS):
            seen = self._streams.tagged.read(query)
            tags = [(f"{TAG_STREAMS}{tag}", reached.token) for tag, reached in seen.position.seen.items()]
            at_once = (dict(tags[at : at + BATCH_KEYS]) for at in range(0, len(tags), BATCH_KEYS))
            # A transaction that reads waits for those that write: whatever the log has shown is in its tags by now.
            looks = (self._streams.append_on(some, []) for some in at_once)
            if all(isinstance(look, dict) and not any(look.values()) for look in looks):
                # Their places grow with their numbers: the log is in each of their transactions.
                return [
                    each for each in seen.events if each.stream == self._log and after <= each.index < end
                ]
        raise OperationalError(f"overtaken by other writers at each of {ATTEMPTS} attempts")


class EpochalDCBSubscription(Polled[DCBSequencedEvent], DCBSubscription[EpochalDCBRecorder]):
    """Events as they come: read at once where this process appends, and every second for the sake of others."""

    def __init__(self, recorder: EpochalDCBRecorder, query: DCBQuery | None, after: int | None) -> None:
        super().__init__(recorder, query, after)
        self._inserts = recorder.inserts
        self._pending: Iterator[DCBSequencedEvent] = iter(())

    def stop(self) -> None:
        """End the iteration, also one that waits in another thread."""
        super().stop()
        self._inserts.add()

    def _more(self) -> Iterator[DCBSequencedEvent]:
        inserts = self._inserts.count
        found = self._recorder.read(self._query, after=self._last_position)
        if found.head is None or found.head <= self._last_position:
            self._inserts.wait(inserts)
            return iter(())
        self._last_position = found.head
        return found
