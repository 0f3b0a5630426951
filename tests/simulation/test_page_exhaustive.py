"""G2, G3 and G4 for streams of pages on small worlds, without luck: all that can happen to them, state by state."""

# ruff: noqa: SLF001  # mutants are of steps that are nobody else's business
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from epochal.layout import once
from epochal.model.outcomes import Appended
from epochal.model.tokens import Token
from epochal.pages import (
    appending,
    attempts,
    batch,
    evidence,
    joined,
    keyed_appends,
    pruning,
    reading,
    writes,
)
from epochal.pages.attempts import Blocked
from epochal.pages.batch import Packed
from epochal.pages.evidence import Applied, NotApplied, OwnWrite, Verdict
from epochal.pages.frames import refer_to
from epochal.pages.items import Page
from epochal.pages.reading import Cursor, Part
from epochal.pages.writes import Planned
from epochal.plan.conditions import All, Present
from epochal.plan.ops import Delete as Removal
from epochal.plan.ops import Steps, Update
from tests.simulation.exploring import Budget, each_of, is_found_out, left_out
from tests.simulation.mutants import Mutant, Patch
from tests.simulation.page_actors import Actor, Call, Delete, Load, Prune, Read, Rule
from tests.simulation.page_explorer import Explorer

NEVER = Rule()
ALWAYS = Rule(full=frozenset(range(20)))
ODD = Rule(full=frozenset(range(1, 20, 2)))
EVEN = Rule(full=frozenset(range(0, 20, 2)))
LEAVING = Rule(full=frozenset(range(20)), refers=True)
TIGHT = Rule(tight=frozenset(range(20)))


def writes_of(name: str, *expects: Any, rule: Rule = NEVER, **fields: Any) -> Actor:
    """A process that appends an event for each expectation."""
    return Actor(
        does=tuple(Call(name=f"{name}{k}", expects=each, **fields) for k, each in enumerate(expects)),
        rule=rule,
    )


def two_writers_of_different_opinions() -> Explorer:
    """Each leaves a page when it likes, and appends on what it was told."""
    return Explorer(
        actors=(writes_of("a", "any", "known", rule=EVEN), writes_of("b", "any", "known", rule=ALWAYS)),
        budget=Budget(unheard=1, late=1),
    )


def three_writers_and_a_pruner() -> Explorer:
    return Explorer(
        before=(writes_of("s", "any", "any", rule=ALWAYS),),
        actors=(
            writes_of("a", "any", rule=ALWAYS),
            writes_of("b", "any", clock=1),
            Actor(does=(Prune(before=3),)),
        ),
        budget=Budget(unheard=1, late=1),
    )


def appends_that_go_out_together() -> Explorer:
    """Each write is of two or three appends, by processes that do not agree when a page is full."""
    return Explorer(
        actors=(
            writes_of("a", "any", "known", rule=ODD, ahead=1),
            writes_of("b", "any", rule=ALWAYS, ahead=2, clock=1),
            Actor(does=(Prune(before=3),)),
        ),
        budget=Budget(unheard=1, late=1),
    )


def appends_that_go_out_together_on_what_is_known() -> Explorer:
    """Each write is of two or three appends; what is left of a pruned one tells whether it was made."""
    return Explorer(
        actors=(
            writes_of("a", "none", "known", rule=ODD, ahead=1, exactly=True),
            writes_of("b", "none", "known", rule=ALWAYS, ahead=2, clock=1, exactly=True),
            Actor(does=(Prune(before=1), Prune(before=3))),
        ),
        budget=Budget(unheard=1, late=1),
    )


def an_old_token_and_a_prune() -> Explorer:
    """What is told of a page is used when the page has been emptied."""
    return Explorer(
        actors=(
            writes_of("a", "any", "known", rule=ALWAYS),
            writes_of("b", "any", "any", rule=ALWAYS),
            Actor(does=(Prune(before=2), Prune(before=3))),
        ),
        budget=Budget(unheard=1),
    )


