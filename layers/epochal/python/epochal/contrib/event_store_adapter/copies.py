"""Aggregates as what streams are copied from (`transfer.copying`)."""

from __future__ import annotations

from collections.abc import Iterator

from epochal.contrib.event_store_adapter.history import AggregateHistory
from epochal.contrib.event_store_adapter.store import AggregateStore, opened
from epochal.contrib.transfer.copying.digests import CopiedEvent, Said, said_by
from epochal.contrib.transfer.copying.sources import Original
from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.layout.changes import Span
from epochal.lazy_dataclasses import dataclass
from epochal.model.bodies import Claim
from epochal.model.events import RecordedUnfold
from epochal.store.encoding import BodyCodec


@dataclass(frozen=True, slots=True)
class AggregateSource:
    """Aggregates as the original of a copy; their ids become the names of streams.

    Attributes:
        store: the store of aggregates.
        snapshots: type of the unfold that a snapshot becomes; empty to leave snapshots out of the copy.
    """

    store: AggregateStore
    snapshots: str = ""

    @property
    def layout(self) -> str:
        """Name of the layout in which aggregates are stored."""
        return AggregateHistory.name

    @property
    def said(self) -> Said:
        """Function that returns the digest of a body; no body of an aggregate is in a bucket."""
        return said_by(BodyCodec())

    def head(self, stream: str) -> Original | None:
        """Return an aggregate's head, with its snapshot as an unfold if wanted; None if it does not exist."""
        aggregate = self.store.site.types.read(stream)
        snapshot = None if aggregate is None else self.store.latest_snapshot(aggregate)
        if snapshot is None:
            return None
        unfold = RecordedUnfold(
            version=snapshot.seq_nr, type=self.snapshots, data=snapshot.data, meta=b"", timestamp=""
        )
        return Original(version=snapshot.lock.seq_nr, unfolds=(unfold,) if self.snapshots else ())

    def events(self, stream: str, first: int, end: int) -> Iterator[CopiedEvent]:
        """Yield events `first` to `end - 1` by index, which is their number less 1; raise their faults."""
        for event in AggregateHistory(self.store).events()(stream, first, end):
            if event.fault is not None:
                raise event.fault
            yield event

    def belongs_to_other_streams(self, span: Span) -> bool:  # noqa: ARG002  as other sources have it
        """Whether all events of a span are copied with other streams: never, as each is in one aggregate."""
        return False

    def content(self, claim: Claim) -> bytes:
        """Raise `InvalidInput`: an aggregate's event has no body in a bucket."""
        raise InvalidInput("bucket", f"the body {claim.key} does not belong to an aggregate")


def open_source(deployment: Deployment, snapshots: str) -> AggregateSource:
    """Make the source from which a deployment's aggregates are copied."""
    return AggregateSource(opened(deployment), snapshots=snapshots)
