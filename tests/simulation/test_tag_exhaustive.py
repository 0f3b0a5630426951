"""G2, G3 and G11 for tagged events on pages, without luck: all that can happen to small worlds, state by state."""

# ruff: noqa: SLF001  # mutants are of steps that are nobody else's business

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from epochal.layout import queries
from epochal.layout.queries import Fence
from epochal.layout.streams import Known
from epochal.layout.tag_streams import TagStreams
from epochal.model.events import Event
from epochal.model.moments import Ticks
from epochal.model.outcomes import Conflict
from epochal.model.positions import Position
from epochal.pages import attempts, batch, commit, writes
from epochal.pages.evidence import Verdict
from epochal.pages.items import Page, page_key
from epochal.pages.tags import append, entries, reading
from epochal.pages.tags import batch as tagged_batch
from epochal.pages.tags.reading import PageReads
from epochal.plan.conditions import Absent
from epochal.plan.ops import Check, Refusal, Steps
from tests.simulation import tag_explorer
from tests.simulation.dcb_world import query
from tests.simulation.exploring import Budget, each_of, is_found_out, left_out
from tests.simulation.mutants import Mutant, Patch
from tests.simulation.page_actors import Rule
from tests.simulation.page_verdicts import applied_if_anything_is_there, never_applied
from tests.simulation.tag_explorer import Explorer, Writer

NEVER = Rule()
ALWAYS = Rule(full=frozenset(range(20)))
ODD = Rule(full=frozenset(range(1, 20, 2)))
TIGHT = Rule(tight=frozenset(range(20)))

EITHER, A, B, AB = query(("", "a"), ("", "b")), query(("", "a")), query(("", "b")), query(("", "a b"))


def writer(name: str, tags: str, *, count: int = 1, kind: str = "T", **how: Any) -> Writer:
    events = tuple(
        Event(type=kind, data=f'"{name}{number}"'.encode(), tags=tuple(tags.split()))
        for number in range(count)
    )
    return Writer(events=events, **how)


def rivals_for_two_tags() -> Explorer:
    """Last pages are read one by one, while others move both."""
    return Explorer(
        actors=(
            writer("a", "a b", query=EITHER, reads=True, rule=ODD),
            writer("b", "b", query=B, reads=True, clock=3),
            writer("c", "a b", clock=1),
        ),
        budget=Budget(unheard=1),
    )


def fences_that_are_not_written() -> Explorer:
    """Each of two writes one tag on the condition of the other; a third moves both fences, of which one is full."""
    first = writer("s", "a", rule=ALWAYS)
    second = writer("t", "b")
    return Explorer(
        before=(first, second),
        actors=(
            writer("a", "a", query=B, reads=True),
            writer("b", "b", query=A, reads=True, rule=ALWAYS, clock=3),
            writer("c", "a b", clock=1),
        ),
        budget=Budget(unheard=1, late=1),
    )


def fences_that_have_no_events() -> Explorer:
    return Explorer(
        actors=(
            writer("a", "a", query=B, reads=True),
            writer("b", "b", query=A, reads=True, clock=3),
            writer("c", "b", rule=ALWAYS, clock=1),
        ),
        budget=Budget(unheard=1),
    )


def who_goes_on_from_what_it_was_told() -> Explorer:
    """Positions of appends and of conflicts, through their text, on pages of which every other is full."""
    return Explorer(
        before=(writer("s", "a b", rule=ODD),),
        actors=(
            writer("a", "a b", count=2, query=A, reads=True, outside=True, rule=ODD),
            writer("b", "a", count=2, query=AB, reads=True, rule=ALWAYS, clock=1),
        ),
        budget=Budget(unheard=1, late=1, crashes=1),
    )


def answers_lost_and_told_in_part() -> Explorer:
    return Explorer(
        actors=(
            writer("a", "a b", query=EITHER, reads=True),
            writer("b", "a b", query=EITHER, reads=True, clock=3),
            writer("c", "b", clock=1),
        ),
        budget=Budget(unheard=1, partly=2),
    )