def a_batch_that_no_page_takes() -> Explorer:
    """Pages are closed, by writers that do not agree when."""
    return Explorer(
        before=(writes_of("s", "any"),),
        actors=(writes_of("a", "any", "known", rule=TIGHT), writes_of("b", "any", "any", clock=1)),
        budget=Budget(unheard=2, late=1),
    )


def unfolds_that_move() -> Explorer:
    return Explorer(
        before=(writes_of("s", "any", unfolds="s", rule=ODD),),
        actors=(
            writes_of("a", "any", "known", rule=ALWAYS),
            writes_of("u", "any", "known", rule=ALWAYS, events=0, unfolds="u"),
            Actor(does=(Prune(before=1),)),
        ),
        budget=Budget(unheard=1, late=1),
    )


def unfolds_that_stay_behind() -> Explorer:
    """A full page has them, which is pruned meanwhile, while others keep and replace them."""
    return Explorer(
        before=(writes_of("s", "any", unfolds="s", rule=LEAVING), writes_of("t", "any", rule=LEAVING)),
        actors=(
            writes_of("a", "any", "known", rule=LEAVING),
            writes_of("u", "any", rule=LEAVING, unfolds="u"),
            Actor(does=(Prune(before=1), Prune(before=3))),
        ),
        budget=Budget(unheard=1),
    )


def a_state_that_is_loaded_meanwhile() -> Explorer:
    """In two requests, between which the page that has the unfolds may be emptied."""
    return Explorer(
        before=(writes_of("s", "any", unfolds="s", rule=LEAVING), writes_of("t", "any", rule=LEAVING)),
        actors=(
            writes_of("u", "any", rule=LEAVING, unfolds="u"),
            writes_of("a", "none", "known", rule=LEAVING),
            Actor(does=(Prune(before=3),)),
            Actor(does=(Load(),)),
        ),
    )


def a_stream_that_is_forgotten() -> Explorer:
    """Unfolds that a prune has spared go with the stream."""
    return Explorer(
        before=(
            writes_of("s", "any", unfolds="s", rule=LEAVING),
            writes_of("t", "any", rule=LEAVING),
            Actor(does=(Prune(before=2),)),
            writes_of("u", "any", unfolds="u", rule=LEAVING),
        ),
        actors=(
            writes_of("a", "any", rule=LEAVING),
            Actor(does=(Prune(before=3),)),
            Actor(does=(Delete(),)),
            Actor(does=(Load(),)),
        ),
    )


def a_stream_that_ends() -> Explorer:
    return Explorer(
        before=(writes_of("s", "any", rule=ALWAYS),),
        actors=(
            writes_of("a", "any", "known", rule=ALWAYS),
            writes_of("b", "any", rule=NEVER),
            Actor(does=(Delete(),)),
        ),
        budget=Budget(unheard=1, late=1, crashes=1),
    )


def a_stream_that_begins_anew() -> Explorer:
    return Explorer(
        before=(writes_of("s", "any", unfolds="s", rule=ALWAYS),),
        actors=(
            writes_of("a", "any", "known", rule=ODD),
            writes_of("u", "any", events=0, unfolds="u"),
            Actor(does=(Delete(leave_open=True),)),
        ),
        budget=Budget(unheard=1, late=1),
    )


def tokens_from_outside() -> Explorer:
    return Explorer(
        actors=(
            writes_of("a", "any", "outside", "version", rule=ODD),
            writes_of("b", "any", "forged", clock=1),
        ),
        budget=Budget(unheard=1),
    )


def one_key_used_twice() -> Explorer:
    """By two calls at the same time, of which one is repeated, and may die in between."""
    return Explorer(
        before=(writes_of("s", "any"),),
        actors=(
            writes_of("a", "any", "version", rule=ALWAYS, key="k"),
            writes_of("b", "any", rule=EVEN, key="k"),
            writes_of("c", "any", rule=ODD),
        ),
        budget=Budget(unheard=1, crashes=1),
    )


