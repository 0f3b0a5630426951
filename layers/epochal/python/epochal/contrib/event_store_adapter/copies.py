"""Aggregates as what streams are copied from (`transfer.copying`)."""

from __future__ import annotations

from collections.abc import Iterator

from epochal.contrib.event_store_adapter.history import AggregateHistory
from epochal.contrib.event_store_adapter.store import AggregateStore, opened
from epochal.contrib.transfer.copying.stream_copy import CopiedEvent, Original, Said, said_by
from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.layout.port import Span
from epochal.lazy_dataclasses import dataclass
from epochal.model.events import Claim, RecordedUnfold
from epochal.store.encoding import BodyCodec


@dataclass(frozen=True, slots=True)
class AggregateSource:
    """Aggregates, whose ids are the names of the streams that they become.

    Attributes:
        snapshots: the type of the unfold that a snapshot becomes; empty to leave snapshots behind.
    """

    store: AggregateStore
    snapshots: str = ""

    @property
    def layout(self) -> str:
        """How they are stored."""
        return AggregateHistory.name

    @property
    def said(self) -> Said:
        """Nothing of an aggregate is in a bucket."""
        return said_by(BodyCodec())

    def head(self, stream: str) -> Original | None:
        """The aggregate's head."""
        aggregate = self.store.site.types.read(stream)
        snapshot = None if aggregate is None else self.store.latest_snapshot(aggregate)
        if snapshot is None:
            return None
        unfold = RecordedUnfold(
            version=snapshot.seq_nr, type=self.snapshots, data=snapshot.data, meta=b"", timestamp=""
        )
        return Original(version=snapshot.lock.seq_nr, unfolds=(unfold,) if self.snapshots else ())

    def events(self, stream: str, first: int, end: int) -> Iterator[CopiedEvent]:
        """Events, by their numbers less 1."""
        for event in AggregateHistory(self.store).events()(stream, first, end):
            if event.fault is not None:
                raise event.fault
            yield event

    def elsewhere(self, span: Span) -> bool:  # noqa: ARG002  as other sources have it
        """Each is its own."""
        return False

    def content(self, claim: Claim) -> bytes:
        """There are no claims."""
        raise InvalidInput("bucket", f"the body {claim.key} is no aggregate's")


def copied(deployment: Deployment, snapshots: str) -> AggregateSource:
    """What aggregates of a deployment are copied from."""
    return AggregateSource(opened(deployment), snapshots=snapshots)