def an_answer_lost_where_a_fence_is_told_of() -> Explorer:
    return Explorer(
        before=(writer("s", "b"),),
        actors=(
            writer("a", "a", query=B, reads=True),
            writer("b", "b", query=A, clock=3),
            writer("c", "b", clock=1),
        ),
        budget=Budget(unheard=1, partly=1),
    )


def a_condition_narrower_than_what_was_read() -> Explorer:
    return Explorer(
        actors=(
            writer("a", "a b", query=query(("T", "a b")), broader=query(("T", "b"), ("U", "a")), reads=True),
            writer("b", "a b", query=query(("T", "b")), broader=EITHER, reads=True, clock=3),
        ),
        before=(writer("s", "b"),),
        budget=Budget(unheard=1, late=1),
    )


def by_type_and_by_tag() -> Explorer:
    reserved = frozenset({"$type:T"})
    return Explorer(
        actors=(
            writer("a", "a", query=query(("T", "")), reads=True, reserved=reserved),
            writer("b", "", query=query(("T", "")), reads=True, reserved=reserved, clock=1),
            writer("c", "a", kind="U", query=A, reserved=reserved),
        ),
        budget=Budget(unheard=1, late=1),
    )


def pages_that_must_be_closed_first() -> Explorer:
    return Explorer(
        before=(writer("s", "a b"),),
        actors=(
            writer("a", "a b", query=A, reads=True, rule=TIGHT),
            writer("b", "a", query=A, reads=True, clock=1),
        ),
        budget=Budget(unheard=1, late=1),
    )


def the_same_event_appended_twice() -> Explorer:
    """By a user who chose its id, and was not told how the first call ended."""
    own = "00000000-0000-4000-8000-000000000001"
    first = writer("a", "a", query=A)
    named = replace(first, events=(replace(first.events[0], id=own),))
    return Explorer(
        actors=(named, replace(named, clock=9), writer("c", "a", clock=1)),
        budget=Budget(unheard=1, crashes=1),
    )


def bodies_that_are_elsewhere() -> Explorer:
    return Explorer(
        before=(writer("s", "a b", rule=ODD),),
        actors=(
            writer("a", "a b", query=B, reads=True, rule=ODD),
            writer("b", "a b", query=B, reads=True, rule=ALWAYS, clock=3),
        ),
        budget=Budget(unheard=1, late=1),
        refers=True,
    )


def transactions_that_show_in_parts() -> Explorer:
    """To readers of two tags, of which one has the bodies."""
    return Explorer(
        before=(writer("s", "a b", rule=ODD),),
        actors=(
            writer("a", "a b", query=EITHER, reads=True),
            writer("b", "b", query=query(("", "b"), ("U", "a")), reads=True, rule=ODD, clock=3),
            writer("c", "a b", rule=ALWAYS, clock=1),
        ),
        budget=Budget(torn=1, unheard=1),
        refers=True,
    )


WORLDS = (
    rivals_for_two_tags,
    fences_that_are_not_written,
    fences_that_have_no_events,
    who_goes_on_from_what_it_was_told,
    answers_lost_and_told_in_part,
    an_answer_lost_where_a_fence_is_told_of,
    a_condition_narrower_than_what_was_read,
    by_type_and_by_tag,
    pages_that_must_be_closed_first,
    the_same_event_appended_twice,
    bodies_that_are_elsewhere,
    transactions_that_show_in_parts,
)


@each_of(
    WORLDS,
    dear=(
        transactions_that_show_in_parts,
        fences_that_are_not_written,
        who_goes_on_from_what_it_was_told,
        answers_lost_and_told_in_part,
    ),
)
def test_nothing_that_can_happen_breaks_a_condition_or_makes_an_append_twice(
    world: Callable[[], Explorer],
) -> None:
    explorer = world()
    assert explorer.explore() > 500, "a world in which hardly anything happens proves nothing"
    assert explorer.conflicts, "nobody met anybody"


# ------------------------------------------------------------------------------------------------------------- mutants


def unfenced(patch: Patch, where: Callable[[Known[Page]], bool]) -> None:
    """Nothing is asked of fences that are known so."""
    sound = commit.fence

    def fence(table: str, stream: str, known: Known[Page]) -> Steps[Any]:
        if where(known):
            return Check(table=table, key=page_key(stream, 0), condition=Absent("nothing"))
        return (yield from sound(table, stream, known))

    patch.setattr(commit, "fence", fence)