def unfolds_under_one_key() -> Explorer:
    return Explorer(
        before=(writes_of("s", "any", rule=ALWAYS),),
        actors=(
            writes_of("a", "any", "any", rule=ALWAYS, key="k", events=0, unfolds="u"),
            writes_of("b", "any", key="k", events=0, unfolds="u"),
            writes_of("c", "any", rule=EVEN, unfolds="c"),
        ),
        budget=Budget(unheard=1),
    )


def a_reader_of_what_grows_and_is_pruned() -> Explorer:
    return Explorer(
        before=(writes_of("s", "any", rule=NEVER),),
        actors=(
            writes_of("a", "any", "any", "any", rule=ALWAYS),
            Actor(does=(Prune(before=2),)),
            Actor(does=(Read(), Read(start=1))),
        ),
    )


def a_reader_downward() -> Explorer:
    return Explorer(
        before=(writes_of("s", "any", "any", rule=ALWAYS),),
        actors=(
            writes_of("a", "any", rule=EVEN),
            Actor(does=(Prune(before=3),)),
            Actor(does=(Read(forward=False), Read(start=1))),
        ),
    )


WORLDS = (
    two_writers_of_different_opinions,
    appends_that_go_out_together,
    appends_that_go_out_together_on_what_is_known,
    three_writers_and_a_pruner,
    an_old_token_and_a_prune,
    a_batch_that_no_page_takes,
    unfolds_that_move,
    unfolds_that_stay_behind,
    a_state_that_is_loaded_meanwhile,
    a_stream_that_is_forgotten,
    a_stream_that_ends,
    a_stream_that_begins_anew,
    tokens_from_outside,
    one_key_used_twice,
    unfolds_under_one_key,
    a_reader_of_what_grows_and_is_pruned,
    a_reader_downward,
)


DEAR = (
    appends_that_go_out_together,
    appends_that_go_out_together_on_what_is_known,
    three_writers_and_a_pruner,
    an_old_token_and_a_prune,
    a_batch_that_no_page_takes,
    unfolds_that_move,
    unfolds_that_stay_behind,
    a_stream_that_is_forgotten,
    a_stream_that_ends,
    a_stream_that_begins_anew,
)


@each_of(WORLDS, dear=DEAR)
def test_nothing_that_can_happen_loses_an_event_or_gives_an_index_twice(
    world: Callable[[], Explorer],
) -> None:
    explorer = world()

    assert explorer.explore() > 500, "a world in which hardly anything happens proves nothing"


# ------------------------------------------------------------------------------------------------------------- mutants


def pruned_pages_are_removed(patch: Patch) -> None:
    sound = pruning._update

    def removed(table: str, page: Page, wanted: Page) -> Any:
        planned = sound(table, page, wanted)
        gone = not wanted.frames and wanted.low_water == page.low_water
        return Removal(table=table, key=planned.key, condition=planned.condition) if gone else planned

    patch.setattr(pruning, "_update", removed)


def a_tombstone_is_written_on_a_full_page(patch: Patch) -> None:
    sound = pruning._end_of

    def in_place(head: Page, etag: str, *, leave_open: bool) -> Page:
        return replace(sound(head, etag, leave_open=leave_open), index=head.index)

    def ending(table: str, head: Page, wanted: Page) -> Update:
        return pruning._update(table, head, wanted)

    patch.setattr(pruning, "_end_of", in_place)
    patch.setattr(pruning, "_ending", ending)


def reckons_full(token: Token) -> bool:
    """What the rule of whoever acts says."""
    return bool(vars(writes)["is_full"](token, None))


