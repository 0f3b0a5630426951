"""Copying one stream: what the copy has is compared, what it lacks is appended, and what was appended is read back.

    the copy is not there       it is begun; where the original was pruned, as one that was pruned likewise
    it has the first events     each is compared before anything is added; then the rest follows
    it has other events,        nothing is added: two histories are never merged, and a copy that people write to
    or more of them             has events of its own
    the original was deleted    a tombstone takes the name, unless the copy has events: nothing is removed
    removals are followed       where that is asked for: what is gone of the original, and in no archive of it, goes of
                                the copy

How far it has got, the copy's own version says: whoever goes on, also beside another who copies, appends on exactly
that. A copy has the indices, types, bodies, times, tags, correlation and causation of the original, and its unfolds at
the version that they were made from. Timers that are set are marked, and do not fire in the copy (`copying.timers`).
Where the target keeps no tags, streams with tags are refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Literal, Protocol

from epochal.codec.bodies import DIRECT, Encoded, decode, encode_claim
from epochal.contrib.transfer.rows import time_of
from epochal.errors import ConflictError, CorruptData, DeniedBody, EventsPruned, InvalidInput, MissingBody
from epochal.feed.history import FeedEvent
from epochal.layout.port import Span
from epochal.layout.streams import Batch, EncodedUnfold, Head
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model import events as model
from epochal.model.events import (
    TAG_STREAMS,
    Body,
    Claim,
    RecordedUnfold,
    content_of,
    format_ticks,
    from_unix_nanoseconds,
    no_step,
    stream_name,
)
from epochal.model.versions import NO_STREAM, AtVersion, ExpectedVersion
from epochal.store.encoding import BodyCodec, recorded_unfolds, store_unfolds
from epochal.store.streams import Streams, prunable
from epochal.store.tagged_importer import marked, unmarked

ATTEMPTS: Final = 3
"""Where somebody else copies too, the next attempt goes on behind what that one has appended."""

_KEPT_FROM_COPYING: Final = (InvalidInput, CorruptData, MissingBody, DeniedBody, EventsPruned)
"""What keeps one stream from being copied, and no other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamCopier:
    """Copies streams of a source to a store, under their names.

    Attributes:
        removals: prune and delete in copies what was in their originals.
    """

    source: CopySource
    target: Streams
    removals: bool = False

    def planned(self, stream: str) -> StreamCopy:
        """What `copy` would do: what the copy has is compared, what it lacks is not read, and nothing is written."""
        try:
            original, copy = self._heads(stream)
            why = _in_the_way(original, copy, removals=self.removals)
            if why:
                return _refused(stream, why)
            if original.deleted:
                return StreamCopy(stream=stream, ending="tombstone", version=original.version)
            return _Copying(self, stream, original, copy).planned()
        except _KEPT_FROM_COPYING as error:
            return _refused(stream, str(error))

    def copy(self, stream: str) -> StreamCopy:
        """Copy what the copy lacks, and compare all of both."""
        for _ in range(ATTEMPTS):
            try:
                return self._copied(stream)
            except ConflictError:
                continue
            except _KEPT_FROM_COPYING as error:
                return _refused(stream, str(error))
        return _refused(stream, "others append to the copy meanwhile")

    def _heads(self, stream: str) -> tuple[Original, Original | None]:
        stream_name(stream)
        original = self.source.head(stream)
        if original is None:
            raise InvalidInput("stream", "there is none of that name")
        copy = StreamSource(self.target).head(stream)
        if copy is None:
            no_step(stream, "stream")
        return original, copy

    def _copied(self, stream: str) -> StreamCopy:
        original, copy = self._heads(stream)
        why = _in_the_way(original, copy, removals=self.removals)
        if why:
            return _refused(stream, why)
        if original.deleted:
            return self._ended(stream, original, copy)
        copying = _Copying(self, stream, original, copy)
        if copy is None and original.first:
            copying.copy = self.begun(stream, original.first, copying.unfolds_before(original.first))
        done = copying.run()
        if self.removals and done.sound and copy is not None and copy.first < original.first:
            self._prune(stream, original.first)
        return done

    def _prune(self, stream: str, before: int) -> None:
        """Prune a copy, as far as its archive, if it has one, goes along."""
        done = self.target.archive_and_prune(stream, before)
        while done is not None and not done.done:
            done = self.target.archive_and_prune(stream, before)

    def begun(self, stream: str, index: int, unfolds: tuple[EncodedUnfold, ...] = ()) -> Original | None:
        """An empty stream whose first event will have that index, with unfolds that are of an earlier version."""
        target = self.target
        etag, append_id, now = target.fresh(16).hex(), target.fresh(16), from_unix_nanoseconds(target.now())
        batch = Batch(stream=stream, events=(), unfolds=unfolds, etag=etag, append_id=append_id, now=now)
        layout = prunable(target.layout, "copied from a later event on")
        target.driver.run(layout.begin_pruned(target.table, batch, index))
        return StreamSource(target).head(stream)

    def _ended(self, stream: str, original: Original, copy: Original | None) -> StreamCopy:
        if copy is None:
            copy = self.begun(stream, original.version)
        expected = AtVersion(version=original.version if copy is None else copy.version)
        self.target.delete(stream, expected=expected)
        return StreamCopy(stream=stream, ending="tombstone", version=original.version)


