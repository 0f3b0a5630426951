"""Copies of single streams: existing events are compared, missing ones appended, and the appended ones read back.

    the copy does not exist     it is begun; if the original was pruned, as a stream that was pruned as far
    it has the first events     each is compared before anything is appended; then the rest is appended
    it has other events,        nothing is appended: two histories are never merged, and a copy that others write to
    or more events              has events of its own
    the original was deleted    a tombstone takes the name, unless the copy has events: nothing is removed
    removals are followed       on request: events that are gone from the original, and not in its archive, are
                                removed from the copy

The copy's own version tells how far it has got: every run appends at exactly that expected version, also beside another
run. A copy has the indices, types, bodies, times, tags, correlation and causation of the original, and its unfolds at
the version that they were made from. Timers that are set are marked, and do not fire in the copy
(`store.tagged_importer`).
If the target keeps no tags, streams with tags are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from epochal.codec.bodies import Encoded, decode
from epochal.contrib.transfer.copying.batches import batches
from epochal.contrib.transfer.copying.digests import CopiedEvent, Digest, Said, chosen_id, said_by
from epochal.contrib.transfer.copying.results import Ending, StreamCopy
from epochal.contrib.transfer.copying.sources import CopySource, Original, StreamSource
from epochal.contrib.transfer.rows import time_of
from epochal.errors import ConflictError, CorruptData, DeniedBody, EventsPruned, InvalidInput, MissingBody
from epochal.layout.streams import Batch, EncodedUnfold
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model import events as model
from epochal.model import stream_names
from epochal.model.bodies import Body, Claim
from epochal.model.events import RecordedUnfold
from epochal.model.expected_version import NO_STREAM, AtVersion, ExpectedVersion
from epochal.model.moments import format_ticks, from_unix_nanoseconds
from epochal.model.stream_names import no_step, stream_name
from epochal.store.encoding import store_unfolds
from epochal.store.streams import Streams, require_prunable_layout
from epochal.store.tagged_importer import marked

ATTEMPTS: Final = 3
"""Attempts at a stream. If another run copies it too, the next attempt continues behind the events appended there."""

_KEPT_FROM_COPYING: Final = (InvalidInput, CorruptData, MissingBody, DeniedBody, EventsPruned)
"""Errors that keep one stream from being copied, but no other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamCopier:
    """Copies single streams of a source to a store, under the same names.

    Attributes:
        source: source of the original streams
        target: store of the copies
        removals: whether to prune and delete in copies what was pruned and deleted in their originals
    """

    source: CopySource
    target: Streams
    removals: bool = False

    def planned(self, stream: str) -> StreamCopy:
        """Return what `copy` would do with a stream, without writing anything.

        Events that the copy has already are compared with the original; those that it lacks are not read.
        """
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
        """Append what a stream's copy lacks, or delete it if the original is; compare, and return the result.

        The result has the ending `refused` or `differs` where the stream cannot be copied.
        """
        for _ in range(ATTEMPTS):
            try:
                return self._copied(stream)
            except ConflictError:
                continue
            except _KEPT_FROM_COPYING as error:
                return _refused(stream, str(error))
        return _refused(stream, "other writers keep appending to the copy")

    def _heads(self, stream: str) -> tuple[Original, Original | None]:
        """Read the heads of original and copy, the copy's None without one; raise if there is no original.

        Raises:
            InvalidInput: the name is not valid, or the original does not exist.
        """
        stream_name(stream)
        original = self.source.head(stream)
        if original is None:
            raise InvalidInput("stream", "does not exist")
        copy = StreamSource(self.target).head(stream)
        if copy is None:
            no_step(stream, "stream")
        return original, copy

    def _copied(self, stream: str) -> StreamCopy:
        """Bring a stream's copy up to date in one attempt; return the result, or raise if others append to it.

        Raises:
            ConflictError: others appended to the copy meanwhile.
            EpochalError: the stream cannot be copied, or the store cannot be reached.
        """
        original, copy = self._heads(stream)
        why = _in_the_way(original, copy, removals=self.removals)
        if why:
            return _refused(stream, why)
        if original.deleted:
            return self._ended(stream, original, copy)
        copying = _Copying(self, stream, original, copy)
        if copy is None and original.first:
            copying.copy = self.begun(stream, original.first, copying.unfolds_before(original.first))
        result = copying.run()
        if self.removals and result.sound and copy is not None and copy.first < original.first:
            self._prune(stream, original.first)
        return result

    def _prune(self, stream: str, before: int) -> None:
        """Prune a copy below an index, as far as its archive, if it has one, has taken the events in."""
        pruned = self.target.archive_and_prune(stream, before)
        while pruned is not None and not pruned.done:
            pruned = self.target.archive_and_prune(stream, before)

    def begun(self, stream: str, index: int, unfolds: tuple[EncodedUnfold, ...] = ()) -> Original | None:
        """Begin an empty stream whose first event will have the index `index`, and return its head.

        Args:
            stream: name of the stream
            index: index of the first event that will be appended; those below count as pruned
            unfolds: unfolds of a version below `index`

        Raises:
            InvalidInput: the target's layout has no streams that begin with a later event.
        """
        target = self.target
        etag, append_id, now = target.fresh(16).hex(), target.fresh(16), from_unix_nanoseconds(target.now())
        batch = Batch(stream=stream, events=(), unfolds=unfolds, etag=etag, append_id=append_id, now=now)
        layout = require_prunable_layout(target.layout, "copied from a later event on")
        target.driver.run(layout.begin_pruned(target.table, batch, index))
        return StreamSource(target).head(stream)

    def _ended(self, stream: str, original: Original, copy: Original | None) -> StreamCopy:
        """Delete the copy of a deleted stream, or leave a tombstone if there is none, and return the result."""
        if copy is None:
            copy = self.begun(stream, original.version)
        expected = AtVersion(version=original.version if copy is None else copy.version)
        self.target.delete(stream, expected=expected)
        return StreamCopy(stream=stream, ending="tombstone", version=original.version)


