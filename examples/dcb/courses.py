"""Course subscriptions: a rule over two things at once, neither of which owns the other.

A course has a capacity, and a student takes at most three courses. With aggregates one of the two rules needs a saga;
here one append concerns both, and fails if either has changed.
"""

from __future__ import annotations

from epochal.deciders.on_queries import Decisions
from epochal.deciders.projections import Projection, projection
from examples.dcb.store import event, memory_decisions

MOST_COURSES = 3


class Refused(Exception):
    """The domain says no."""


def capacity(course: str) -> Projection[int | None]:
    """How many students a course takes; None while it is not defined."""
    return projection(
        tags=[f"course:{course}"],
        initial=None,
        on={
            "CourseDefined": lambda _, defined: defined.json()["capacity"],
            "CapacityChanged": lambda _, changed: changed.json()["capacity"],
        },
    )


def subscriptions(tag: str) -> Projection[int]:
    """How many subscriptions a course or a student has."""
    return projection(tags=[tag], initial=0, on={"StudentSubscribed": lambda count, _: count + 1})


def subscribed(course: str, student: str) -> Projection[bool]:
    """Whether this student takes this course."""
    return projection(
        tags=[f"course:{course}", f"student:{student}"],
        initial=False,
        on={"StudentSubscribed": lambda _, __: True},
    )


def define(decisions: Decisions, course: str, seats: int) -> None:
    """Offer a course."""
    decisions.handle(
        {"capacity": capacity(course)},
        lambda model: (
            [] if model["capacity"] else [event("CourseDefined", f"course:{course}", capacity=seats)]
        ),
    )


def subscribe(decisions: Decisions, course: str, student: str) -> None:
    """Subscribe a student, or say why not."""

    def rules(model: dict[str, int]) -> list[object]:
        if model["capacity"] is None:
            raise Refused(f"{course} is not offered")
        if model["subscribed"]:
            raise Refused(f"{student} takes {course} already")
        if model["in course"] >= model["capacity"]:
            raise Refused(f"{course} is full")
        if model["of student"] >= MOST_COURSES:
            raise Refused(f"{student} takes {MOST_COURSES} courses already")
        return [event("StudentSubscribed", f"course:{course}", f"student:{student}")]

    decisions.handle(
        {
            "capacity": capacity(course),
            "in course": subscriptions(f"course:{course}"),
            "of student": subscriptions(f"student:{student}"),
            "subscribed": subscribed(course, student),
        },
        rules,
    )


def main() -> None:
    """Three students, two seats."""
    decisions = memory_decisions()
    define(decisions, "physics", 2)
    for student in ("ann", "ben", "ann", "cas"):
        try:
            subscribe(decisions, "physics", student)
            print(f"{student}: subscribed")
        except Refused as refused:
            print(f"{student}: {refused}")


if __name__ == "__main__":
    main()
