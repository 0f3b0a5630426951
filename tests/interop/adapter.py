"""Talking to `adapter.cjs`: the original library in a process of its own, a JSON line for each call."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from epochal.contrib.event_store_adapter.ids import AggregateId


class OptimisticLock(Exception):
    """The library's OptimisticLockError."""


class Adapter:
    """event-store-adapter-js on the given tables."""

    def __init__(self, package: Path, endpoint: str, journal: str, snapshot: str, shards: int) -> None:
        self._process = subprocess.Popen(
            ["node", str(package / "adapter.cjs"), endpoint, journal, snapshot, str(shards)],
            cwd=package,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def create(self, aggregate: AggregateId, number: int) -> None:
        """Its first event, with a snapshot."""
        self._persist(aggregate, number, seq_nr=1, version=1, created=True, snapshot=True)

    def persist(
        self, aggregate: AggregateId, number: int, *, seq_nr: int, version: int, snapshot: bool = False
    ) -> None:
        """A later event. Raises `OptimisticLock` where the version is not `version`."""
        self._persist(aggregate, number, seq_nr=seq_nr, version=version, created=False, snapshot=snapshot)

    def snapshot(self, aggregate: AggregateId) -> dict[str, Any] | None:
        """Its idea of the latest snapshot."""
        found: dict[str, Any] | None = self._call("getLatestSnapshotById", id=_id(aggregate))
        return found

    def numbers(self, aggregate: AggregateId, since: int = 1) -> list[int]:
        """What its replay of the events carries."""
        events = self._call("getEventsByIdSinceSequenceNumber", id=_id(aggregate), sequenceNumber=since)
        return [event["number"] for event in events]

    def consumed(self) -> float:
        """Capacity units of all its requests so far."""
        return float(self._call("consumed"))

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=120)
        self._process.stdout.close()

    def _persist(
        self, aggregate: AggregateId, number: int, *, seq_nr: int, version: int, created: bool, snapshot: bool
    ) -> None:
        event = {
            "id": f"event-{number}",
            "typeName": "Renamed",
            "aggregateId": _id(aggregate),
            "sequenceNumber": seq_nr,
            "occurredAt": "2023-06-29T03:32:37.404Z",
            "isCreated": created,
            "number": number,
        }
        if not snapshot:
            self._call("persistEvent", event=event, version=version)
            return
        state = {
            "id": _id(aggregate),
            "typeName": aggregate.type,
            "sequenceNumber": seq_nr,
            "version": version,
            "number": number,
        }
        self._call("persistEventAndSnapshot", event=event, aggregate=state)

    def _call(self, call: str, **arguments: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"call": call, **arguments}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if answer.get("error") == "OptimisticLockError":
            raise OptimisticLock(answer["message"])
        assert "error" not in answer, answer
        return answer["result"]


def _id(aggregate: AggregateId) -> dict[str, str]:
    return {"typeName": aggregate.type, "value": aggregate.value}
