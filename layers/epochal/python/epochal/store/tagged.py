"""Tagged events as pages: a tag is a stream, an append to several tags one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from epochal.codec.bodies import DIRECT, Encoded, encode_claim
from epochal.errors import InvalidInput
from epochal.layout.pages.streams import COMPRESS_FROM, Pages
from epochal.layout.pages.tags.append import TaggedBatch, append, events_by_id
from epochal.layout.pages.tags.entries import TagStreams, reserved_tags, stream_of
from epochal.layout.pages.tags.reading import PageReads, events_between, heads_of
from epochal.layout.queries import Condition, Fence
from epochal.layout.streams import Also, TaggedStreams
from epochal.model.events import Body, Claim, Event, Recorded
from epochal.model.kinds import must_be_texts
from epochal.model.tags import EVERYTHING, check_type, type_tag
from epochal.model.times import format_ticks, from_unix_nanoseconds
from epochal.model.versions import Appended, Conflict, Position, Reached, Token
from epochal.plan.ops import PlacedName, Steps
from epochal.settings import Settings
from epochal.store.driver import Driver
from epochal.store.encoding import EVENTS_INLINE, BodyCodec
from epochal.store.seals import Seals
from epochal.store.streams import Streams
from epochal.store.tagged_store import MAX_FIELD_BYTES, TaggedStore

if TYPE_CHECKING:
    from epochal.store.importing import TaggedImporter
    from epochal.store.listings import TaggedListings


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedEvents(TaggedStore):
    """Tagged events in a table of pages.

    Attributes, besides those of any store of them:
        site: the table, and of which types there are streams.
        codec: where large bodies are.
        archive: a table of what was pruned of the named streams beside them; empty where there is none.
    """

    site: TagStreams
    codec: BodyCodec = field(default_factory=BodyCodec)
    archive: str = ""

    def __post_init__(self) -> None:
        if self.driver.place is not None:
            placed = PlacedName(self.site.table, self.driver.place)
            object.__setattr__(self, "site", replace(self.site, table=placed))

    def checked(self, event: Event, field: str) -> Event:
        """An event whose fields keep the rules; raises `InvalidInput` with `field` otherwise."""
        return super(TaggedEvents, self).checked(event.plain(field), field)

    def events(self, ids: Sequence[str]) -> dict[str, Recorded]:
        """Events by ids that their callers chose, at most 100; those that never were are missing.

        An id that the store chose is in its event, and nowhere else.
        """
        must_be_texts(ids, MAX_FIELD_BYTES, "ids")
        found = self.driver.run(events_by_id(self.site, ids))
        return {event.id: event for event in self.whole(tuple(found.values()))}

    def between(self, tag: str, first: int, end: int, *, fetch: bool = True) -> tuple[Recorded, ...]:
        """A tag's events by their index in it, from `first` to `end - 1`, as far as there are any."""
        found = self.driver.run(events_between(self.site, tag, first, end))
        return replace(self, fetch=fetch).whole(found)

    @property
    def streams(self) -> Streams:
        """The named streams of this table. Their events may carry tags, and are then among these."""
        named = Streams(
            driver=self.driver,
            table=self.site.table,
            layout=Pages(dictionaries=True),
            codec=replace(self.codec, compress_from=0),
            types=tuple(
                head.removeprefix(type_tag("")) for head in self.site.type_heads if head != EVERYTHING
            ),
            everything=EVERYTHING in self.site.type_heads,
            now=self.now,
            fresh=self.fresh,
        )
        return replace(named, archive=replace(named, table=self.archive)) if self.archive else named

    def count(self, tag: str) -> int:
        """How many events a tag has."""
        return self.counts([tag])[tag]

    def _settled(self, ids: Sequence[str]) -> dict[str, Recorded]:
        return self.events(ids)

    def counts(self, tags: Sequence[str]) -> dict[str, int]:
        """How many events each tag has."""
        heads = self.driver.run(heads_of(self.site, list(tags)))
        return {tag: 0 if head is None else head.version for tag, head in heads.items()}

    def sealed(self, position: Position, *, writes: bool) -> Position:
        """With a seal at each token of a full page."""
        seals = Seals(
            driver=self.driver, table=self.site.table, now=self.now, fresh=self.fresh if writes else None
        )
        return _with_tokens(position, seals.sealed)

    def believed(self, position: Position) -> Position:
        """Its tokens are believed where their seals are right."""
        seals = Seals(driver=self.driver, table=self.site.table, now=self.now)
        return _with_tokens(position, seals.believed)

    def whole(self, events: tuple[Recorded, ...]) -> tuple[Recorded, ...]:
        """Events with their large bodies, which are fetched from the bucket unless `fetch` is off."""
        return tuple(map(self._fetched, events)) if self.fetch else events

    @property
    def type_heads(self) -> frozenset[str]:
        """The types that have a stream, so that a query may name them without a tag."""
        return self.site.type_heads

    @property
    def listings(self) -> TaggedListings:
        """Lists events by tag or in order of time, tags and their counts."""
        from epochal.store.listings import TaggedListings  # noqa: PLC0415  appends do without

        return TaggedListings(store=self)

    @property
    def importer(self) -> TaggedImporter:
        """Appends a history that happened elsewhere, with its ids and times."""
        from epochal.store.importing import TaggedImporter  # noqa: PLC0415  rare

        return TaggedImporter(store=self)

    def batch(self, events: Sequence[Event]) -> TaggedBatch:
        """Events that have been checked, as one append of now."""
        bodies = [body for event in events for body in (event.data, event.meta)]
        there = [body for body in bodies if isinstance(body, bytes)]
        packed = (
            list(map(_plain, there))
            if self.codec.bodies is None and len(there) == len(bodies)
            else self.codec.pack(bodies, EVENTS_INLINE, "events")
        )
        now = from_unix_nanoseconds(self.now())
        return TaggedBatch(
            events=tuple(events),
            bodies=tuple(zip(packed[::2], packed[1::2], strict=True)),
            now=now,
            dated=format_ticks(now) in {event.timestamp for event in events},
            append_id=self.fresh(16),
            etag=self.fresh(16).hex(),
        )

    def _append(
        self, events: Sequence[Event], condition: Condition | None, also: Also
    ) -> Steps[Appended | Conflict]:
        batch = self.batch(events)
        if also:
            from epochal.also import checked, digest  # noqa: PLC0415  few appends have anything with them

            batch = replace(batch, also=checked(also, (self.site.table,)), beside=digest(also)[:8])
        return append(self.site, batch, condition)

    def _reads(self, fenced: Fence) -> PageReads:
        return PageReads(site=self.site, fenced=fenced)

    def _fetched(self, event: Recorded) -> Recorded:
        data, meta = event.data, event.meta
        if not isinstance(data, Claim) and not isinstance(meta, Claim):
            return event
        return replace(event, data=self._body(data), meta=self._body(meta))

    def _body(self, body: Body) -> Body:
        return self.codec.unpack([encode_claim(body)])[0] if isinstance(body, Claim) else body


