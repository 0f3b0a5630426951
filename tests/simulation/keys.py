"""What must hold of all calls under one idempotency key of one stream: together they made one append, or none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from epochal.errors import InvalidInput
from epochal.model.outcomes import Appended
from tests.simulation.expectations import check_followed
from tests.simulation.world import World

if TYPE_CHECKING:
    from tests.simulation.stream_simulation import Attempt


def check_key(attempts: Sequence[Attempt], world: World) -> None:
    """One append, whatever each call expected; each that was answered was told of this one, and with its own token."""
    heads = world.heads()
    ids = set().union(*(attempt.ids for attempt in attempts))
    places = {place for identity in ids for place in world.places_of(identity)}
    alone = set().union(*(attempt.marks for attempt in attempts if not attempt.events))
    unfolded = [head for head in heads if head.mark in alone]
    assert len(places) + len(unfolded) <= 1, (
        f"one key, yet appended at {places}, and unfolds {len(unfolded)} times"
    )
    made = [at for at, head in enumerate(heads) if head.mark in alone or head.version - 1 in places]
    if made:
        before = heads[made[0] - 1] if made[0] else None
        check_followed([attempt.expected for attempt in attempts], before, world.kind.is_as_good)
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
