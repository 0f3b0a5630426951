"""Timers of a store: set by themselves, called off, and listed. `epochal.scheduling` has the events that they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, overload

from epochal.codec.bodies import encode_claim
from epochal.errors import Contended, CorruptData, MissingBody
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.events import TIMERS, Claim, Event, Recorded
from epochal.model.kinds import must_be
from epochal.model.tags import Seen
from epochal.model.versions import ANY, Appended, Conflict, ExpectedVersion
from epochal.scheduling import At, Fold, LostSetting, Timer, call_off, later, query_of, timer_name
from epochal.store.encoding import BodyCodec
from epochal.store.outcomes import not_made
from epochal.store.streams import Streams
from epochal.store.tagged import TaggedStore

ATTEMPTS: Final = 10
"""To call a timer off, while others write to its stream."""


@overload
def timers_of(store: Streams) -> StreamTimers: ...


@overload
def timers_of(store: TaggedStore) -> TagTimers: ...


def timers_of(store: Streams | TaggedStore) -> StreamTimers | TagTimers:
    """The timers of streams, or of tags: sets them, calls them off, and says which are pending."""
    must_be((Streams, TaggedStore), store, "store", "streams or tagged events")
    return StreamTimers(store=store) if isinstance(store, Streams) else TagTimers(store=store)


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingTimers:
    """What is pending, and the state that says so, to append on.

    Attributes:
        lost: settings whose bodies are gone from the bucket. Each stops itself alone, until its body is back, its name
            is called off or set anew, or a `$timer-fired` names it.
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
    """What is pending in a stream, of what was set from an index on. A setting that was pruned, and is in no archive,
    is gone, and so is what was set before it, which may have ended where nothing is left; those behind it are not.

    Args:
        seen: what was found before, on which only what came since is read.
        refused: what an append on that was refused with.
        consistent: False costs half, and what is found may have been so: an append on it is refused then.
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
    if seen.known is None or head.low_water >= seen.known.version:  # emptied since
        seen = PendingTimers()
    start = first if seen.known is None else seen.known.version
    found = Fold(seen.pending, seen.lost)
    for event in store.reader(fetch=False).onward(head, start, "forward") if start < head.version else ():
        if not isinstance(event, Recorded):
            found = Fold()
        elif event.type in TIMERS:
            _take(found, event, store.codec)
    return PendingTimers(pending=found.pending, known=token, lost=tuple(found.lost.values()))


def pending_under(store: TaggedStore, seen: PendingTimers, came: Seen) -> PendingTimers:
    """What is pending under some tags, after what came since it was seen."""
    found = Fold(seen.pending, seen.lost)
    for event in sorted(came.events, key=lambda each: each.key):
        if not event.stream:
            _take(found, event, getattr(store, "codec", BodyCodec()))
    return PendingTimers(pending=found.pending, known=came.position, lost=tuple(found.lost.values()))


def _take(found: Fold, event: Recorded, codec: BodyCodec) -> None:
    """One more event, which may be malformed, or whose body may be gone: it stops itself alone."""
    try:
        found.take(_whole(event, codec))
    except MissingBody as error:
        found.lose(event, error)
    except CorruptData:  # a writer without these rules
        return


def _whole(event: Recorded, codec: BodyCodec) -> Recorded:
    """An event of a timer with its body. Those of others stay in the bucket."""
    if not isinstance(event.data, Claim):
        return event
    return replace(event, data=codec.unpack([encode_claim(event.data)])[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTimers:
    """The timers of streams."""

    store: Streams

    def pending(self, stream: str) -> tuple[Timer, ...]:
        """Those of a stream, by their due times: what a waker goes by. All of the stream is read."""
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
        """Set a timer by itself. With the events that it follows from, `append` takes `later(…)` among them.

        Args:
            name, events, at: as `later` has them; the others as `append` does, and what it raises.
        """
        setting = later(name, events, at=at)
        return self.store.append(stream, [setting], expected=expected, idempotency_key=idempotency_key)

    def cancel(self, stream: str, name: str) -> Timer | None:
        """Call a timer off: it never fires. None where none of the name is pending: it has fired, or never was; or
        where its body is gone, and nothing tells what it was.

        All of the stream is read. `append` takes `call_off(…)` without that, and does not tell.

        Raises:
            Contended: other writers were faster at every attempt.
            OutcomeUndetermined, Unavailable: as of `append`.
        """
        seen = PendingTimers()
        refused: Conflict | None = None
        for _ in range(ATTEMPTS):
            seen = pending_in(self.store, stream, seen=seen, refused=refused)
            timer = _named(name, seen.pending)
            if timer is None and not _lost(name, seen, stream):
                return None
            outcome = self.store.try_append(stream, [call_off(name)], expected=seen.known)
            if isinstance(outcome, Appended):
                return timer
            if not isinstance(outcome, Conflict):
                raise not_made(stream, outcome, seen.known)
            refused = outcome
        raise Contended(stream, ATTEMPTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class TagTimers:
    """The timers of tags. Each is of exactly the tags of its setting, and of no stream."""

    store: TaggedStore

    def pending(self, tags: Sequence[str]) -> tuple[Timer, ...]:
        """Those that have these tags, and perhaps others, by their due times."""
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
        """Set a timer by itself, as `later` has it; raises what `append` does."""
        return self.store.append([later(name, events, at=at, tags=tags)], idempotency_key=idempotency_key)

    def cancel(self, tags: Sequence[str], name: str) -> Timer | None:
        """Call off the timer of exactly these tags: it never fires. None where none of the name is pending.

        Raises:
            Contended: other writers were faster at every attempt.
        """
        query, own = query_of(tags), tuple(sorted(set(tags)))
        store, seen = replace(self.store, fetch=False), PendingTimers()
        for _ in range(ATTEMPTS):
            seen = pending_under(store, seen, store.read(query, after=seen.known))
            timer = _named(name, (each for each in seen.pending if each.tags == own))
            if timer is None and not _lost(name, seen, own):
                return None
            off = call_off(name, tags=own)
            if isinstance(self.store.try_append([off], fail_if=query, after=seen.known), Appended):
                return timer
        raise Contended(f"timers of {', '.join(own)}", ATTEMPTS)


def _lost(name: str, seen: PendingTimers, scope: str | tuple[str, ...]) -> bool:
    return any((each.name, each.scope) == (name, scope) for each in seen.lost)


def _named(name: str, timers: Iterable[Timer]) -> Timer | None:
    timer_name(name)
    return next((timer for timer in timers if timer.name == name), None)