@dataclass(slots=True)
class _Copying:
    """Copying of one stream, from the heads that were read.

    Attributes:
        copier: copier with source and target
        stream: name of the stream
        original: head of the original
        copy: head of the copy; None where it does not exist
    """

    copier: StreamCopier
    stream: str
    original: Original
    copy: Original | None

    def planned(self) -> StreamCopy:
        """Compare the events that the copy has, and return what a copy would do, without writing anything."""
        ours, _, other = self._compared()
        if other is not None:
            return other
        unfolds, _ = self._unfolds()
        missing = self.original.version - (self.original.first if self.copy is None else self.copy.version)
        ending: Ending = "copied" if missing or unfolds is not None else "unchanged"
        return self._result(ending, copied=missing, events=ours.events)

    def run(self) -> StreamCopy:
        """Compare the events of the copy, append those that it lacks, read these back, and return the result.

        Raises:
            ConflictError: others appended to the copy meanwhile.
        """
        next_index = 0 if self.copy is None else self.copy.version
        ours, theirs, other = self._compared()
        if other is not None:
            return other
        wrote = self._append(next_index, ours)
        for copied in self._copies(next_index, self.original.version):
            theirs.add(copied)
        if (ours.events, ours.hex()) != (theirs.events, theirs.hex()):
            return self._result("differs", why="the appended events read back differently")
        return self._result(
            "copied" if wrote else "unchanged",
            copied=self.original.version - next_index,
            events=ours.events,
            digest=ours.hex(),
        )

    def _compared(self) -> tuple[Digest, Digest, StreamCopy | None]:
        """Compare the events that both have; return two digests, and the result if they differ, else None.

        Returns:
            The digest of the original's events, that of the copy's, and the result `differs` if an event or the
            unfolds are not the same; otherwise None.
        """
        next_index = 0 if self.copy is None else self.copy.version
        first = self.original.first if self.copy is None else max(self.original.first, self.copy.first)
        ours, theirs = Digest(self.copier.source.said), Digest(said_by(self.copier.target.codec))
        unfolds, made_from = self._unfolds()
        if unfolds is not None and made_from < next_index:
            why = f"its unfolds have version {made_from} and can no longer be added"
            return ours, theirs, self._result("differs", why=why)
        for event, copied in zip(
            self._events(first, next_index), self._copies(first, next_index), strict=True
        ):
            if ours.add(event) != theirs.add(copied):
                why = f"event {event.index} has different contents; nothing was added"
                return ours, theirs, self._result("differs", why=why)
        return ours, theirs, None

    def unfolds_before(self, index: int) -> tuple[EncodedUnfold, ...]:
        """Return the original's unfolds in stored form if their version is below `index`, and none otherwise."""
        unfolds, made_from = self._unfolds()
        if unfolds is None or made_from >= index:
            return ()
        target = self.copier.target
        now = format_ticks(from_unix_nanoseconds(target.now()))
        return tuple(
            replace(stored_unfold, version=made_from)
            for stored_unfold in store_unfolds(unfolds, now, target.codec)
        )

    def _result(self, ending: Ending, **figures: Any) -> StreamCopy:
        """Make the result of the copy, with the original's version and first event."""
        version, first = self.original.version, self.original.first
        return StreamCopy(stream=self.stream, ending=ending, version=version, first=first, **figures)

    def _append(self, version: int, digest: Digest) -> bool:
        """Append the original's events from index `version` on, and the unfolds; return whether it wrote any.

        The unfolds go out with the events up to the version that they were made from.

        Args:
            version: version of the copy
            digest: digest to which the events are added

        Raises:
            ConflictError: others appended to the copy meanwhile.
        """
        unfolds, made_from = self._unfolds()
        expected: ExpectedVersion = NO_STREAM if self.copy is None else AtVersion(version=version)
        wrote = False
        if unfolds is not None and made_from == version:
            expected = self._write((), unfolds, expected)
            wrote = True
        for batch in batches(_add_to_digest(self._events(version, self.original.version), digest), made_from):
            ends = batch[-1].index + 1
            expected = self._write(batch, unfolds if ends == made_from else None, expected)
            wrote = True
        return wrote

    def _write(
        self, events: Sequence[CopiedEvent], unfolds: Sequence[model.Unfold] | None, expected: ExpectedVersion
    ) -> ExpectedVersion:
        """Append events and unfolds to the copy, and return its new version token."""
        new = [self._event(event) for event in events]
        return self.copier.target.append(self.stream, new, unfolds=unfolds, expected=expected).token

    def _unfolds(self) -> tuple[tuple[model.Unfold, ...] | None, int]:
        """Return all of the original's unfolds, None if the copy has the same, and the version they are of.

        Raises:
            InvalidInput: the original's unfolds are of several versions.
        """
        original_unfolds, copied_unfolds = (
            self.original.unfolds,
            () if self.copy is None else self.copy.unfolds,
        )
        versions = {unfold.version for unfold in original_unfolds}
        if len(versions) > 1:
            raise InvalidInput("unfolds", "must all have the same version; another library wrote several")
        made_from = versions.pop() if versions else self.original.version
        if _same(
            original_unfolds, self.copier.source.said, copied_unfolds, said_by(self.copier.target.codec)
        ):
            return None, made_from
        return tuple(map(self._unfold, original_unfolds)), made_from

    def _event(self, event: CopiedEvent) -> model.Event:
        """Convert an event of the original to an event that the target can append, with timers marked."""
        return marked(
            model.Event(
                type=event.type,
                data=self._read(event.data) if event.type in stream_names.TIMERS else self._body(event.data),
                meta=self._body(event.meta),
                timestamp=format_ticks(time_of(event.timestamp)),
                correlation_id=event.correlation_id,
                causation_id=event.causation_id,
                tags=event.tags,
                id=chosen_id(event),
            )
        )

    def _unfold(self, unfold: RecordedUnfold) -> model.Unfold:
        """Convert an unfold of the original to one that the target can append."""
        return model.Unfold(
            type=unfold.type,
            data=self._body(unfold.data),
            meta=self._body(unfold.meta),
            timestamp=format_ticks(time_of(unfold.timestamp)) if unfold.timestamp else None,
        )

    def _body(self, body: Body) -> Body:
        """Return a body unchanged, after copying it to the target's bucket if it lies in the source's.

        A body that is in the target's bucket already is not copied.

        Raises:
            InvalidInput: the body is in a bucket, and the target has none.
        """
        if isinstance(body, Claim):
            bodies = self.copier.target.codec.bodies
            if bodies is None:
                raise InvalidInput("bucket", f"must be given: the body {body.key} is stored in a bucket")
            if not bodies.keep(body):
                bodies.put(body, self.copier.source.content(body))
        return body

    def _read(self, body: Body) -> Body:
        """Fetch and decode a body in a bucket. An append looks into the bodies of timers."""
        if not isinstance(body, Claim):
            return body
        return decode(Encoded(body.encoding, self.copier.source.content(body)))

    def _events(self, first: int, end: int) -> Iterator[CopiedEvent]:
        """Yield events `first` to `end - 1` of the original."""
        return self.copier.source.events(self.stream, first, end) if first < end else iter(())

    def _copies(self, first: int, end: int) -> Iterator[CopiedEvent]:
        """Yield events `first` to `end - 1` of the copy."""
        return StreamSource(self.copier.target).events(self.stream, first, end) if first < end else iter(())