@dataclass(slots=True)
class _Copying:
    """One stream on its way.

    Attributes:
        copy: as it was found; None where it is not there.
    """

    copier: StreamCopier
    stream: str
    original: Original
    copy: Original | None

    def planned(self) -> StreamCopy:
        ours, _, other = self._compared()
        if other is not None:
            return other
        unfolds, _ = self._unfolds()
        missing = self.original.version - (self.original.first if self.copy is None else self.copy.version)
        ending: Ending = "copied" if missing or unfolds is not None else "unchanged"
        return self._result(ending, copied=missing, events=ours.events)

    def run(self) -> StreamCopy:
        at = 0 if self.copy is None else self.copy.version
        ours, theirs, other = self._compared()
        if other is not None:
            return other
        wrote = self._append(at, ours)
        for copied in self._copies(at, self.original.version):
            theirs.add(copied)
        if (ours.events, ours.hex()) != (theirs.events, theirs.hex()):
            return self._result("differs", why="what was appended reads otherwise")
        return self._result(
            "copied" if wrote else "unchanged",
            copied=self.original.version - at,
            events=ours.events,
            digest=ours.hex(),
        )

    def _compared(self) -> tuple[Digest, Digest, StreamCopy | None]:
        """What the original and the copy have in common; the third, where the copy has something else."""
        at = 0 if self.copy is None else self.copy.version
        first = self.original.first if self.copy is None else max(self.original.first, self.copy.first)
        ours, theirs = Digest(self.copier.source.said), Digest(said_by(self.copier.target.codec))
        unfolds, made_from = self._unfolds()
        if unfolds is not None and made_from < at:
            why = f"its unfolds, of version {made_from}, can no more be added"
            return ours, theirs, self._result("differs", why=why)
        for event, copied in zip(self._events(first, at), self._copies(first, at), strict=True):
            if ours.add(event) != theirs.add(copied):
                why = f"event {event.index} is another one; nothing was added"
                return ours, theirs, self._result("differs", why=why)
        return ours, theirs, None

    def unfolds_before(self, index: int) -> tuple[EncodedUnfold, ...]:
        """The original's unfolds, as they are stored, if they are of a version below `index`."""
        unfolds, made_from = self._unfolds()
        if unfolds is None or made_from >= index:
            return ()
        target = self.copier.target
        now = format_ticks(from_unix_nanoseconds(target.now()))
        return tuple(replace(each, version=made_from) for each in store_unfolds(unfolds, now, target.codec))

    def _result(self, ending: Ending, **figures: Any) -> StreamCopy:
        version, first = self.original.version, self.original.first
        return StreamCopy(stream=self.stream, ending=ending, version=version, first=first, **figures)

    def _append(self, at: int, digest: Digest) -> bool:
        """Append events from `at` on, and the unfolds where their version is; whether anything was written."""
        unfolds, made_from = self._unfolds()
        expected: ExpectedVersion = NO_STREAM if self.copy is None else AtVersion(version=at)
        wrote = False
        if unfolds is not None and made_from == at:
            expected = self._write((), unfolds, expected)
            wrote = True
        for batch in batches(_told(self._events(at, self.original.version), digest), made_from):
            ends = batch[-1].index + 1
            expected = self._write(batch, unfolds if ends == made_from else None, expected)
            wrote = True
        return wrote

    def _write(
        self, events: Sequence[CopiedEvent], unfolds: Sequence[model.Unfold] | None, expected: ExpectedVersion
    ) -> ExpectedVersion:
        new = [self._event(each) for each in events]
        return self.copier.target.append(self.stream, new, unfolds=unfolds, expected=expected).token

    def _unfolds(self) -> tuple[tuple[model.Unfold, ...] | None, int]:
        """Those that the copy lacks, None where it lacks none; and the version that they are of."""
        wanted, there = self.original.unfolds, () if self.copy is None else self.copy.unfolds
        versions = {each.version for each in wanted}
        if len(versions) > 1:
            raise InvalidInput("unfolds", "are of several versions, which another library has left")
        made_from = versions.pop() if versions else self.original.version
        if _same(wanted, self.copier.source.said, there, said_by(self.copier.target.codec)):
            return None, made_from
        return tuple(map(self._unfold, wanted)), made_from

    def _event(self, event: CopiedEvent) -> model.Event:
        return marked(
            model.Event(
                type=event.type,
                data=self._read(event.data) if event.type in model.TIMERS else self._body(event.data),
                meta=self._body(event.meta),
                timestamp=format_ticks(time_of(event.timestamp)),
                correlation_id=event.correlation_id,
                causation_id=event.causation_id,
                tags=event.tags,
                id=_id_of(event),
            )
        )

    def _unfold(self, unfold: RecordedUnfold) -> model.Unfold:
        return model.Unfold(
            type=unfold.type,
            data=self._body(unfold.data),
            meta=self._body(unfold.meta),
            timestamp=format_ticks(time_of(unfold.timestamp)) if unfold.timestamp else None,
        )

    def _body(self, body: Body) -> Body:
        """A body that the target can hold: what a claim names is copied to its bucket, if it is not there."""
        if isinstance(body, Claim):
            bodies = self.copier.target.codec.bodies
            if bodies is None:
                raise InvalidInput("bucket", f"must be given: the body {body.key} lies in one")
            if not bodies.keep(body):
                bodies.put(body, self.copier.source.content(body))
        return body

    def _read(self, body: Body) -> Body:
        """A body that an append looks into, as it does at those of timers."""
        if not isinstance(body, Claim):
            return body
        return decode(Encoded(body.encoding, self.copier.source.content(body)))

    def _events(self, first: int, end: int) -> Iterator[CopiedEvent]:
        return self.copier.source.events(self.stream, first, end) if first < end else iter(())

    def _copies(self, first: int, end: int) -> Iterator[CopiedEvent]:
        return StreamSource(self.copier.target).events(self.stream, first, end) if first < end else iter(())


