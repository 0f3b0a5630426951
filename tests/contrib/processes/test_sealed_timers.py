"""A timer of a process fires after the person whom it is about was forgotten."""

from __future__ import annotations

from epochal.contrib.timers.stores import timers_of
from tests.contrib.processes.test_sealed_instances import ADA, Closed, enrolled


def test_an_instance_goes_on_without_the_person_who_is_forgotten() -> None:
    world = enrolled()
    timers = timers_of(world.feed.streams)
    assert len(timers.pending("enrolment-1")) == 1
    world.subjects.forget("ada")
    world.append("Person-1", Closed("moved"))
    world.feed.advance(world.process, days=2)
    assert timers.pending("enrolment-1") == ()
    assert world.instance().had["pages/Person-1"] == 3
    assert ADA not in world.stored()
