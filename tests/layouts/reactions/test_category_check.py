"""A category or a type that is misspelt handles nothing, for ever: who runs the reaction is told."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from epochal.index.groups import group_stream, load
from epochal.model.events import Event
from epochal.reactions.definition import Delivery, Reaction, reaction
from epochal.reactions.filter_coverage import Name, describe_unmet, unmet_filters
from epochal.reactions.group_member import Member
from epochal.testing.feeds import MemoryStore


def filled() -> MemoryStore:
    feed = MemoryStore()
    for stream in ("Flight-UA1", "Flight-B61", "Passenger-7"):
        feed.tips.append(stream, [Event(type="Scheduled")])
    feed.dcb.append([Event(type="Enrolled", data=b"{}", tags=("course:1",))])
    return feed


def board(
    *categories: str, name: str = "board", start: str = "beginning", types: Sequence[str] | None = None
) -> Reaction:
    def handle(_: Delivery) -> None:
        """Handle nothing."""

    asked = categories or None
    return reaction(name=name, categories=asked, types=types, start=start)(handle)  # type: ignore[arg-type]


@contextmanager
def logged(match: str) -> Iterator[list[str]]:
    """What is warned of meanwhile, of which something must match; as a warning of Python's it would be raised here."""
    found: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: found.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("epochal.reactions")
    logger.addHandler(handler)
    try:
        yield found
    finally:
        logger.removeHandler(handler)
    assert any(re.search(match, each) for each in found), f"nothing of {match!r} in {found}"


def left(feed: MemoryStore, asked: Reaction) -> tuple[str, ...]:
    return tuple(" ".join(name) for name in unmet_filters(Member(reaction=asked, reader=feed.feed)))


def test_a_misspelt_category_is_warned_of_with_the_one_that_it_may_have_been_meant_for() -> None:
    words = r"category 'Fligth' has been seen since the group began; did you mean 'Flight'\? Seen so far: Flight, P"
    with logged(words):
        filled().react(board("Fligth"))


def test_categories_of_every_source_are_met_in_whichever_partition_they_come() -> None:
    feed = filled()
    feed.react(board("Flight", "course"))
    assert left(feed, board("Flight", "course")) == ()
    with logged("did you mean 'course'"):
        feed.react(board("Passenger", "curse", name="other"))


def test_a_category_whose_first_stream_comes_later_is_warned_of_no_more() -> None:
    feed, asked = filled(), board("Flight", "Crew")
    with logged("'Crew'"):
        feed.react(asked)
    feed.tips.append("Crew-1", [Event(type="Hired")])
    feed.react(asked)
    feed.react(asked)
    assert left(feed, asked) == ()


def test_whoever_asks_for_everything_and_whoever_gets_what_he_asks_for_stores_nothing_of_it() -> None:
    feed = filled()
    for asked in (board("Flight", types=["Scheduled"]), reaction(name="all")(lambda _: None)):
        feed.react(asked)
        held = feed.feed.driver.run(load(feed.feed.table, group_stream(0, asked.name)))
        assert held.state is not None
        assert (held.state.unmet, held.state.unmet_types) == ((), ())


def test_a_group_that_has_not_come_to_the_end_of_every_partition_is_not_judged() -> None:
    feed = filled()
    feed.index()
    assert left(feed, board("Fligth")) == ()


def test_a_group_that_is_behind_is_not_judged_by_what_it_has_still_to_read() -> None:
    feed, asked = filled(), board("Crew")
    with logged("'Crew'"):
        feed.react(asked)
    assert left(feed, asked) == ("category Crew",)
    feed.tips.append("Crew-1", [Event(type="Hired")])
    feed.index()
    assert left(feed, asked) == ()


def test_a_group_is_judged_by_the_sources_that_it_reads_alone() -> None:
    feed = filled()
    asked = reaction(name="streams", categories=["Fligth"], sources=["tips"])(lambda _: None)
    with logged("did you mean 'Flight'"):
        feed.react(asked)
    assert left(feed, asked) == ("category Fligth",)


def test_a_group_from_before_is_not_judged_by_what_it_has_passed() -> None:
    feed = filled()
    feed.react(board("Flight"))
    with pytest.raises(AssertionError, match="nothing of"), logged("."):
        feed.react(board("Passenger"))


def test_a_group_that_began_at_the_tail_is_told_what_has_not_come_since() -> None:
    feed = filled()
    feed.index()
    with logged("since the group began"):
        feed.react(board("Flight", start="tail"))


def test_a_misspelt_type_is_warned_of_with_the_one_that_it_may_have_been_meant_for() -> None:
    words = r"no event of the type 'Sheduled' has been seen since the group began; did you mean 'Scheduled'\? Seen"
    with logged(words):
        filled().react(board("Flight", types=["Sheduled"]))


def test_a_type_is_met_by_an_event_in_the_categories_that_are_asked_for_alone() -> None:
    feed, asked = filled(), board("Flight", types=["Scheduled", "Enrolled"])
    with logged("'Enrolled' has been seen since the group began. Seen so far: Scheduled"):
        feed.react(asked)
    assert left(feed, asked) == ("type Enrolled",)
    feed.react(board(types=["Scheduled", "Enrolled"], name="all"))
    assert left(feed, board(types=["Scheduled", "Enrolled"], name="all")) == ()


def test_a_type_whose_first_event_comes_later_is_warned_of_no_more() -> None:
    feed, asked = filled(), board("Flight", types=["Departed", "Arrived"])
    with logged("no event of the type '(Departed|Arrived)'") as told:
        feed.react(asked)
    assert len(told) == 2
    feed.tips.append("Flight-UA1", [Event(type="Boarded"), Event(type="Departed")])
    with logged("'Arrived'"):
        feed.react(asked)
    assert left(feed, asked) == ("type Arrived",)


def test_a_group_from_before_is_not_judged_by_types_that_it_has_passed() -> None:
    feed = filled()
    feed.react(board("Flight"))
    with pytest.raises(AssertionError, match="nothing of"), logged("."):
        feed.react(board("Flight", types=["Sheduled"]))


def test_many_names_are_told_one_by_one_and_nothing_is_offered_that_is_not_like_them_or_of_their_kind() -> (
    None
):
    seen: set[Name] = {("category", "Flight"), ("category", "Cart"), ("type", "Flght")}
    unlike, like = describe_unmet([("category", "Zzz"), ("category", "Flght")], seen)
    assert (
        unlike
        == "no stream of the category 'Zzz' has been seen since the group began. Seen so far: Cart, Flight."
    )
    assert like.endswith(
        "'Flght' has been seen since the group began; did you mean 'Flight'? Seen so far: Cart, Flight."
    )
    assert list(describe_unmet([("category", "Flght")], ())) == [
        "no stream of the category 'Flght' has been seen since the group began."
    ]
