"""Dogs learn tricks: an application of the `eventsourcing` library's, as its own guide has it, and a process.

It names no store. `PERSISTENCE_MODULE` does: `eventsourcing.sqlite`, or `epochal.contrib.eventsourcing`.
"""

from __future__ import annotations

from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from eventsourcing.application import Application, ProcessingEvent
from eventsourcing.dispatch import singledispatchmethod
from eventsourcing.domain import Aggregate, event
from eventsourcing.system import ProcessApplication


class Dog(Aggregate):
    """A dog, and what it can do."""

    @event("Registered")
    def __init__(self, name: str) -> None:
        self.name = name
        self.tricks: list[str] = []

    @event("TrickAdded")
    def add_trick(self, trick: str) -> None:
        """It has learned one more."""
        self.tricks.append(trick)


class Dogs(Application[UUID]):
    """The dogs of a kennel. Every third version is a snapshot."""

    snapshotting_intervals = {Dog: 3}  # noqa: RUF012  the library's own way

    def register(self, name: str) -> UUID:
        """A dog is new."""
        dog = Dog(name)
        self.save(dog)
        return dog.id

    def teach(self, dog_id: UUID, *tricks: str) -> None:
        """It learns tricks."""
        dog: Dog = self.repository.get(dog_id)
        for trick in tricks:
            dog.add_trick(trick)
        self.save(dog)

    def dog(self, dog_id: UUID) -> Dog:
        """As it is now."""
        return self.repository.get(dog_id)


class Popularity(Aggregate):
    """How often a trick has been learned."""

    def __init__(self, trick: str) -> None:
        self.trick = trick
        self.count = 0

    @staticmethod
    def create_id(trick: str) -> UUID:
        """A trick has one."""
        return uuid5(NAMESPACE_URL, f"/tricks/{trick}")

    @event("Counted")
    def add(self) -> None:
        """Once more."""
        self.count += 1


class Tricks(ProcessApplication[UUID]):
    """Counts the tricks that `Dogs` tells of, each once."""

    @singledispatchmethod
    def policy(self, domain_event: Any, processing_event: ProcessingEvent[UUID]) -> None:
        """What is made of an event."""

    @policy.register
    def _(self, domain_event: Dog.TrickAdded, processing_event: ProcessingEvent[UUID]) -> None:  # type: ignore[name-defined]  # `@event` makes it
        found = Popularity.create_id(domain_event.trick)
        popularity = (
            self.repository.get(found) if found in self.repository else Popularity(domain_event.trick)
        )
        popularity.add()
        processing_event.collect_events(popularity)

    def count(self, trick: str) -> int:
        """How often it has been learned."""
        found = Popularity.create_id(trick)
        return self.repository.get(found).count if found in self.repository else 0
