"""Events with ids in streams of pages, on small worlds: all that can happen to batches that are sent again."""

# mutants are of steps that are nobody else's business
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from epochal.pages import identified
from epochal.pages.evidence import Applied, LookFurther, NotApplied, SameIds, Unknowable, Verdict
from epochal.pages.items import Page
from epochal.plan.ops import Steps
from tests.simulation.exploring import Budget, is_found_out, left_out
from tests.simulation.mutants import Mutant, Patch
from tests.simulation.page_actors import Actor, Call, Expects, Prune, Rule
from tests.simulation.page_explorer import Explorer

ALWAYS = Rule(full=frozenset(range(20)))
ODD = Rule(full=frozenset(range(1, 20, 2)))


def sender(name: str, *ids: int, expects: Expects = "any", rule: Rule = ALWAYS) -> Actor:
    """A process that appends events of these ids."""
    return Actor(does=(Call(name=name, expects=expects, ids=ids),), rule=rule)


def others(name: str, count: int = 1, rule: Rule = ALWAYS) -> Actor:
    """A process that appends events without ids, each on a page of its own where the rule is so."""
    return Actor(does=tuple(Call(name=f"{name}{k}") for k in range(count)), rule=rule)


def two_send_the_same_batch() -> Explorer:
    """Another appends in between, on a page of its own."""
    return Explorer(
        before=(others("s"),),
        actors=(sender("a", 1, 2), sender("b", 1, 2, rule=ODD), others("c")),
        budget=Budget(unheard=1, late=1),
    )


def two_begin_a_stream_with_the_same_batch() -> Explorer:
    """One of them may have died before it was sent again; what follows is on other pages."""
    return Explorer(
        actors=(sender("a", 1, 2, expects="none"), sender("b", 1, 2, expects="none"), others("c", 2)),
        budget=Budget(unheard=1, crashes=1),
    )


def a_batch_and_a_part_of_it() -> Explorer:
    return Explorer(
        before=(others("s"),),
        actors=(sender("a", 1, 2, 3), sender("b", 2, 3, rule=ODD), sender("d", 2, 1)),
        budget=Budget(unheard=1),
    )


def the_same_batch_wherever_and_at_a_place() -> Explorer:
    """Who expects a place is in conflict with all but the batch there."""
    return Explorer(
        actors=(sender("a", 1, 2, expects="none"), sender("b", 1, 2), others("c")),
        budget=Budget(unheard=1, late=1),
    )


def a_batch_that_is_pruned() -> Explorer:
    """Before it is sent again by one who expects a place, and while another is at it."""
    return Explorer(
        actors=(
            sender("a", 1, 2, expects="none"),
            sender("b", 1, 2, expects="none"),
            others("c"),
            Actor(does=(Prune(before=2),)),
        ),
    )


def two_batches_that_end_alike() -> Explorer:
    """At the same place, so that one of them is refused."""
    return Explorer(
        actors=(sender("a", 1, 2, expects="none"), sender("b", 3, 2, expects="none"), others("c", rule=ODD)),
        budget=Budget(unheard=1),
    )


WORLDS = (
    two_send_the_same_batch,
    two_begin_a_stream_with_the_same_batch,
    a_batch_and_a_part_of_it,
    the_same_batch_wherever_and_at_a_place,
    a_batch_that_is_pruned,
    two_batches_that_end_alike,
)


@pytest.mark.parametrize("world", WORLDS)
def test_no_id_is_appended_twice_and_what_is_said_of_a_batch_sent_again_is_true(
    world: Callable[[], Explorer],
) -> None:
    explorer = world()

    assert explorer.explore() > 100, "a world in which hardly anything happens proves nothing"


def test_the_worlds_meet_all_that_there_is_to_meet() -> None:
    met = set[str]()
    for world in WORLDS:
        explorer = world()
        explorer.explore()
        met |= explorer.met

    assert met >= {"Appended", "Conflict", "Taken", "Undetermined"}


# ------------------------------------------------------------------------------------------------------------- mutants


def a_refused_batch_is_not_looked_for(patch: Patch) -> None:
    def unasked(*_: Any, **__: Any) -> Steps[None]:
        yield from ()

    patch.setattr(identified, "earlier_outcome", unasked)


def the_last_page_is_not_looked_at(patch: Patch) -> None:
    def unasked(*_: Any) -> Steps[None]:
        yield from ()

    patch.setattr(identified, "outcome_on_last_pages", unasked)


def only_the_last_page_is_looked_at(patch: Patch) -> None:
    sound = SameIds.judge

    def only(sought: SameIds, page: Page) -> Verdict:
        verdict = sound(sought, page)
        return Unknowable() if isinstance(verdict, LookFurther) else verdict

    patch.setattr(SameIds, "judge", only)


def one_id_is_enough(patch: Patch) -> None:
    def of_its_first(sought: SameIds) -> int | None:
        lowest = sought.end - len(sought.labels)
        return lowest + sought.labels.index(sought.ids[0]) if sought.ids[0] in sought.labels else None

    patch.setattr(SameIds, "find", of_its_first)


def a_part_of_a_batch_is_news(patch: Patch) -> None:
    patch.setattr(SameIds, "taken", None)


def a_batch_at_a_place_need_not_be_there_whole(patch: Patch) -> None:
    def begun(sought: SameIds) -> int | None:
        return sought.first if sought.labels[-1:] == sought.ids[-1:] else None

    patch.setattr(SameIds, "shows_others", lambda _: False)
    patch.setattr(SameIds, "find", begun)


def what_is_pruned_was_never_there(patch: Patch) -> None:
    sound = SameIds.judge

    def sure(sought: SameIds, page: Page) -> Verdict | LookFurther:
        verdict = sound(sought, page)
        return NotApplied() if isinstance(verdict, Unknowable) else verdict

    patch.setattr(SameIds, "judge", sure)


def a_batch_that_was_found_is_called_new(patch: Patch) -> None:
    sound = Applied.appended
    patch.setattr(Applied, "appended", lambda applied, **_: sound(applied, replayed=False))


@left_out(
    (a_refused_batch_is_not_looked_for, two_send_the_same_batch, "appended twice"),
    (the_last_page_is_not_looked_at, two_send_the_same_batch, "appended twice"),
    (only_the_last_page_is_looked_at, two_send_the_same_batch, "evidence is there"),
    (one_id_is_enough, a_batch_and_a_part_of_it, "told . to ."),
    (a_part_of_a_batch_is_news, a_batch_and_a_part_of_it, "appended twice"),
    (a_batch_at_a_place_need_not_be_there_whole, two_batches_that_end_alike, "told . to ."),
    (what_is_pruned_was_never_there, a_batch_that_is_pruned, "was made before"),
    (a_batch_that_was_found_is_called_new, two_begin_a_stream_with_the_same_batch, "it is another's"),
)
def test_a_rule_of_ids_left_out_is_found_out(
    mutant: Mutant, world: Callable[[], Explorer], found: str | None, monkeypatch: Patch
) -> None:
    is_found_out(mutant, world, found, monkeypatch)
