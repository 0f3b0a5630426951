"""Events that cannot be read: never skipped, never in the way of other streams, and handled once they are mended."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from epochal.codec.bodies import encode_claim
from epochal.errors import DeniedBody
from epochal.index.checkpoints import tip_key
from epochal.model.bodies import Claim
from epochal.model.events import Event
from epochal.model.stream_names import StreamName
from epochal.plan.ops import Get, Put
from epochal.plan.values import Item, binary, number
from epochal.reactions.definition import reaction
from epochal.testing.feeds import MemoryStore
from epochal.testing.stores import MemoryBodies
from tests.contrib.equinox.feeds import TipFeeds
from tests.core.reactions.world import World

Break = Callable[[Item], Item]


def of_encoding_3(tip: Item) -> Item:
    """The third event's body is of another library's."""
    events = list(tip["e"]["L"])
    events[2] = {"M": {**events[2]["M"], "d": binary(b"x"), "D": number(3)}}
    return {**tip, "e": {"L": events}}


def without_types(tip: Item) -> Item:
    return {**tip, "c": {"L": []}}


def rewritten(world: World, change: Break, stream: str = "Order-1") -> Callable[[], object]:
    """Change a stream's Tip; what is returned changes it back."""
    key = tip_key(StreamName(stream))
    before = world.feeds.tables.execute(Get(table="tips", key=key)).item
    assert before is not None
    world.feeds.tables.execute(Put(table="tips", item=change(before)))
    return lambda: world.feeds.tables.execute(Put(table="tips", item=before))


@pytest.mark.parametrize(
    ("change", "at", "cause"),
    [
        (of_encoding_3, 2, "UnknownEncoding: Order-1 (index 2): unknown body encoding 3"),
        (without_types, 0, "CorruptData: "),
    ],
)
@pytest.mark.parametrize("max_events", [1, 3, 100])
def test_a_stream_is_parked_at_the_event_that_cannot_be_read_with_its_cause_and_others_go_on(
    change: Break, at: int, cause: str, max_events: int
) -> None:
    world = World(feeds=TipFeeds())
    world.append("Order-1", *"abcd")
    world.append("Order-2", "x")
    mend = rewritten(world, change)

    ran = world.reactor(max_events=max_events).run(0, seconds=10.0)

    assert world.told.of("Order-1") == list(range(at))
    assert world.told.of("Order-2") == [0]
    assert ran.at_tail
    (parked,) = world.parking().streams(0)
    assert (parked.stream, parked.index) == ("Order-1", at)
    assert parked.cause is not None
    assert parked.cause.text.startswith(cause)

    mend()
    assert world.parking().replay(0, "Order-1", seconds=10.0).unparked
    assert world.told.of("Order-1") == [0, 1, 2, 3]


def test_a_replay_before_anything_was_mended_changes_nothing() -> None:
    world = World(feeds=TipFeeds())
    world.append("Order-1", *"abcd")
    rewritten(world, of_encoding_3)
    world.reactor().run(0, seconds=10.0)

    replayed = world.parking().replay(0, "Order-1", seconds=10.0)

    assert (replayed.next, replayed.unparked) == (2, False)
    assert world.told.of("Order-1") == [0, 1]


def test_an_event_that_cannot_be_read_and_is_of_a_type_that_is_not_wanted_is_in_nobodys_way() -> None:
    world = World(feeds=TipFeeds())
    world.append("Order-1", *"abcd")
    rewritten(world, of_encoding_3)

    ran = world.reactor(types=frozenset("ad")).run(0, seconds=10.0)

    assert (ran.at_tail, ran.parked) == (True, ())
    assert world.told.of("Order-1") == [0, 3]


def test_a_reaction_that_blocks_does_so_at_an_event_that_cannot_be_read() -> None:
    world = World(feeds=TipFeeds())
    world.append("Order-1", *"abcd")
    rewritten(world, of_encoding_3)

    ran = world.reactor(on_failure="block").run(0, seconds=10.0)

    assert world.told.of("Order-1") == [0, 1]
    assert ran.blocked is not None
    assert (ran.blocked.stream, ran.blocked.index) == ("Order-1", 2)
    assert not ran.at_tail


def test_a_stream_whose_claim_check_names_what_may_not_be_read_is_parked_with_the_denial_and_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def denied(_: MemoryBodies, claim: Claim) -> bytes:
        raise DeniedBody(claim.key, "AccessDenied")

    feed, told = MemoryStore(), list[str]()
    for stream in ("Order-1", "Order-2"):
        feed.tips.append(stream, [Event(type="Paid")])
    key, claim = tip_key(StreamName("Order-1")), encode_claim(Claim(key="exports/1", sha256="0" * 64, size=9))
    tip = feed.tables.execute(Get(table="tips", key=key)).item
    assert tip is not None
    (event,) = tip["e"]["L"]
    event["M"] |= {"d": binary(claim.data), "D": number(claim.encoding)}
    feed.tables.execute(Put(table="tips", item={**tip, "e": {"L": [event]}}))
    monkeypatch.setattr(MemoryBodies, "get", denied)
    board = reaction(name="board")(lambda delivery: told.append(delivery.stream))

    (ran, *_) = feed.react(board)

    assert (ran.at_tail, told) == (True, ["Order-2"])
    (parked,) = feed.parking(board).streams(0)
    assert (parked.stream, parked.index) == ("Order-1", 0)
    assert parked.cause is not None
    assert parked.cause.text == "DeniedBody: GetObject of exports/1 was denied: AccessDenied"