def each_writer_reckons_whether_a_page_is_full(patch: Patch) -> None:
    sound = attempts._close_first

    def by_own_rule(table: str, batch: Packed, known: Page | Token) -> Steps[Any]:
        if reckons_full(writes.token_of(known)):
            return known
        return (yield from sound(table, batch, known))

    extend = writes.plan_extension
    patch.setattr(attempts, "_close_first", by_own_rule)
    patch.setattr(
        attempts,
        "plan_extension",
        lambda table, batch, known: (
            None
            if reckons_full(writes.token_of(known)) and writes.may_be_followed(known)
            else extend(table, batch, known)
        ),
    )


def any_append_at_our_index_is_ours(patch: Patch) -> None:
    def whoever(write: OwnWrite, page: Page | None) -> Verdict:
        if page is None or page.version < write.end:
            return NotApplied()
        return Applied(first=write.frames[0].first, end=write.end, stamp=write.stamp, page=page)

    patch.setattr(OwnWrite, "judge", whoever)


def a_full_page_is_extended(patch: Patch) -> None:
    sound = writes.unchanged

    def full_or_not(*given: Any) -> Any:
        return All(sound(*given).conditions[:2])

    patch.setattr(writes, "unchanged", full_or_not)


def a_page_is_extended_whatever_was_written_since(patch: Patch) -> None:
    patch.setattr(writes, "unchanged", lambda *_: Present("n"))


def only_the_version_guards_a_page(patch: Patch) -> None:
    sound = writes.unchanged
    patch.setattr(writes, "unchanged", lambda *given: All(sound(*given).conditions[1:]))


def a_token_from_anywhere_says_where_a_page_begins(patch: Patch) -> None:
    patch.setattr(writes, "is_own", lambda *_: True)
    patch.setattr(attempts, "is_own", lambda *_: True)


def stamps_are_what_the_clock_says(patch: Patch) -> None:
    patch.setattr(batch, "_after", lambda now, _last: now)


def a_page_is_left_without_being_closed(patch: Patch) -> None:
    def as_it_is(_table: str, _batch: Packed, known: Page | Token) -> Steps[Page | Token]:
        yield from ()
        return known

    patch.setattr(attempts, "_close_first", as_it_is)


def a_page_is_closed_whatever_was_written_since(patch: Patch) -> None:
    sound = writes.close

    def anyhow(*given: Any) -> Planned:
        planned = sound(*given)
        return replace(planned, write=replace(planned.write, condition=Present("n")))

    patch.setattr(attempts, "close", anyhow)


def unfolds_stay_on_the_page_that_is_left(patch: Patch) -> None:
    sound = writes.plan_page
    patch.setattr(
        attempts, "plan_page", lambda table, batch, known, _unfolds: sound(table, batch, known, b"")
    )


def unfolds_alone_are_written_to_a_full_page(patch: Patch) -> None:
    sound = writes.known_state

    def open_for_unfolds(table: str, batch: Packed, known: Page | Token) -> Planned | None:
        state = sound(known)
        if batch.count or state is None or not state.full:
            return extend(table, batch, known)
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(writes, "known_state", lambda _: replace(state, full=False))
            planned = extend(table, batch, known)
        if planned is None:
            return None
        condition = All(writes.unchanged(state, known.version).conditions[:2])
        return replace(planned, write=replace(planned.write, condition=condition))

    extend = writes.plan_extension
    patch.setattr(attempts, "plan_extension", open_for_unfolds)


def what_a_prune_leaves_of_the_last_page_has_no_unfolds(patch: Patch) -> None:
    sound = pruning._pruned
    patch.setattr(pruning, "_pruned", lambda *given, **_: sound(*given, last=False, keeps=False))


def a_prune_empties_the_page_that_has_the_unfolds(patch: Patch) -> None:
    sound = pruning._pruned
    patch.setattr(pruning, "_pruned", lambda *given, last, **_: sound(*given, last=last, keeps=last))


