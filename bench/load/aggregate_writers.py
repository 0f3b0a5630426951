"""A writer of aggregates. They have no idempotency key: where an append was sent twice, a refusal may be of our own."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus

from bench.load.api import Answer, Api
from bench.load.ledger import Ledger, Sample
from bench.load.measures import Lag
from bench.load.samples import document, written

TYPE = "order"
SNAPSHOTS = 0.3
"""Of appends bring a new snapshot."""


def path(aggregate: str) -> str:
    """Return the path of an aggregate by its name in the feed."""
    return f"/aggregates/{TYPE}/{aggregate.removeprefix(f'{TYPE}-')}"


@dataclass(slots=True, kw_only=True)
class AggregateWriter:
    """Appends at the version that it knows, to aggregates that others write to as well, named as in the feed."""

    name: str
    api: Api
    ledger: Ledger
    lag: Lag
    aggregates: Sequence[str]
    luck: random.Random
    _etags: dict[str, str] = field(default_factory=dict)

    def step(self) -> None:
        """Make one append, whatever its result."""
        aggregate = self.luck.choice(self.aggregates)
        etag = self._etags.get(aggregate) or self._load(aggregate)
        events = [document(self.luck) for _ in range(self.luck.choice((1, 1, 2, 4)))]
        body: dict[str, object] = {"events": list(map(written, events))}
        if not etag or self.luck.random() < SNAPSHOTS:
            body["snapshot"] = {"by": self.name, "n": self.luck.random()}
        answer = self.api(
            "aggregate: append",
            "POST",
            f"{path(aggregate)}/events",
            body=body,
            headers={"If-Match": etag} if etag else {"If-None-Match": "*"},
        )
        self._note(aggregate, events, answer)

    def _load(self, aggregate: str) -> str:
        return self.api("aggregate: read", "GET", path(aggregate)).etag

    def _note(self, aggregate: str, events: Sequence[Sample], answer: Answer) -> None:
        self._etags[aggregate] = answer.etag
        match answer.status:
            case HTTPStatus.CREATED:
                first = answer.json["first"] - 1
                self.ledger.acknowledged(aggregate, self.name, events, first)
                self.lag.acknowledged(aggregate, first + len(events) - 1)
            case HTTPStatus.PRECONDITION_FAILED if answer.tries == 1:
                self.ledger.refused(aggregate, events)
                self.ledger.conflicted()
            case 0 | HTTPStatus.PRECONDITION_FAILED | HTTPStatus.SERVICE_UNAVAILABLE:
                self.ledger.unanswered(aggregate, events)
            case _:
                self.ledger.unanswered(aggregate, events)
                self.ledger.note(f"{aggregate}: an append was answered {answer}")