def _add_to_digest(events: Iterable[CopiedEvent], digest: Digest) -> Iterator[CopiedEvent]:
    """Yield events, adding each to a digest."""
    for event in events:
        digest.add(event)
        yield event


def _in_the_way(original: Original, copy: Original | None, *, removals: bool) -> str:
    """Return the reason why nothing may be added to a copy; empty if there is none.

    Args:
        original: head of the original
        copy: head of the copy; None where it does not exist
        removals: whether removals of the original are followed in the copy
    """
    if copy is None:
        return ""
    if original.deleted:
        followed = copy.empty or (removals and copy.version <= original.version)
        return (
            ""
            if followed
            else "was deleted, but its copy was not: delete the copy too if it is no longer needed"
        )
    if copy.deleted:
        return "its copy was deleted and takes no more events"
    if copy.version > original.version:
        return f"its copy is ahead, at version {copy.version}: it has events that the original does not have"
    if copy.version < original.first:
        return f"events {copy.version} to {original.first - 1} were pruned before they were copied"
    if copy.first == copy.version > original.first:
        return "its copy has no events left to compare with the original"
    return ""


def _same(
    ours: Sequence[RecordedUnfold], said: Said, theirs: Sequence[RecordedUnfold], said_there: Said
) -> bool:
    """Whether two streams have the same unfolds."""
    return [_shown(event, said) for event in ours] == [_shown(event, said_there) for event in theirs]


def _shown(unfold: RecordedUnfold, said: Said) -> tuple[int, str, bytes, bytes]:
    """Return what must be the same in an unfold and its copy.

    The time is left out, since an aggregate's snapshot has none.
    """
    return unfold.version, unfold.type, said(unfold.data), said(unfold.meta)


def _refused(stream: str, why: str) -> StreamCopy:
    """Make the result of a stream that was refused, with the reason."""
    return StreamCopy(stream=stream, ending="refused", why=why)


# Sources of copies: named streams of any layout, and streams of plug-ins, all read through the same protocol.