def full(known: Known[Page]) -> bool | None:
    place = None if known is None else writes.known_state(known)
    return None if place is None else place.full


def fences_are_not_checked(patch: Patch) -> None:
    unfenced(patch, lambda _: True)


def a_fence_that_is_full_is_not_checked(patch: Patch) -> None:
    unfenced(patch, lambda known: full(known) is True)


def a_fence_that_is_open_is_not_checked(patch: Patch) -> None:
    unfenced(patch, lambda known: full(known) is False)


def a_tag_without_events_is_no_fence(patch: Patch) -> None:
    unfenced(patch, lambda known: known is None)


def a_fence_moved_is_followed_without_looking_for_matches(patch: Patch) -> None:
    def nothing(_site: Any, _condition: Any, position: Position, heads: Mapping[str, Any]) -> Steps[Any]:
        yield from ()
        until = {tag: heads[tag].reached for tag in position.seen}
        return Conflict(events=(), position=replace(position, seen=until))

    patch.setattr(append, "_in_the_way", nothing)


def an_append_that_was_made_is_not_looked_for(patch: Patch) -> None:
    patch.setattr(commit, "_judge", never_applied)


def whatever_is_in_the_way_is_taken_for_ours(patch: Patch) -> None:
    patch.setattr(commit, "_judge", applied_if_anything_is_there)


def what_a_refusal_leaves_out_is_not_asked_for(patch: Patch) -> None:
    sound = commit._was_applied

    def as_told(wanted: Any, plan: Any, reply: Refusal) -> Steps[Verdict]:
        return (yield from sound(wanted, plan, replace(reply, ambiguous=False)))

    patch.setattr(commit, "_was_applied", as_told)


def tags_are_written_one_by_one(patch: Patch) -> None:
    patch.setattr(commit, "_operation", lambda plan: plan.all[0])


def the_position_of_an_append_is_before_it(patch: Patch) -> None:
    patch.setattr(append.TagsPart, "_moved", lambda self, *_: self.position)


def a_page_that_had_to_be_closed_has_a_stamp_of_its_own(patch: Patch) -> None:
    patch.setattr(commit, "time_of", lambda _: Ticks(1))


def stamps_are_what_the_clock_says(patch: Patch) -> None:
    patch.setattr(batch, "_after", lambda now, _last: now)


def a_page_is_left_without_being_closed(patch: Patch) -> None:
    def as_it_is(_table: str, _batch: Any, known: Any) -> Steps[Any]:
        yield from ()
        return known

    patch.setattr(attempts, "_close_first", as_it_is)


def a_page_is_extended_whatever_it_is(patch: Patch) -> None:
    patch.setattr(writes, "unchanged", lambda *_: Absent("nothing"))


def an_event_is_new_only_within_the_reach_of_every_item(patch: Patch) -> None:
    is_new = queries.is_new

    def within_all(event: Any, fenced: Fence, before: Any, until: Any) -> bool:
        return is_new(event, fenced, before, until) and all(
            event.place <= reached.last for tag, reached in until.items() if tag in event.tags
        )

    patch.setattr(reading, "is_new", within_all)


def an_event_is_new_that_another_item_has_shown(patch: Patch) -> None:
    is_new = queries.is_new

    def through_any(event: Any, fenced: Fence, before: Any, until: Any) -> bool:
        return any(is_new(event, fenced, {tag: before[tag]}, until) for tag in before) or (
            not before and is_new(event, fenced, before, until)
        )

    patch.setattr(reading, "is_new", through_any)


def one_of_its_tags_is_enough_for_a_narrower_item(patch: Patch) -> None:
    sound = tag_explorer.fence_after
    patch.setattr(
        tag_explorer, "fence_after", lambda *asked, **how: replace(sound(*asked, **how), together=frozenset())
    )


