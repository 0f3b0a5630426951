"""Snapshots of aggregates whose events are sealed hold nothing in plain text, and are forgotten with the events."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from epochal.contrib.event_store_adapter import (
    AggregateDeciders,
    AggregateId,
    aggregate_id,
    every,
    json_state,
    memory_aggregates,
    sealed_state,
)
from epochal.contrib.subjects.sealing import Subjects, sealed_codec
from epochal.contrib.subjects.testing import memory_subjects
from epochal.deciders.codecs import json_codec
from epochal.deciders.on_streams import Decider
from epochal.layout.tables import store_tables
from epochal.testing.memory import MemoryTables

ADA = "Ada Lovelace"
USER = aggregate_id("user", "1")


@dataclass(frozen=True)
class Named:
    person: str
    name: str


@dataclass(frozen=True)
class Counted:
    by: int


Event = Named | Counted


@dataclass(frozen=True)
class User:
    person: str = ""
    names: tuple[str, ...] = ()
    count: int = 0


def evolve(user: User, event: Event) -> User:
    if isinstance(event, Counted):
        return replace(user, count=user.count + event.by)
    return replace(user, person=event.person, names=(*user.names, event.name))


@dataclass
class World:
    subjects: Subjects = field(default_factory=memory_subjects)
    tables: MemoryTables = field(
        default_factory=lambda: MemoryTables({spec.kind: spec for spec in store_tables()})
    )

    def __post_init__(self) -> None:
        self.deciders = AggregateDeciders(
            store=memory_aggregates(self.tables),
            decider=Decider[Event, User, Event](initial=User, evolve=evolve, decide=lambda event, _: [event]),
            codec=sealed_codec(
                json_codec(Named, Counted),
                self.subjects,
                subject_of=lambda event: event.person if isinstance(event, Named) else None,
                shredded=lambda _, gone: Named(gone.subject, "(forgotten)"),
            ),
            state=sealed_state(json_state(User), self.subjects, subject_of=lambda user: user.person or None),
            policy=every(1),
        )

    def decide(self, event: Event, aggregate: AggregateId = USER) -> User:
        return self.deciders.handle(aggregate, event)

    def stored(self) -> str:
        return "\n".join(repr(item) for spec in store_tables() for item in self.tables.items(spec.kind))


def test_a_snapshot_holds_nothing_of_a_person_in_plain_text() -> None:
    world = World()
    world.decide(Named("ada", ADA))
    world.decide(Counted(2))
    assert ADA not in world.stored()
    assert world.deciders.load(USER).state == User("ada", (ADA,), 2)


def test_after_forgetting_the_state_is_made_from_the_events() -> None:
    world = World()
    world.decide(Named("ada", ADA))
    world.decide(Counted(2))
    world.subjects.forget("ada")
    assert world.deciders.load(USER).state == User("ada", ("(forgotten)",), 2)


def test_an_aggregate_of_a_forgotten_person_goes_on() -> None:
    world = World()
    world.decide(Named("ada", ADA))
    world.subjects.forget("ada")
    for _ in range(3):
        world.decide(Counted(1))
    assert world.deciders.load(USER).state == User("ada", ("(forgotten)",), 3)
    assert ADA not in world.stored()


def test_the_state_of_nobody_is_stored_as_it_is() -> None:
    world = World()
    world.decide(Counted(2))
    assert "'person': ''" in world.stored() or '"person":""' in world.stored()
    assert world.deciders.load(USER).state == User(count=2)


def test_a_subject_that_is_awaited_is_refused() -> None:
    async def subject_of(_: User) -> str:
        return "ada"

    with pytest.raises(Exception, match="subject_of"):
        sealed_state(json_state(User), memory_subjects(), subject_of=subject_of)  # type: ignore[arg-type]
