"""The store of tagged events in the pages layout: each tag is a stream, and an append is one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Self

from epochal.codec.bodies import DIRECT, Encoded, encode_claim
from epochal.errors import InvalidInput
from epochal.layout.queries import AppendCondition, Fence, fence
from epochal.layout.streams import Also, TaggedStreams
from epochal.layout.tag_streams import TagStreams
from epochal.layout.tagged_batch import TaggedBatch
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.bodies import Body, Claim
from epochal.model.events import Event, Recorded
from epochal.model.kinds import must_be_texts
from epochal.model.moments import format_ticks, from_unix_nanoseconds
from epochal.model.outcomes import Appended, Conflict
from epochal.model.positions import Position, Reached
from epochal.model.tags import Query, check_type
from epochal.model.tokens import Token
from epochal.pages.tags.append import append
from epochal.pages.tags.entries import reserved_tags, stream_of
from epochal.pages.tags.ids import events_by_id
from epochal.pages.tags.reading import PageReads, events_between, heads_of
from epochal.plan.tables import PlacedName
from epochal.store.encoding import EVENTS_INLINE, BodyCodec, named
from epochal.store.queueing import Key, QueuePlace
from epochal.store.seals import Seals
from epochal.store.tag_turns import ends_left, keys_of, leave_ends, tags_of
from epochal.store.tagged import MAX_FIELD_BYTES, TaggedStore

if TYPE_CHECKING:
    from epochal.store.streams import Streams


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedEvents(TaggedStore):
    """The store of tagged events in a table of streams (the layout `pages`).

    Attributes:
        site: the table, and the reserved tags that have streams there.
        codec: codec of event bodies, which knows the bucket for large bodies.
        named: the store of the named streams of this table, with the archive of their pruned events.
    """

    site: TagStreams
    named: Streams
    codec: BodyCodec = field(default_factory=BodyCodec)

    def __post_init__(self) -> None:
        if self.driver.place is not None:
            placed = PlacedName(self.site.table, self.driver.place)
            object.__setattr__(self, "site", replace(self.site, table=placed))

    def normalize_event(self, event: Event, field: str) -> Event:
        """Check an event before an append; return it as a plain `Event`, with id and timestamp as stored.

        Args:
            event: event to append.
            field: name of the argument that holds the event, for error messages.

        Raises:
            InvalidInput: names what is malformed below `field`.
        """
        return super(TaggedEvents, self).normalize_event(event.without_foreign_fields(field), field)  # noqa: UP008  slots

    def events(self, ids: Sequence[str]) -> dict[str, Recorded]:
        """Return events by ids that their callers chose, at most 100; ids without an event are missing.

        An id that the store chose is stored in its event alone, so events are not found by it.
        """
        must_be_texts(ids, MAX_FIELD_BYTES, "ids")
        stored = self.driver.run(events_by_id(self.site, ids))
        return {event.id: event for event in self.whole(tuple(stored.values()))}

    def with_body_limit(self, largest: int) -> Self:
        """Return a copy of the store whose reads leave out the bodies of events with one over `largest` bytes."""
        return replace(self, site=replace(self.site, largest=largest))

    def between(self, tag: str, first: int, end: int, *, fetch: bool = True) -> tuple[Recorded, ...]:
        """Return the events of a tag by their index in the tag, from `first` to `end - 1`, if they exist.

        Args:
            tag: the tag.
            first: index in the tag of the first event, from 0.
            end: index after the last event.
            fetch: False leaves bodies that lie in the bucket as claims.
        """
        entries = self.driver.run(events_between(self.site, tag, first, end))
        return replace(self, fetch=fetch).whole(entries)

    @property
    def streams(self) -> Streams:
        """The store of the named streams of this table, whose events may carry tags; with the same driver."""
        ours = partial(replace, driver=self.driver, now=self.now, fresh=self.fresh)
        archive = self.named.archive
        return ours(self.named, archive=None if archive is None else ours(archive))

    def count(self, tag: str) -> int:
        """Return the number of events of a tag.

        Args:
            tag: the tag.
        """
        return self.counts([tag])[tag]

    def counts(self, tags: Sequence[str]) -> dict[str, int]:
        """Return the number of events of each tag."""
        heads = self.driver.run(heads_of(self.site, list(tags)))
        return {tag: 0 if head is None else head.version for tag, head in heads.items()}

    def seal_position(self, position: Position, *, writes: bool) -> Position:
        """Return the position, to be given to a client, with a signature (seal) at each token of a full page.

        Args:
            writes: whether a missing key for seals may be put.
        """
        return _with_tokens(position, Seals.of(self.streams, writes=writes).seal_token)

    def verify_seals(self, position: Position) -> Position:
        """Return a client's position with the tokens that have valid signatures (seals) marked as trusted."""
        return _with_tokens(position, Seals.of(self.streams, writes=False).verify_token)

    def whole(self, events: tuple[Recorded, ...]) -> tuple[Recorded, ...]:
        """Return the events with their large bodies fetched from the bucket; unchanged if `fetch` is off."""
        return tuple(map(self._fetched, events)) if self.fetch else events

    @property
    def type_heads(self) -> frozenset[str]:
        """Reserved tags of the event types, or of all events, that a query may ask for without a tag."""
        return self.site.type_heads

    def queues_of(self, query: Query) -> Sequence[Key]:
        """Return keys of this process's queues, one for each tag that an append on the query checks.

        Args:
            query: query of the decisions.
        """
        return keys_of(self.site.table, fence(query, type_heads=self.type_heads).all_tags)

    def batch(self, events: Sequence[Event]) -> TaggedBatch:
        """Encode checked events as a batch for one append at the present time.

        Args:
            events: events that `checked` has returned.
        """
        bodies = [body for event in events for body in (event.data, event.meta)]
        inline = [body for body in bodies if isinstance(body, bytes)]
        packed = (
            list(map(_plain, inline))
            if self.codec.bodies is None and len(inline) == len(bodies)
            else self.codec.pack(bodies, EVENTS_INLINE, "events")
        )
        now = from_unix_nanoseconds(self.now())
        return TaggedBatch(
            events=tuple(events),
            bodies=tuple(zip(map(named, events, packed[::2]), packed[1::2], strict=True)),
            now=now,
            dated=format_ticks(now) in {event.timestamp for event in events},
            append_id=self.fresh(16),
            etag=self.fresh(16).hex(),
        )

    def _turn(self, events: Sequence[Event], condition: AppendCondition | None) -> QueuePlace:
        """Return the place of an append in the queues of its tags."""
        tags = tags_of(self.site, events, condition)
        return QueuePlace(self.driver, *keys_of(self.site.table, tags), inner=True)

    def _append(
        self, events: Sequence[Event], condition: AppendCondition | None, also: Also, place: QueuePlace
    ) -> Appended | Conflict:
        """Append checked events using the tag ends that callers left; leave the new ones; return the outcome."""
        batch = self.batch(events)
        if ends := ends_left(self.site.table, place):
            batch = replace(batch, ends=ends)
        if also:
            from epochal.store.also import digest, validate_writes  # noqa: PLC0415  few appends have anything with them

            batch = replace(batch, also=validate_writes(also, (self.site.table,)), beside=digest(also)[:8])
        place.write()
        outcome = self.driver.run(append(self.site, batch, condition))
        leave_ends(self.site.table, place, outcome)
        return outcome

    def _reads(self, fenced: Fence) -> PageReads:
        return PageReads(site=self.site, fenced=fenced)

    def _fetched(self, event: Recorded) -> Recorded:
        """Return an event with the bodies that lie in the bucket fetched."""
        data, meta = event.data, event.meta
        if not isinstance(data, Claim) and not isinstance(meta, Claim):
            return event
        return replace(event, data=self._body(data), meta=self._body(meta))

    def _body(self, body: Body) -> Body:
        return self.codec.unpack([encode_claim(body)])[0] if isinstance(body, Claim) else body