def a_prune_passes_unfolds_for_good(patch: Patch) -> None:
    sound = pruning._write_low_water

    def too_much(table: str, page: Page, mark: int, *, above: int = 0) -> Steps[None]:
        return sound(table, page, page.version + 1 if above else mark, above=above)

    patch.setattr(pruning, "_write_low_water", too_much)


def unfolds_of_another_page_are_asked_for_once(patch: Patch) -> None:
    def once(head: Page) -> Steps[Page]:
        if head.unfolds_at is None:
            return head
        holder = yield from reading.load_page(head.table, head.stream, head.unfolds_at)
        return replace(head, unfolds=b"" if holder is None else holder.unfolds)

    patch.setattr(reading, "load_missing_unfolds", once)
    patch.setattr(attempts, "load_missing_unfolds", once)


def a_page_without_unfolds_of_its_own_is_named(patch: Patch) -> None:
    patch.setattr(attempts, "unfolds_for_next", lambda page: refer_to(page.index))


def a_refused_append_is_not_looked_for(patch: Patch) -> None:
    def unasked(*_: Any, **__: Any) -> Steps[None]:
        yield from ()

    patch.setattr(appending, "outcome_after_refusal", unasked)


def an_index_that_was_pruned_counts_as_never_written(patch: Patch) -> None:
    patch.setattr(evidence, "is_pruned", lambda *_: False)


def a_read_trusts_a_page_that_has_grown(patch: Patch) -> None:
    sound = reading._onward

    def gapless(cursor: Cursor, pages: Any) -> Part | None:
        listed = tuple(pages)
        part = sound(cursor, listed)
        after = [page for page in listed if part is not None and page.index > part.cursor.at]
        if part is None or not after:
            return part
        rest = sound(replace(part.cursor, at=after[0].index), after)
        return part if rest is None else replace(rest, spans=(*part.spans, *rest.spans))

    patch.setattr(reading, "_onward", gapless)


def what_another_made_under_the_key_is_taken_for_what_was_planned(patch: Patch) -> None:
    sound = appending.outcome_under_key

    def as_planned(*given: Any, refused: Blocked | None = None, **how: Any) -> Steps[Any]:
        result = yield from sound(*given, refused=refused, **how)
        if refused and refused.planned and isinstance(result, Appended) and not result.replayed:
            return replace(result, token=refused.planned.token)
        return result

    patch.setattr(appending, "outcome_under_key", as_planned)


def a_key_is_not_looked_for(patch: Patch) -> None:
    def unasked(*_: Any, **__: Any) -> Steps[None]:
        yield from ()

    patch.setattr(keyed_appends, "outcome_under_key", unasked)
    patch.setattr(appending, "outcome_under_key", unasked)


def a_key_of_unfolds_is_not_remembered(patch: Patch) -> None:
    def unrecorded(given: Any, expected: Any, _record: Any) -> Steps[Any]:
        return appending.append(given.table, given.batch, expected)

    patch.setattr(once, "unfold_once", unrecorded)


def a_page_without_events_is_left(patch: Patch) -> None:
    patch.setattr(writes, "_is_full", lambda _index, token, *_, **__: reckons_full(token))


def what_goes_out_together_is_found_where_its_last_begins(patch: Patch) -> None:
    sound = OwnWrite.judge

    def at_its_last(write: OwnWrite, page: Page | None) -> Verdict:
        verdict = sound(write, page)
        return replace(verdict, first=write.frames[-1].first) if isinstance(verdict, Applied) else verdict

    patch.setattr(OwnWrite, "judge", at_its_last)


def what_went_out_together_is_not_looked_for(patch: Patch) -> None:
    patch.setattr(joined, "own_outcome", lambda *_: None)


def what_went_out_together_is_taken_for_made_by_less_than_all(patch: Patch) -> None:
    sound = OwnWrite.judge

    def hasty(write: OwnWrite, page: Page | None) -> Verdict:
        verdict = sound(write, page)
        if page is None or (isinstance(verdict, NotApplied) and page.version < write.end):
            return verdict
        return Applied(first=write.frames[0].first, end=write.end, stamp=write.stamp, page=page)

    patch.setattr(OwnWrite, "judge", hasty)


