"""G2 under keys that tell a moment, of which nothing is put on record: all that can happen, state by state."""

# mutants are of steps that are nobody else's business
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from epochal.model.moments import Ticks
from epochal.pages import appending, batch, evidence, keyed_appends
from epochal.pages.batch import Packed
from epochal.pages.evidence import KeyedAppend, LookFurther, NotApplied, Verdict, find_by_key
from epochal.pages.items import Page
from epochal.plan.ops import Steps
from tests.simulation.exploring import Budget, each_of, is_found_out, left_out
from tests.simulation.mutants import Mutant, Patch
from tests.simulation.page_actors import Actor, Delete, Prune, Rule
from tests.simulation.page_explorer import Explorer
from tests.simulation.test_page_exhaustive import ALWAYS, EVEN, NEVER, ODD, TIGHT, writes_of

BEFORE, AFTER = 5, 7
"""Moments: clocks say 5, or 1. What is written first is as old as a key of 5; one of 7 is of a clock that is ahead."""


def keyed(name: str, *expects: Any, rule: Rule = NEVER, above: int = BEFORE, **fields: Any) -> Actor:
    """A process whose every append is under one key, whatever it expects by then."""
    return writes_of(name, *expects, rule=rule, key="k", above=above, **fields)


def repeats_by_what_is_found_later() -> Explorer:
    """The first call may go unheard; each repeat expects what there is by then."""
    return Explorer(
        before=(writes_of("s", "any"),),
        actors=(
            keyed("a", "any", "known", rule=ALWAYS),
            keyed("b", "any", rule=EVEN),
            writes_of("c", "any", "known", rule=ODD),
        ),
        budget=Budget(unheard=1, crashes=1),
    )


def a_key_from_a_clock_that_is_ahead() -> Explorer:
    return Explorer(
        before=(writes_of("s", "any", rule=ODD),),
        actors=(
            keyed("a", "version", "known", rule=ALWAYS, above=AFTER, clock=1),
            keyed("b", "any", rule=EVEN, above=AFTER),
            writes_of("c", "any", "any", rule=ODD),
        ),
        budget=Budget(unheard=1, late=1),
    )


def a_key_that_is_older_than_all_there_is() -> Explorer:
    """Nobody finds a state that tells that there is none, and the search goes to the first page."""
    return Explorer(
        before=(writes_of("s", "any", "any", rule=ALWAYS),),
        actors=(
            keyed("a", "any", "known", rule=ALWAYS, above=2),
            keyed("b", "any", rule=EVEN, above=2),
            writes_of("c", "any", rule=ODD),
        ),
        budget=Budget(unheard=1, crashes=1),
    )


def tokens_that_were_told_before_the_call() -> Explorer:
    """A process appends, and then calls on what it was told; others may have used the key by then."""
    plain, call = writes_of("a", "any", rule=ODD), keyed("k", "known", "known", rule=ODD)
    return Explorer(
        actors=(
            Actor(does=(*plain.does, *call.does), rule=ODD),
            keyed("b", "none", "any", rule=ALWAYS),
            writes_of("c", "any", clock=1),
        ),
        budget=Budget(unheard=1, late=1),
    )


def tokens_from_outside_under_a_key() -> Explorer:
    plain, call = writes_of("a", "any", rule=ALWAYS), keyed("k", "forged", "outside", rule=ODD)
    return Explorer(
        actors=(
            Actor(does=(*plain.does, *call.does), rule=ODD),
            keyed("b", "any", rule=EVEN),
            writes_of("c", "any"),
        ),
        budget=Budget(unheard=1),
    )


def an_append_that_is_pruned() -> Explorer:
    """What would tell goes, page by page and from within the last one."""
    return Explorer(
        before=(writes_of("s", "any", rule=ODD),),
        actors=(
            keyed("a", "any", "any", rule=ODD),
            keyed("b", "any", rule=ALWAYS),
            writes_of("c", "any", rule=NEVER),
            Actor(does=(Prune(before=2), Prune(before=3))),
        ),
        budget=Budget(unheard=1),
    )


def a_stream_that_begins_anew_under_a_key() -> Explorer:
    return Explorer(
        before=(writes_of("s", "any", rule=ALWAYS),),
        actors=(
            keyed("a", "any", "version", rule=ODD),
            keyed("b", "any", rule=ALWAYS),
            Actor(does=(Delete(leave_open=True),)),
        ),
        budget=Budget(unheard=1, late=1),
    )


def a_batch_that_no_page_takes_under_a_key() -> Explorer:
    """To close a page is a write of its own, which takes a stamp."""
    return Explorer(
        before=(writes_of("s", "any"),),
        actors=(keyed("a", "any", "known", rule=TIGHT), keyed("b", "any"), writes_of("c", "any", rule=TIGHT)),
        budget=Budget(unheard=1, late=1),
    )


def unfolds_alone_under_a_key() -> Explorer:
    return Explorer(
        before=(writes_of("s", "any", rule=ALWAYS),),
        actors=(
            keyed("a", "any", "any", rule=ALWAYS, events=0, unfolds="u"),
            keyed("b", "any", events=0, unfolds="u"),
            writes_of("c", "any", rule=EVEN, unfolds="c"),
        ),
        budget=Budget(unheard=1),
    )