def a_position_is_of_heads_that_were_read_last(patch: Patch) -> None:
    sound = PageReads.everything

    def everything(reads: PageReads, after: Any = None) -> Steps[Any]:
        seen = yield from sound(reads, after)
        heads = yield from reading.heads_of(reads.site, list(seen.position.seen))
        reached = {tag: entries.reached_by(head) for tag, head in heads.items()}
        return replace(seen, position=replace(seen.position, seen=reached))

    patch.setattr(PageReads, "everything", everything)


def ids_leave_no_record(patch: Patch) -> None:
    patch.setattr(append.TagsPart, "records", lambda *_: [])


def own_events_are_not_looked_for_where_a_condition_fails(patch: Patch) -> None:
    def nothing(*_: Any) -> Steps[tuple[()]]:
        yield from ()
        return ()

    patch.setattr(append, "stored_before", nothing)


def events_by_type_are_not_under_their_type(patch: Patch) -> None:
    sound = TagStreams.tags_of
    patch.setattr(
        TagStreams,
        "tags_of",
        lambda site, kind, tags: sound(replace(site, type_heads=frozenset()), kind, tags),
    )


def a_body_is_looked_for_on_another_page(patch: Patch) -> None:
    stored: Any = tagged_batch._stored
    patch.setattr(
        tagged_batch,
        "_stored",
        lambda *about: stored(*about[:3], None if about[3] is None else 0, *about[4:]),
    )


def a_body_that_does_not_show_yet_is_not_asked_for_again(patch: Patch) -> None:
    patch.setattr(entries, "settled", lambda _: iter(()))


@pytest.mark.proof
@left_out(
    (fences_are_not_checked, fences_that_are_not_written, "not seen"),
    (a_fence_that_is_full_is_not_checked, fences_that_are_not_written, "not seen"),
    (a_fence_that_is_open_is_not_checked, fences_that_are_not_written, "not seen"),
    (a_tag_without_events_is_no_fence, fences_that_have_no_events, "not seen"),
    (a_fence_moved_is_followed_without_looking_for_matches, fences_that_are_not_written, "not seen"),
    (an_append_that_was_made_is_not_looked_for, rivals_for_two_tags, "times|yet|seen"),
    (whatever_is_in_the_way_is_taken_for_ours, rivals_for_two_tags, "never was"),
    (
        what_a_refusal_leaves_out_is_not_asked_for,
        an_answer_lost_where_a_fence_is_told_of,
        "times|yet|seen",
    ),
    (tags_are_written_one_by_one, rivals_for_two_tags, "times"),
    (the_position_of_an_append_is_before_it, who_goes_on_from_what_it_was_told, "had seen"),
    (
        a_page_that_had_to_be_closed_has_a_stamp_of_its_own,
        pages_that_must_be_closed_first,
        "several stamps",
    ),
    (stamps_are_what_the_clock_says, fences_that_are_not_written, "increase"),
    (a_page_is_left_without_being_closed, pages_that_must_be_closed_first, "a page at"),
    (a_page_is_extended_whatever_it_is, fences_that_are_not_written, "not seen|f has more events"),
    (an_event_is_new_only_within_the_reach_of_every_item, rivals_for_two_tags, "not seen"),
    (an_event_is_new_that_another_item_has_shown, rivals_for_two_tags, "had seen"),
    (one_of_its_tags_is_enough_for_a_narrower_item, a_condition_narrower_than_what_was_read, "not seen"),
    (a_position_is_of_heads_that_were_read_last, rivals_for_two_tags, "not seen"),
    (ids_leave_no_record, the_same_event_appended_twice, "times|yet|seen"),
    (own_events_are_not_looked_for_where_a_condition_fails, the_same_event_appended_twice, "yet"),
    (events_by_type_are_not_under_their_type, by_type_and_by_tag, "times|not seen"),
    (a_body_that_does_not_show_yet_is_not_asked_for_again, transactions_that_show_in_parts, "no body"),
    (a_body_is_looked_for_on_another_page, bodies_that_are_elsewhere, "no body"),
)
def test_a_rule_left_out_is_found_out(
    mutant: Mutant, world: Callable[[], Explorer], found: str, monkeypatch: Patch
) -> None:
    is_found_out(mutant, world, found, monkeypatch)