def tagged_of(settings: Settings, driver: Driver, codec: BodyCodec) -> TaggedEvents:
    """The tagged events of a deployment, in its table of streams."""
    return TaggedEvents(
        driver=driver,
        site=site_of(settings.table("streams"), settings.tagged_types, everything=settings.tagged_everything),
        codec=replace(codec, compress_from=COMPRESS_FROM),
        archive=settings.streams_archive_table,
    )


def site_of(table: str, types: Sequence[str], *, everything: bool) -> TagStreams:
    """A table, with the reserved tags that have streams there."""
    checked = [check_type(kind, "types") for kind in types]
    return TagStreams(table=table, type_heads=reserved_tags(checked, everything=everything))


def beside(streams: Streams) -> TaggedEvents:
    """The tagged events of the table of named streams. Raises `InvalidInput` where their layout has no tags."""
    if not isinstance(streams.layout, TaggedStreams):
        raise InvalidInput("tagged", f"needs streams that are stored as pages, not as {streams.layout.name}")
    return TaggedEvents(
        driver=streams.driver,
        site=site_of(streams.table, streams.types, everything=streams.everything),
        codec=replace(streams.codec, compress_from=COMPRESS_FROM),
        archive="" if streams.archive is None else streams.archive.table,
        now=streams.now,
        fresh=streams.fresh,
    )


def _with_tokens(position: Position, change: Callable[[str, Token], Token]) -> Position:
    def changed(tags: Mapping[str, Reached]) -> dict[str, Reached]:
        return {
            tag: reached
            if (token := reached.token) is None
            else replace(reached, token=change(stream_of(tag), token))
            for tag, reached in tags.items()
        }

    return replace(position, seen=changed(position.seen), heads=changed(position.heads))


def _plain(body: bytes) -> Encoded:
    """Bodies of an append are compressed together."""
    return Encoded(DIRECT, body)