def _told(events: Iterable[CopiedEvent], digest: Digest) -> Iterator[CopiedEvent]:
    for event in events:
        digest.add(event)
        yield event


def _in_the_way(original: Original, copy: Original | None, *, removals: bool) -> str:
    """Why nothing may be added to a copy; empty where nothing keeps it."""
    if copy is None:
        return ""
    if original.deleted:
        followed = copy.empty or (removals and copy.version <= original.version)
        return "" if followed else "was deleted, and its copy was not: delete that too, if it is to go"
    if copy.deleted:
        return "its copy was deleted, and takes no more events"
    if copy.version > original.version:
        return f"its copy is ahead, at version {copy.version}: it has events that the original has not"
    if copy.version < original.first:
        return f"events {copy.version} to {original.first - 1} were pruned before they were copied"
    if copy.first == copy.version > original.first:
        return "nothing is left of its copy by which to tell what it is of"
    return ""


def _same(
    ours: Sequence[RecordedUnfold], said: Said, theirs: Sequence[RecordedUnfold], said_there: Said
) -> bool:
    return [_shown(each, said) for each in ours] == [_shown(each, said_there) for each in theirs]


def _shown(unfold: RecordedUnfold, said: Said) -> tuple[int, str, bytes, bytes]:
    """What must be the same. Not its time: an aggregate's snapshot has none."""
    return unfold.version, unfold.type, said(unfold.data), said(unfold.meta)


def _refused(stream: str, why: str) -> StreamCopy:
    return StreamCopy(stream=stream, ending="refused", why=why)