def a_key_while_the_stream_is_deleted(above: int = 0) -> Explorer:
    """The last page loses its events first; those before it are still there. The key has a record from long before."""
    return Explorer(
        before=(writes_of("s", "any", "any", rule=ALWAYS), keyed("x", "none", above=above)),
        actors=(
            keyed("a", "any", above=above),
            keyed("b", "any", above=above),
            Actor(does=(Delete(leave_open=True),)),
        ),
        budget=Budget(crashes=1),
    )


def a_key_that_tells_a_moment_while_the_stream_is_deleted() -> Explorer:
    return a_key_while_the_stream_is_deleted(BEFORE)


WORLDS = (
    a_key_while_the_stream_is_deleted,
    a_key_that_tells_a_moment_while_the_stream_is_deleted,
    repeats_by_what_is_found_later,
    a_key_from_a_clock_that_is_ahead,
    a_key_that_is_older_than_all_there_is,
    tokens_that_were_told_before_the_call,
    tokens_from_outside_under_a_key,
    an_append_that_is_pruned,
    a_stream_that_begins_anew_under_a_key,
    a_batch_that_no_page_takes_under_a_key,
    unfolds_alone_under_a_key,
)

DEAR = (
    a_key_from_a_clock_that_is_ahead,
    tokens_that_were_told_before_the_call,
    an_append_that_is_pruned,
    a_stream_that_begins_anew_under_a_key,
    a_batch_that_no_page_takes_under_a_key,
)


@each_of(WORLDS, dear=DEAR)
def test_an_append_under_a_key_that_tells_a_moment_is_made_once(world: Callable[[], Explorer]) -> None:
    explorer = world()

    assert explorer.explore() > 500, "a world in which hardly anything happens proves nothing"
    if world not in (unfolds_alone_under_a_key, a_key_while_the_stream_is_deleted):
        assert not [op for op in explorer.ops if "$Idempotency" in repr(op) and "Put" in repr(op)]


# ------------------------------------------------------------------------------------------------------------- mutants


def every_state_is_as_old_as_the_key(patch: Patch) -> None:
    """As if any key were a stamp that derives from it, and no more."""
    patch.setattr(keyed_appends, "is_new", lambda *_: True)


def stamps_are_not_above_the_moment(patch: Patch) -> None:
    sound = Packed.stamp
    patch.setattr(batch, "_above", lambda given: given.now)
    patch.setattr(Packed, "stamp", lambda self, last: sound(replace(self, above=Ticks(0)), last))


def what_is_written_a_moment_later_is_as_old_as_the_key(patch: Patch) -> None:
    sound = appending.is_new
    patch.setattr(keyed_appends, "is_new", lambda known, above: sound(known, above and Ticks(above + 99_999)))


def the_search_ends_with_the_last_page(patch: Patch) -> None:
    sound = KeyedAppend.judge

    def at_once(sought: KeyedAppend, page: Page) -> Verdict | LookFurther:
        verdict = sound(sought, page)
        return NotApplied() if isinstance(verdict, LookFurther) else verdict

    patch.setattr(KeyedAppend, "judge", at_once)


def a_refused_append_is_looked_for_at_its_place_alone(patch: Patch) -> None:
    def at_its_place(batch: Packed, head: Page | None, since: int, *_: Any, **__: Any) -> Steps[Any]:
        sought = replace(KeyedAppend.of(batch, since, later=False), first=since)
        applied = None if head is None else find_by_key(head, sought)
        yield from ()
        return applied and applied.appended(replayed=True)

    patch.setattr(appending, "outcome_under_key", at_its_place)
    patch.setattr(keyed_appends, "outcome_under_key", at_its_place)


def what_was_pruned_counts_as_never_written(patch: Patch) -> None:
    patch.setattr(evidence, "is_pruned", lambda *_: False)


def what_was_pruned_of_the_last_page_is_not_asked_for(patch: Patch) -> None:
    sound = evidence.is_pruned

    def unless_emptied(page: Page, index: int) -> bool:
        return sound(page, index) and not (index == page.index and not page.frames)

    patch.setattr(evidence, "is_pruned", unless_emptied)


@left_out(
    (every_state_is_as_old_as_the_key, repeats_by_what_is_found_later, "under one key"),
    (stamps_are_not_above_the_moment, a_key_from_a_clock_that_is_ahead, "under one key"),
    (
        what_is_written_a_moment_later_is_as_old_as_the_key,
        repeats_by_what_is_found_later,
        "under one key",
    ),
    (the_search_ends_with_the_last_page, a_key_that_is_older_than_all_there_is, "under one key"),
    (
        a_refused_append_is_looked_for_at_its_place_alone,
        repeats_by_what_is_found_later,
        "under one key|it is at",
    ),
    (what_was_pruned_counts_as_never_written, an_append_that_is_pruned, "under one key"),
    (
        what_was_pruned_of_the_last_page_is_not_asked_for,
        a_key_while_the_stream_is_deleted,
        "under one key",
    ),
)
def test_a_rule_left_out_is_found_out(
    mutant: Mutant, world: Callable[[], Explorer], found: str, monkeypatch: Patch
) -> None:
    is_found_out(mutant, world, found, monkeypatch)