def site_of(table: str, types: Sequence[str], *, everything: bool) -> TagStreams:
    """Make the description of a table with the reserved tags that have streams there.

    Args:
        types: event types that have a stream each.
        everything: whether there is a stream of all tagged events.
    """
    checked = [check_type(kind, "types") for kind in types]
    return TagStreams(table=table, type_heads=reserved_tags(checked, everything=everything))


def tagged_events_of(streams: Streams) -> TaggedEvents:
    """Open the tagged events in the table of named streams.

    Raises:
        InvalidInput: the layout of the streams has no tags.
    """
    if not isinstance(streams.layout, TaggedStreams):
        raise InvalidInput("tagged", f"needs streams with the layout pages, not {streams.layout.name}")
    return TaggedEvents(
        driver=streams.driver,
        site=site_of(streams.table, streams.types, everything=streams.everything),
        codec=streams.codec,
        named=streams,
        now=streams.now,
        fresh=streams.fresh,
    )


def _with_tokens(position: Position, change: Callable[[str, Token], Token]) -> Position:
    """Return a position with each token of its tags changed by a function of stream and token."""

    def changed(tags: Mapping[str, Reached]) -> dict[str, Reached]:
        """Return reached points by tag with their tokens changed."""
        return {
            tag: reached
            if (token := reached.token) is None
            else replace(reached, token=change(stream_of(tag), token))
            for tag, reached in tags.items()
        }

    return replace(position, seen=changed(position.seen), heads=changed(position.heads))


def _plain(body: bytes) -> Encoded:
    """Leave a body uncompressed, since the bodies of an append are compressed together."""
    return Encoded(DIRECT, body)