# Which events of a stream are appended together. Pure.
#
# Few large appends cost least, as long as an item holds all their bodies: what does not fit is moved to the bucket,
# and the original had it in its items. Unfolds are of one version of the stream, so an append ends there.

EVENTS: Final = 500
TAGS: Final = 90
"""Of their tags, each is an item of a transaction of 100."""

BYTES: Final = 128 * 1024
"""Of bodies as they are, uncompressed: an item has 400 KB."""

_FIELDS: Final = 200
"""Bytes reckoned for what an event has besides its bodies."""


def batches(events: Iterable[CopiedEvent], cut: int | None = None) -> Iterator[tuple[CopiedEvent, ...]]:
    """Events in their order, together as they are appended; none goes beyond event `cut - 1` that begins before it."""
    batch: list[CopiedEvent] = []
    room, tags = BYTES, set[str]()
    for event in events:
        room -= _size(event)
        tags.update(event.tags)
        if batch and (room < 0 or len(batch) == EVENTS or len(tags) > TAGS or event.index == cut):
            yield tuple(batch)
            batch, room, tags = [], BYTES - _size(event), set(event.tags)
        batch.append(event)
    if batch:
        yield tuple(batch)


def _size(event: CopiedEvent) -> int:
    return _FIELDS + sum(map(_held, (event.data, event.meta)))


def _held(body: Body) -> int:
    return len(body) if isinstance(body, bytes) else 0


# What came of copying.

Ending = Literal["copied", "unchanged", "tombstone", "refused", "differs"]
"""`unchanged`: the copy had everything already. `tombstone`: the stream was deleted, and so is its copy. `refused`:
nothing more was copied, and `why` says what kept it. `differs`: the copy is not what the original is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamCopy:
    """A stream, and its copy.

    Attributes:
        version: of the original, when it was read.
        first: the first event that the original still has; those below are pruned.
        copied: events that were appended to the copy now.
        events: events that were compared.
        digest: of their contents, the same in both; empty where nothing was compared.
    """

    stream: str
    ending: Ending
    version: int = 0
    first: int = 0
    copied: int = 0
    events: int = 0
    digest: str = ""
    why: str = ""

    @property
    def sound(self) -> bool:
        """Whether the copy has what the original has."""
        return self.ending not in ("refused", "differs")


@dataclass(slots=True)
class Tally:
    """Sums over streams; those that are not sound are kept."""

    streams: int = 0
    copied: int = 0
    tombstones: int = 0
    pruned: int = 0
    unsound: list[StreamCopy] = field(default_factory=list)

    def add(self, each: StreamCopy) -> None:
        """Count one more."""
        self.streams += 1
        self.copied += each.copied
        self.tombstones += each.ending == "tombstone"
        self.pruned += each.first > 0 and each.ending != "tombstone"
        if not each.sound:
            self.unsound.append(each)


# What is copied: named streams of any layout, and what plug-ins have, read in the same way.


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """A stream, as it was read.

    Attributes:
        version: its next index.
        first: events below are pruned, and in no archive.
        unfolds: those stored, bodies in the bucket as claims.
    """

    version: int
    first: int = 0
    deleted: bool = False
    unfolds: tuple[RecordedUnfold, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether it holds nothing that could be lost."""
        return self.deleted or (self.first == self.version and not self.unfolds)


class CopySource(Protocol):
    """Where streams are copied from."""

    @property
    def layout(self) -> str:
        """As registered."""

    @property
    def said(self) -> Said:
        """Digests of its bodies."""

    def head(self, stream: str) -> Original | None:
        """A stream as it is now; None where there is none."""

    def events(self, stream: str, first: int, end: int) -> Iterator[CopiedEvent]:
        """Events `first` to `end - 1`, bodies in the bucket as claims. Raises where one is gone or cannot be read."""

    def elsewhere(self, span: Span) -> bool:
        """Whether all events of a span are in other streams, and copied with these."""

    def content(self, claim: Claim) -> bytes:
        """What the bucket holds of a body."""