def what_goes_out_together_has_one_stamp(patch: Patch) -> None:
    frames = Packed.frames

    def alike(self: Packed, stamp: bytes) -> Any:
        return tuple(frame._replace(stamp=stamp) for frame in frames(self, stamp))

    patch.setattr(Packed, "frames", alike)


@left_out(
    (pruned_pages_are_removed, an_old_token_and_a_prune, "a fork"),
    (a_tombstone_is_written_on_a_full_page, a_stream_that_ends, "after"),
    (each_writer_reckons_whether_a_page_is_full, two_writers_of_different_opinions, "a fork"),
    (any_append_at_our_index_is_ours, two_writers_of_different_opinions, "and it is at"),
    (a_full_page_is_extended, a_stream_that_ends, "after a tombstone"),
    (a_page_is_extended_whatever_was_written_since, two_writers_of_different_opinions, None),
    (only_the_version_guards_a_page, a_stream_that_begins_anew, "another state"),
    (a_token_from_anywhere_says_where_a_page_begins, tokens_from_outside, "a fork|another state"),
    (
        what_goes_out_together_is_found_where_its_last_begins,
        appends_that_go_out_together,
        "and it is at",
    ),
    (
        what_went_out_together_is_not_looked_for,
        appends_that_go_out_together_on_what_is_known,
        "told of a conflict, and it is at",
    ),
    (
        what_went_out_together_is_taken_for_made_by_less_than_all,
        appends_that_go_out_together_on_what_is_known,
        "and it is at",
    ),
    (what_goes_out_together_has_one_stamp, appends_that_go_out_together, "go back|do not increase"),
    (stamps_are_what_the_clock_says, three_writers_and_a_pruner, "go back|do not increase"),
    (a_page_is_left_without_being_closed, a_batch_that_no_page_takes, "a fork"),
    (a_page_is_closed_whatever_was_written_since, a_batch_that_no_page_takes, None),
    (unfolds_stay_on_the_page_that_is_left, unfolds_that_move, "unfolds were lost"),
    (unfolds_alone_are_written_to_a_full_page, unfolds_that_move, None),
    (what_a_prune_leaves_of_the_last_page_has_no_unfolds, unfolds_that_move, "unfolds were lost"),
    (a_prune_empties_the_page_that_has_the_unfolds, unfolds_that_stay_behind, "unfolds were lost"),
    (a_prune_passes_unfolds_for_good, a_stream_that_is_forgotten, "outlive the stream"),
    (unfolds_of_another_page_are_asked_for_once, a_state_that_is_loaded_meanwhile, "never been"),
    (a_page_without_unfolds_of_its_own_is_named, unfolds_that_stay_behind, None),
    (a_refused_append_is_not_looked_for, two_writers_of_different_opinions, "and it is at"),
    (an_index_that_was_pruned_counts_as_never_written, an_old_token_and_a_prune, "and it is at|twice"),
    (a_read_trusts_a_page_that_has_grown, a_reader_of_what_grows_and_is_pruned, "read past"),
    (
        what_another_made_under_the_key_is_taken_for_what_was_planned,
        one_key_used_twice,
        "whether the page is full|where no page ends",
    ),
    (a_key_is_not_looked_for, one_key_used_twice, "events under one key"),
    (a_key_of_unfolds_is_not_remembered, unfolds_under_one_key, "written twice"),
    (a_page_without_events_is_left, unfolds_that_move, None),
)
def test_a_rule_left_out_is_found_out(
    mutant: Mutant, world: Callable[[], Explorer], found: str | None, monkeypatch: Patch
) -> None:
    is_found_out(mutant, world, found, monkeypatch)
