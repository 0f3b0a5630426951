"""What must hold of all calls under one idempotency key of one stream: together they made one append, or none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from epochal.errors import InvalidInput
from epochal.layout.tips.items import is_tip, read_tip
from epochal.model.outcomes import Appended
from epochal.plan.values import Item
from tests.simulation.expectations import meets
from tests.simulation.world import World

if TYPE_CHECKING:
    from tests.simulation.stream_simulation import Attempt


def check_key(attempts: Sequence[Attempt], world: World) -> None:
    """One append, whatever each call expected; each that was answered was told of this one, and with its own token."""
    images = list(filter(is_tip, world.images()))
    tips = list(map(read_tip, images))
    ids = set().union(*(attempt.ids for attempt in attempts))
    places = {place for identity in ids for place in world.places_of(identity)}
    alone = set().union(*(attempt.etags for attempt in attempts if not attempt.events))
    unfolded = [tip for tip in tips if tip.etag in alone]
    assert len(places) + len(unfolded) <= 1, (
        f"one key, yet appended at {places}, and unfolds {len(unfolded)} times"
    )
    check_expected(attempts, images, [tip.etag in alone or tip.version - 1 in places for tip in tips])
    for attempt in attempts:
        match attempt.outcome:
            case Appended(first=first) if attempt.events:
                assert places == {first}
            case Appended(first=first, version=version, token=token):
                (left,) = unfolded
                assert (first, version) == (left.version, left.version)
                assert (token.version, token.etag) == (left.version, left.etag), "a token of another state"
            case InvalidInput():
                others = [each for each in attempts if bool(each.events) != bool(attempt.events)]
                assert others, "refused, though the key was used for nothing else"
                assert unfolded if attempt.events else places, "refused, though the key is free"


def check_expected(attempts: Sequence[Attempt], images: list[Item], theirs: list[bool]) -> None:
    """The one append followed upon a Tip that one of the calls expected."""
    if True in theirs:
        place = theirs.index(True)
        before = images[place - 1] if place else None
        assert before is None or "z" not in before, "appended to a deleted stream"
        assert any(meets(attempt.expected, before) for attempt in attempts), (
            "appended on what nobody expected"
        )
