"""A caller may wait for the version of its append, whatever types the last events have that the model does not read."""

from __future__ import annotations

from datetime import timedelta

import pytest

from epochal import Delivery, Event, FeedEvent, cancel, later, reaction
from epochal.reactions import Reaction
from epochal.read_models import Documents, ReadModel
from epochal.testing.feeds import MemoryFeed

LENT = Event(type="Lent")
TIMER = later("reminder", [Event(type="Reminded")], at=timedelta(days=1))


def show(documents: Documents, event: FeedEvent) -> None:
    documents.put(event.stream, {"last": event.type})


def keeping(model: ReadModel[object], types: list[str] | None) -> Reaction:
    @reaction(name="loans-1", categories=["Loan"], types=types)
    def keep(delivery: Delivery) -> None:
        model.apply(delivery, show)

    return keep


@pytest.mark.parametrize(
    ("types", "appended"),
    [
        (None, [LENT, TIMER]),
        (None, [LENT, TIMER, cancel("reminder")]),
        (["Lent"], [LENT, Event(type="Noted"), Event(type="Noted")]),
        (["Lent"], [Event(type="Noted"), LENT, TIMER]),
    ],
)
def test_the_version_of_an_append_is_reached_that_ends_with_types_the_model_does_not_read(
    types: list[str] | None, appended: list[Event]
) -> None:
    feed = MemoryFeed()
    model = feed.read_models.open("loans", 1)
    version = feed.streams.append("Loan-1", appended).version
    feed.react(keeping(model, types))
    assert model.get("Loan-1") == {"last": "Lent"}
    assert model.place("Loan-1") == version
    assert model.wait_for("Loan-1", version, seconds=0)
