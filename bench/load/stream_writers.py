"""A writer of named streams: some that all writers meet on, and some of its own."""

from __future__ import annotations

import random
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import quote

from bench.load.api import Answer, Api
from bench.load.ledger import Ledger, Sample
from bench.load.measures import Lag
from bench.load.samples import anything, written

CONTENDED = 0.6
"""Of appends go to streams that others write to as well."""

UNCONDITIONAL = 0.25
REPEATED = 0.03
"""Of answered appends are sent once more, and must be answered the same."""

LARGE = 0.003


@dataclass(slots=True, kw_only=True)
class StreamWriter:
    """Appends at the state that it knows, or at any.

    Attributes:
        shared: streams that others write to.
        own: streams that only this writer writes to, so that it never gets a conflict.
    """

    name: str
    api: Api
    ledger: Ledger
    lag: Lag
    shared: Sequence[str]
    own: Sequence[str]
    luck: random.Random
    _known: dict[str, tuple[str, int]] = field(default_factory=dict)

    def step(self) -> None:
        """Make one append, whatever its result."""
        private = self.luck.random() >= CONTENDED
        stream = self.luck.choice(self.own if private else self.shared)
        events = [anything(self.luck, large=LARGE) for _ in range(self.luck.choice((1, 1, 1, 2, 5)))]
        etag, expected = self._expecting(stream)
        headers = {"Idempotency-Key": uuid.UUID(int=self.luck.getrandbits(128)).hex}
        if expected is not None:
            headers |= {"If-Match": etag} if expected else {"If-None-Match": "*"}
        answer = self._send(stream, events, headers)
        match answer.status:
            case HTTPStatus.CREATED:
                self._made(stream, events, answer, expected)
                if self.luck.random() < REPEATED:
                    self._repeat(stream, events, headers, answer)
            case HTTPStatus.PRECONDITION_FAILED:
                self._refused(stream, events, answer, private=private)
            case _:
                self.ledger.unanswered(stream, events)
                self._known.pop(stream, None)
                if answer.status not in (0, HTTPStatus.SERVICE_UNAVAILABLE):
                    self.ledger.note(f"{stream}: an append was answered {answer}")

    def _expecting(self, stream: str) -> tuple[str, int | None]:
        """Return an ETag and its version: 0 if the stream must be new, None for any version."""
        if self.luck.random() < UNCONDITIONAL:
            return "", None
        if stream not in self._known:
            answer = self.api("stream: state", "GET", f"/streams/{quote(stream, safe='')}")
            version = answer.json["version"] if answer.status == HTTPStatus.OK else 0
            self._known[stream] = answer.etag, version
        return self._known[stream]

    def _send(self, stream: str, events: Sequence[Sample], headers: dict[str, str]) -> Answer:
        body = {"events": list(map(written, events))}
        path = f"/streams/{quote(stream, safe='')}/events"
        return self.api("stream: append", "POST", path, body=body, headers=headers)

    def _made(self, stream: str, events: Sequence[Sample], answer: Answer, expected: int | None) -> None:
        first, version = answer.json["first"], answer.json["version"]
        self.ledger.acknowledged(stream, self.name, events, first, expected)
        self.lag.acknowledged(stream, version - 1)
        self._known[stream] = answer.etag, version

    def _refused(self, stream: str, events: Sequence[Sample], answer: Answer, *, private: bool) -> None:
        self.ledger.refused(stream, events)
        self.ledger.conflicted()
        if private:
            self.ledger.note(f"{stream}: a conflict, where {self.name} writes alone")
        self._known[stream] = answer.etag, answer.json["version"]

    def _repeat(self, stream: str, events: Sequence[Sample], headers: dict[str, str], before: Answer) -> None:
        """Repeat an append with the same key, which must return the first response and write nothing."""
        again = self._send(stream, events, headers)
        same = again.status == HTTPStatus.CREATED and again.json["first"] == before.json["first"]
        if not (same and again.json["replayed"]):
            self.ledger.note(f"{stream}: an append sent again was answered {again}")