@dataclass(frozen=True, slots=True)
class StreamSource:
    """Named streams."""

    store: Streams

    @property
    def layout(self) -> str:
        """How they are stored."""
        return self.store.layout.name

    @property
    def said(self) -> Said:
        """Digests of bodies in its bucket and in its items."""
        return said_by(self.store.codec)

    def head(self, stream: str) -> Original | None:
        """The stream's head. An archive has what is pruned; without one, the first event that is found is the first."""
        head = self.store.head(stream)
        if head is None:
            return None
        unfolds = recorded_unfolds(head.read_unfolds(), self.store.codec, fetch=False)
        first = 0 if head.deleted else self._first(head)
        return Original(version=head.version, first=first, deleted=head.deleted, unfolds=unfolds)

    def events(self, stream: str, first: int, end: int) -> Iterator[CopiedEvent]:
        """Events, and no hole between them. A stream that was deleted since its head was read has none."""
        at = first
        for event in self.store.reader(fetch=False).events(stream, first, end - first, "forward"):
            yield event
            at = event.index + 1
        if at < end:
            raise EventsPruned(stream, at, end)

    def elsewhere(self, span: Span) -> bool:
        """Events of a tag are where each has a home."""
        if not span.stream.startswith(TAG_STREAMS):
            return False
        tag = span.stream.removeprefix(TAG_STREAMS)
        found = self.store.tagged.between(tag, span.index, span.next, fetch=False)
        return all(event.stream for event in found)

    def content(self, claim: Claim) -> bytes:
        """An object of its bucket."""
        bodies = self.store.codec.bodies
        if bodies is None:
            raise InvalidInput("bucket", f"must be given: the body {claim.key} lies in one")
        return bodies.get(claim)

    def _first(self, head: Head) -> int:
        """Looked for by an item at a time: a read of the stream would take a megabyte of it."""
        store = self.store
        cursor = store.layout.stand(head, 0, forward=True)
        first = head.version
        while not cursor.at_end:
            part = store.driver.run(store.layout.advance(store.table, cursor, 1))
            if part.spans:
                first = part.spans[0].base
                break
            cursor = part.cursor
        archived = (
            StreamSource(store.archive).head(head.stream) if first and store.archive is not None else None
        )
        return archived.first if archived is not None and archived.version >= first else first


# What of an event must be the same in the copy, and a digest of it. Pure, but for bodies that are in a bucket.
#
# Layouts write times and bodies in forms of their own: times are compared to the 100 ns, bodies by what they say. An
# event's append id is not copied: it tells writes apart, and the copy is another write.

Said = Callable[..., bytes]
"""The SHA-256 of what a body says; that of a timer's setting, whether it is marked or not."""

CopiedEvent = model.Recorded | FeedEvent
"""An event of any layout, as it is stored or as the feed shows it."""


def said_by(codec: BodyCodec) -> Said:
    """The digest of a body. It is fetched only where its claim does not tell: where it is compressed in the bucket."""

    def said(body: Body, type_: str = "") -> bytes:
        sets = type_ == model.TIMER_SET
        if isinstance(body, Claim):
            if body.encoding == DIRECT and not sets:
                return bytes.fromhex(body.sha256)
            (body,) = codec.unpack([encode_claim(body)])
        content = content_of(body)
        return hashlib.sha256(unmarked(content) if sets else content).digest()

    return said


def _id_of(event: CopiedEvent) -> str | None:
    """The id that its caller chose; that of an event with tags is the store's."""
    return None if event.tags else event.id or None


@dataclass(slots=True)
class Digest:
    """A digest of the events of a stream, in their order."""

    said: Said
    events: int = 0
    _hash: hashlib._Hash = field(default_factory=hashlib.sha256)

    def add(self, event: CopiedEvent) -> bytes:
        """Take in the next event; what it adds, by which two events can be compared."""
        texts = (event.type, event.correlation_id, event.causation_id, *event.tags)
        texts += ("id", chosen) if (chosen := _id_of(event)) else ()
        parts = [
            f"{event.index} {time_of(event.timestamp)}".encode(),
            self.said(event.data, event.type),
            self.said(event.meta),
        ]
        parts += [b"-" if text is None else b"+" + text.encode() for text in texts]
        added = hashlib.sha256(b"".join(len(part).to_bytes(4, "big") + part for part in parts)).digest()
        self._hash.update(added)
        self.events += 1
        return added

    def hex(self) -> str:
        """64 hex digits."""
        return self._hash.hexdigest()
