"""Aggregates for the tools: copied from, and proven."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from epochal.contrib.event_store_adapter import AdapterOptions
from epochal.contrib.event_store_adapter.history import AggregateHistory
from epochal.contrib.event_store_adapter.model import AggregateEvent, AggregateId
from epochal.contrib.event_store_adapter.store import AggregateAppended, AggregateStore, opened
from epochal.copying.stream_copy import CopiedEvent, Original, Said, said_by
from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.layout.port import Span
from epochal.lazy_dataclasses import dataclass
from epochal.model.events import Claim, RecordedUnfold
from epochal.model.versions import ANY, NO_STREAM
from epochal.proving.proof import CATEGORY, ProofRun
from epochal.proving.store import KIND, NamedOverHttp, Outcome, ProofWriter, body, kept, outcome
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


def writers(proof: ProofRun, library: str, served: str) -> Iterator[ProofWriter]:
    """One aggregate by the library, and one over HTTP, which serves the types that the stage declares alone."""
    yield AggregateWriter("journal by the library", library, opened(proof.store))
    path = f"/aggregates/{CATEGORY}/{served.removeprefix(f'{CATEGORY}-')}"
    declared = proof.store.settings.of_plugin(AdapterOptions).aggregate_types
    missing = f"the API serves declared types alone: add {CATEGORY} to aggregate_types of the stage"
    left_out = "" if CATEGORY in declared else missing
    yield NamedOverHttp("journal over HTTP", served, proof, path, {"snapshot": {}}, left_out=left_out)


@dataclass
class AggregateWriter:
    """An aggregate."""

    label: str
    stream: str
    store: AggregateStore

    def _id(self) -> AggregateId:
        return AggregateId(type=CATEGORY, value=self.stream.removeprefix(f"{CATEGORY}-"))

    def at(self) -> Any:  # noqa: D102
        return self.store.lock(self._id()) or NO_STREAM

    def append(self, numbers: Sequence[int], *, at: Any = None, key: str | None = None) -> Outcome:  # noqa: D102
        events = [AggregateEvent(type=KIND, data=body(number)) for number in numbers]
        made = self.store.try_append(
            self._id(), events, snapshot=b"{}", expected=at or ANY, idempotency_key=key
        )
        replayed = isinstance(made, AggregateAppended) and made.replayed
        return outcome(made=isinstance(made, AggregateAppended), replayed=replayed)

    def read(self) -> list[int]:  # noqa: D102
        return [json.loads(event.data)["n"] for event in self.store.events_after(self._id(), 0)]

    def remove(self) -> str:  # noqa: D102
        return kept(self.stream)
