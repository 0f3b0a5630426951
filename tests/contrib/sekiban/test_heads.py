"""What a tag's head tells the feed: the events of its latest append, once, and to its own tenant only."""

from __future__ import annotations

import pytest

from epochal.contrib.sekiban.items import HEAD, Keys
from epochal.contrib.sekiban.port import appended
from epochal.errors import CorruptData, InvalidInput
from epochal.layout.changes import Span
from epochal.plan.values import Item, number, sequence, text
from tests.contrib.sekiban.world import World, event


def fed(world: World, service: str = "") -> list[Span]:
    """What the tags table's stream feeds, in order."""
    spans = [appended(image, service) for image in world.tables.changes("tags")]
    return [span for span in spans if span is not None]


def head(**changed: object) -> Item:
    item = {"n": number(5), "a": number(2), "c": sequence([text("A"), text("B")]), "last": text("1")}
    return {"pk": text("TAG#t:1"), "sk": text(HEAD), **item, **changed}  # type: ignore[dict-item]


def test_every_append_feeds_each_tag_of_its_events_the_events_of_that_tag() -> None:
    world = World()
    world.store().append([event("A", "t:1", "u:1"), event("B", "t:1"), event("C", "u:1")])
    world.store().append([event("D", "t:1")])

    assert sorted(fed(world)[:2], key=lambda span: span.stream) == [
        Span("t:1", 0, ("A", "B")),
        Span("u:1", 0, ("A", "C")),
    ]
    assert fed(world)[2:] == [Span("t:1", 2, ("D",))]


def test_events_without_tags_are_fed_under_the_reserved_tag() -> None:
    world = World()
    world.store().append([event("A")])
    world.store().append([event("B")])

    assert fed(world) == [Span("", 0, ("A",)), Span("", 1, ("B",))]


def test_heads_by_type_feed_nothing_so_that_no_event_comes_twice() -> None:
    plain, typed = World(), World(type_heads=True)
    for world in (plain, typed):
        world.store().append([event("A", "t:1"), event("B")])

    assert len(typed.tables.changes("tags")) > len(plain.tables.changes("tags"))
    assert fed(typed) == fed(plain)


def test_the_feed_of_a_tenant_has_its_own_tags_by_their_plain_names_and_no_others() -> None:
    world = World(keys=Keys(service="north"))
    world.store().append([event("A", "t:1"), event("B")])
    elsewhere = World(keys=Keys(service="nort"), tables=world.tables)
    elsewhere.store().append([event("X", "t:1")])
    World(tables=world.tables).store().append([event("Y", "t:1")])

    assert fed(world, "north") == [Span("t:1", 0, ("A",)), Span("", 0, ("B",))]
    assert fed(world, "nort") == [Span("t:1", 0, ("X",))]
    assert fed(world) == [Span("t:1", 0, ("Y",))]


def test_a_tag_that_looks_like_a_key_is_a_tag() -> None:
    world = World()
    world.store().append([event("A", "TAG#x", "SERVICE#north#TAG#y")])

    assert [span.stream for span in fed(world)] == ["SERVICE#north#TAG#y", "TAG#x"]
    assert fed(world, "north") == []


@pytest.mark.parametrize("service", ["a#b", "a|b", "a/b", "#"])
def test_a_tenant_whose_keys_could_be_read_as_anothers_is_refused(service: str) -> None:
    with pytest.raises(InvalidInput, match="service"):
        Keys(service=service)


@pytest.mark.parametrize(
    "broken",
    [
        {name: value for name, value in head().items() if name != "n"},
        {name: value for name, value in head().items() if name != "a"},
        head(a=number(0), c=sequence([])),
        head(a=number(3)),
        head(n=number(1)),
    ],
    ids=["no n", "no a", "nothing appended", "fewer types than events", "n below a"],
)
def test_a_head_whose_counters_do_not_fit_is_corrupt(broken: Item) -> None:
    with pytest.raises(CorruptData, match="TAG#t:1"):
        appended(broken)
