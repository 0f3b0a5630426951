"""Aggregates for `epochal prove`: one by the library, and one over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from epochal.contrib.event_store_adapter import AdapterOptions
from epochal.contrib.event_store_adapter.ids import AggregateId
from epochal.contrib.event_store_adapter.model import AggregateEvent
from epochal.contrib.event_store_adapter.outcomes import AggregateAppended
from epochal.contrib.event_store_adapter.store import AggregateStore, opened
from epochal.contrib.proving.proof import CATEGORY, ProofRun
from epochal.contrib.proving.writers import KIND, NamedOverHttp, Outcome, ProofWriter, body, kept, outcome
from epochal.lazy_dataclasses import dataclass
from epochal.model.expected_version import ANY, NO_STREAM


def open_writers(proof: ProofRun, library: str, served: str) -> Iterator[ProofWriter]:
    """Yield the writers of `epochal prove`: one aggregate by the library, and one over HTTP.

    The API serves only the types that the stage declares: the writer over HTTP is left out if its type is not declared.
    """
    yield AggregateWriter("journal by the library", library, opened(proof.store))
    path = f"/aggregates/{CATEGORY}/{served.removeprefix(f'{CATEGORY}-')}"
    declared = proof.store.settings.of_plugin(AdapterOptions).aggregate_types
    missing = f"the API serves only declared types: add {CATEGORY} to aggregate_types of the stage"
    left_out = "" if CATEGORY in declared else missing
    yield NamedOverHttp("journal over HTTP", served, proof, path, {"snapshot": {}}, left_out=left_out)


@dataclass
class AggregateWriter:
    """Writer of one aggregate by the library, for `epochal prove`."""

    label: str
    stream: str
    store: AggregateStore

    def _id(self) -> AggregateId:
        return AggregateId(type=CATEGORY, value=self.stream.removeprefix(f"{CATEGORY}-"))

    def at(self) -> Any:  # noqa: D102
        return self.store.lock(self._id()) or NO_STREAM

    def append(self, numbers: Sequence[int], *, state: Any = None, key: str | None = None) -> Outcome:  # noqa: D102
        events = [AggregateEvent(type=KIND, data=body(number)) for number in numbers]
        appended = self.store.try_append(
            self._id(), events, snapshot=b"{}", expected=state or ANY, idempotency_key=key
        )
        replayed = isinstance(appended, AggregateAppended) and appended.replayed
        return outcome(applied=isinstance(appended, AggregateAppended), replayed=replayed)

    def read(self) -> list[int]:  # noqa: D102
        return [json.loads(event.data)["n"] for event in self.store.events_after(self._id(), 0)]

    def remove(self) -> str:  # noqa: D102
        return kept(self.stream)
