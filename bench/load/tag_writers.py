"""A writer of tagged events: on the condition that a course has no events but those it has seen, or on none.

Who has seen n events of a tag, and may append only if there are no others, appends the n-th: so every conditional
append says at which index its event must stand, and the feed shows whether it does.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from bench.load.api import Answer, Api
from bench.load.ledger import Ledger, Sample
from bench.load.measures import Lag
from bench.load.samples import document, written

UNCONDITIONAL = 0.15


@dataclass(frozen=True, slots=True)
class Seen:
    """A position, and the number of events that were read up to it."""

    position: str
    events: int


@dataclass(slots=True, kw_only=True)
class TagWriter:
    """Appends events with the tags of a course and of a student.

    Attributes:
        courses: tags that others write to, and that conditions query.
        students: tags that only this writer writes to.
    """

    name: str
    api: Api
    ledger: Ledger
    lag: Lag
    courses: Sequence[str]
    students: Sequence[str]
    luck: random.Random
    _seen: dict[str, Seen] = field(default_factory=dict)

    def step(self) -> None:
        """Make one append, whatever its result."""
        course, student = self.luck.choice(self.courses), self.luck.choice(self.students)
        events = [document(self.luck) for _ in range(self.luck.choice((1, 1, 2)))]
        body: dict[str, Any] = {"events": [self._event(event, [course, student]) for event in events]}
        seen = None if self.luck.random() < UNCONDITIONAL else self._standing(course)
        if seen is not None:
            body |= {"failIf": _asking(course), "after": seen.position}
        answer = self.api("tagged: append", "POST", "/dcb/events", body=body)
        match answer.status:
            case HTTPStatus.CREATED:
                self._made(course, student, events, answer, seen)
            case HTTPStatus.CONFLICT if seen is not None:
                self._refused((course, student), events, answer, seen)
            case _:
                self._unanswered((course, student), events, answer)

    def _event(self, event: Sample, tags: list[str]) -> dict[str, Any]:
        own = uuid.UUID(int=self.luck.getrandbits(128), version=4)
        return {**written(event), "tags": tags, "id": str(own)}

    def _standing(self, course: str) -> Seen | None:
        """Return the position in a course, read if it is unknown; None if it cannot be read now."""
        if course in self._seen:
            return self._seen[course]
        body: dict[str, Any] = {"query": _asking(course)}
        count = 0
        while True:
            answer = self.api("tagged: read", "POST", "/dcb/query", body=body)
            if answer.status != HTTPStatus.OK:
                return None
            page = answer.json
            count += len(page["events"])
            if page["next"] is None:
                return Seen(page["position"], count)
            body["from"] = page["next"]

    def _made(
        self, course: str, student: str, events: Sequence[Sample], answer: Answer, seen: Seen | None
    ) -> None:
        self.ledger.acknowledged(student, self.name, events, None)
        self.ledger.acknowledged(course, self.name, events, None if seen is None else seen.events)
        if seen is None:
            return
        reached = seen.events + len(events)
        self.lag.acknowledged(course, reached - 1)
        if answer.json["replayed"]:
            # An earlier try had made it, and the position of this answer is before its events.
            self._seen.pop(course, None)
        else:
            self._seen[course] = Seen(answer.json["position"], reached)

    def _refused(self, tags: Sequence[str], events: Sequence[Sample], answer: Answer, seen: Seen) -> None:
        for tag in tags:
            self.ledger.refused(tag, events)
        self.ledger.conflicted()
        page = answer.json
        self._seen[tags[0]] = Seen(page["position"], seen.events + len(page["events"]))

    def _unanswered(self, tags: Sequence[str], events: Sequence[Sample], answer: Answer) -> None:
        for tag in tags:
            self.ledger.unanswered(tag, events)
        self._seen.pop(tags[0], None)
        if answer.status not in (0, HTTPStatus.SERVICE_UNAVAILABLE):
            self.ledger.note(f"{tags[0]}: an append was answered {answer}")


def _asking(tag: str) -> dict[str, Any]:
    return {"items": [{"tags": [tag]}]}
