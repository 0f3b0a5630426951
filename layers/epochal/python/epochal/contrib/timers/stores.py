"""Timers of a store: set by themselves, cancelled, and listed. `epochal.scheduling` has the events that they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, overload

from epochal.codec.bodies import encode_claim
from epochal.errors import Contended, CorruptData, MissingBody
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.bodies import Claim
from epochal.model.events import Event, Recorded
from epochal.model.expected_version import ANY, ExpectedVersion
from epochal.model.kinds import must_be
from epochal.model.outcomes import Appended, Conflict
from epochal.model.stream_names import TIMERS
from epochal.model.tag_answers import Seen
from epochal.scheduling import At, Fold, LostSetting, Timer, cancel, later, query_of, timer_name
from epochal.store.encoding import BodyCodec
from epochal.store.outcomes import append_error
from epochal.store.streams import Streams
from epochal.store.tagged import TaggedStore

ATTEMPTS: Final = 10
"""Maximum number of attempts to call a timer off while other writers append to its stream."""


@overload
def timers_of(store: Streams) -> StreamTimers: ...


@overload
def timers_of(store: TaggedStore) -> TagTimers: ...


def timers_of(store: Streams | TaggedStore) -> StreamTimers | TagTimers:
    """Return the timers of a store of streams or of tagged events, to set, cancel and list them.

    Args:
        store: store of streams, or of tagged events.

    Raises:
        InvalidInput: the store is of another kind.
    """
    must_be((Streams, TaggedStore), store, "store", "streams or tagged events")
    return StreamTimers(store=store) if isinstance(store, Streams) else TagTimers(store=store)


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingTimers:
    """The pending timers of a scope, and its state, on which a conditional append can be based.

    Attributes:
        pending: timers that are pending.
        known: token of the state: of the stream's head, or the position after the last event with the tags. None if
            the stream is not there.
        lost: settings whose bodies are missing from the bucket. Such a timer alone stops, until its body is back, its
            name is cancelled or set anew, or a `$timer-fired` event names it.
    """

    pending: tuple[Timer, ...] = ()
    known: Any = None
    lost: tuple[LostSetting, ...] = ()


def pending_in(
    store: Streams,
    stream: str,
    first: int = 0,
    seen: PendingTimers = PendingTimers(),  # noqa: B008  frozen
    refused: Conflict | None = None,
    *,
    consistent: bool = True,
) -> PendingTimers:
    """Return a stream's pending timers set at index `first` or later, with the state to append on.

    If a setting was pruned and is in no archive, it is gone, and so are the settings before it, which may have ended
    in the events that were removed. The settings after it are not affected.

    Args:
        seen: an earlier answer, after which only newer events are read.
        refused: conflict that refused an append based on that answer.
        consistent: False for eventually consistent reads, at half the cost. The answer may be out of date; a
            conditional append based on it is refused then.
    """
    if consistent:
        head = store.newest(stream, refused, whole=first == 0)
    else:
        head = store.head(stream, whole=first == 0, consistent=False)
    if head is None or head.deleted:
        return PendingTimers()
    token = head.token()
    if refused is not None and refused.token is not None:
        token = replace(token, refused=refused.token.refused)
    if seen.known is None or head.low_water >= seen.known.version:  # the stream was emptied since
        seen = PendingTimers()
    start = first if seen.known is None else seen.known.version
    fold = Fold(seen.pending, seen.lost)
    for event in store.reader(fetch=False).onward(head, start, "forward") if start < head.version else ():
        if not isinstance(event, Recorded):
            fold = Fold()
        elif event.type in TIMERS:
            _apply_event(fold, event, store.codec)
    return PendingTimers(pending=fold.pending, known=token, lost=tuple(fold.lost.values()))


def pending_under(store: TaggedStore, seen: PendingTimers, came: Seen) -> PendingTimers:
    """Return the pending timers of an earlier read under tags, updated by the events read since.

    Args:
        seen: the earlier answer.
        came: events that were read after it.
    """
    fold = Fold(seen.pending, seen.lost)
    for event in sorted(came.events, key=lambda stored: stored.key):
        if not event.stream:
            _apply_event(fold, event, getattr(store, "codec", BodyCodec()))
    return PendingTimers(pending=fold.pending, known=came.position, lost=tuple(fold.lost.values()))


def _apply_event(timers: Fold, event: Recorded, codec: BodyCodec) -> None:
    """Apply one more timer event to a fold; ignore it if malformed, note the setting if its body is lost."""
    try:
        timers.take(_with_body(event, codec))
    except MissingBody as error:
        timers.lose(event, error)
    except CorruptData:  # appended by a writer that ignores the format of timers
        return


def _with_body(event: Recorded, codec: BodyCodec) -> Recorded:
    """Return a timer's event with its body, read from the bucket if it is there."""
    if not isinstance(event.data, Claim):
        return event
    return replace(event, data=codec.unpack([encode_claim(event.data)])[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTimers:
    """Timers of streams: sets and cancels them, and lists those that are pending.

    Attributes:
        store: the store of streams.
    """

    store: Streams

    def pending(self, stream: str) -> tuple[Timer, ...]:
        """Return the pending timers of a stream in order of their due times. The whole stream is read.

        A program's own waker can use this to know when to wake.

        Args:
            stream: name of the stream.
        """
        return pending_in(self.store, stream).pending

    def schedule(
        self,
        stream: str,
        name: str,
        events: Sequence[Event],
        *,
        at: At,
        expected: ExpectedVersion = ANY,
        idempotency_key: str | None = None,
    ) -> Appended:
        """Set a timer in a stream by an append of its own, and return the result of that append.

        To set a timer together with the events that it follows from, pass `later(…)` to `append` among these.

        Args:
            stream: name of the stream.
            name, events, at: name, events and due time of the timer, as for `later`. The other arguments are those of
                `append`.
            expected, idempotency_key: as for `Streams.append`.

        Raises:
            EpochalError: as `append` does.
        """
        setting = later(name, events, at=at)
        return self.store.append(stream, [setting], expected=expected, idempotency_key=idempotency_key)

    def cancel(self, stream: str, name: str) -> Timer | None:
        """Cancel the pending timer of this name, so that it never fires; return it, or None if none is there.

        None means that no timer of the name is pending: it has fired, or was never set. It can also mean that the
        timer was cancelled, but its body is missing from the bucket. The whole stream is read. `append` with
        `cancel(…)` does the same without reading, and does not say whether there was a timer.

        Args:
            stream: name of the stream.
            name: name of the timer.

        Raises:
            Contended: other writers were faster at every attempt.
            OutcomeUndetermined, Unavailable: as `append` does.
        """
        pending = PendingTimers()
        refused: Conflict | None = None
        for _ in range(ATTEMPTS):
            pending = pending_in(self.store, stream, seen=pending, refused=refused)
            timer = _named(name, pending.pending)
            if timer is None and not _lost(name, pending, stream):
                return None
            outcome = self.store.try_append(stream, [cancel(name)], expected=pending.known)
            if isinstance(outcome, Appended):
                return timer
            if not isinstance(outcome, Conflict):
                raise append_error(stream, outcome, pending.known)
            refused = outcome
        raise Contended(stream, ATTEMPTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class TagTimers:
    """Timers of tags: sets and cancels them, and lists those that are pending.

    Each timer belongs to exactly the tags of its setting, and to no stream.

    Attributes:
        store: the store of tagged events.
    """

    store: TaggedStore

    def pending(self, tags: Sequence[str]) -> tuple[Timer, ...]:
        """Return the pending timers that have at least these tags, in order of their due times.

        Args:
            tags: tags that the timers have; they may have others.
        """
        store = replace(self.store, fetch=False)
        return pending_under(store, PendingTimers(), store.read(query_of(tags))).pending

    def schedule(
        self,
        tags: Sequence[str],
        name: str,
        events: Sequence[Event],
        *,
        at: At,
        idempotency_key: str | None = None,
    ) -> Appended:
        """Set a timer under these tags by an append of its own, and return the result of that append.

        Args:
            tags: tags of the timer, in any order.
            name, events, at: name, events and due time of the timer, as for `later`.
            idempotency_key: as for `TaggedEvents.append`.

        Raises:
            EpochalError: as `append` does.
        """
        return self.store.append([later(name, events, at=at, tags=tags)], idempotency_key=idempotency_key)

    def cancel(self, tags: Sequence[str], name: str) -> Timer | None:
        """Cancel the pending timer of this name and exactly these tags; return it, or None if none is there.

        None means that no timer of the name is pending, or that its body is missing from the bucket; in the second
        case it is cancelled as well.

        Args:
            tags: all tags of the timer, in any order.
            name: name of the timer.

        Raises:
            Contended: other writers were faster at every attempt.
        """
        query, own = query_of(tags), tuple(sorted(set(tags)))
        store, pending = replace(self.store, fetch=False), PendingTimers()
        for _ in range(ATTEMPTS):
            pending = pending_under(store, pending, store.read(query, after=pending.known))
            timer = _named(
                name, (pending_timer for pending_timer in pending.pending if pending_timer.tags == own)
            )
            if timer is None and not _lost(name, pending, own):
                return None
            off = cancel(name, tags=own)
            if isinstance(self.store.try_append([off], fail_if=query, after=pending.known), Appended):
                return timer
        raise Contended(f"timers of {', '.join(own)}", ATTEMPTS)


def _lost(name: str, seen: PendingTimers, scope: str | tuple[str, ...]) -> bool:
    """Whether the setting of a timer has lost its body, by the timer's name and its stream or tags."""
    return any((timer.name, timer.scope) == (name, scope) for timer in seen.lost)


def _named(name: str, timers: Iterable[Timer]) -> Timer | None:
    """Return the timer with a name among `timers`, or None; raise `InvalidInput` if the name is malformed.

    Raises:
        InvalidInput: a timer cannot have such a name.
    """
    timer_name(name)
    return next((timer for timer in timers if timer.name == name), None)
