"""Appends to a named stream and a tag in one commit, without luck: all that can happen to small worlds."""

# ruff: noqa: SLF001  # mutants are of steps that are nobody else's business

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from epochal.layout import key_records
from epochal.model.moments import Ticks
from epochal.model.outcomes import Conflict
from epochal.model.stream_names import TAG_STREAMS
from epochal.pages import commit, several_key, streams_part
from epochal.pages.evidence import Unknowable, Verdict
from epochal.pages.items import page_key
from epochal.pages.tags import append as tagged
from epochal.pages.tags import batch as tagged_batch
from epochal.pages.writes import Planned
from epochal.plan.conditions import Absent
from epochal.plan.ops import Check, Steps
from tests.simulation.exploring import Budget, each_of, is_found_out, left_out
from tests.simulation.mixed_explorer import Delete, Mixed, MixedExplorer, act
from tests.simulation.mutants import Mutant, Patch
from tests.simulation.page_actors import Rule
from tests.simulation.page_verdicts import never_applied
from tests.simulation.several_explorer import A, Actor, Prune

NEVER = Rule()
ALWAYS = Rule(full=frozenset(range(20)))
ODD = Rule(full=frozenset(range(1, 20, 2)))
TIGHT = Rule(tight=frozenset(range(20)))

T, U = "t:1", "u:1"


def does(*moves: Any, rule: Rule = NEVER) -> Actor:
    return Actor(does=moves, rule=rule)


def mixed(name: str, **fields: Any) -> Mixed:
    return Mixed(name=name, **{"streams": (A,), "tags": (T,), **fields})


def explorer(*actors: Actor, **fields: Any) -> MixedExplorer:
    return MixedExplorer(actors=actors, acts=act, **fields)


def two_of_a_stream_and_a_tag() -> MixedExplorer:
    """Both expect what they know of the stream, and nothing new of the tag; one goes on from what it was told."""
    return explorer(
        does(mixed("a0", expects="none", fail_if=(T,)), mixed("a1", expects="known", fail_if=(T,)), rule=ODD),
        does(mixed("b0", fail_if=(T,), clock=1), mixed("b1", expects="known", fail_if=(T,)), rule=ALWAYS),
        budget=Budget(unheard=1, late=1),
    )


def one_among_writers_of_either() -> MixedExplorer:
    """Appends to the stream alone, and to the tag alone, take the place of the next like any other."""
    return explorer(
        does(mixed("a0", fail_if=(T,)), mixed("a1", expects="known", fail_if=(T,)), rule=ODD),
        does(mixed("b", tags=(), clock=9), rule=ALWAYS),
        does(mixed("c", streams=(), clock=1)),
        budget=Budget(unheard=1, late=1),
    )


def one_whose_stream_is_pruned() -> MixedExplorer:
    """The stream cannot tell any more whether the append was made; the tag's page tells."""
    return explorer(
        does(mixed("a", fail_if=(T,)), rule=ALWAYS),
        does(mixed("b", tags=()), mixed("c", tags=()), rule=ALWAYS),
        does(Prune(stream=A, before=3)),
        budget=Budget(unheard=1, late=1),
    )


def one_whose_stream_is_deleted() -> MixedExplorer:
    """Nothing is under the tag of an append that the tombstone has refused; what was there stays, and tells."""
    return explorer(
        does(mixed("a", fail_if=(T,)), mixed("a1", expects="known"), rule=ALWAYS),
        does(mixed("b", expects="any", clock=1)),
        does(Delete(stream=A)),
        budget=Budget(unheard=1, late=1),
    )


def one_whose_stream_is_emptied() -> MixedExplorer:
    """It goes on at its next index."""
    return explorer(
        does(mixed("a"), mixed("a1", expects="known"), rule=ODD),
        does(mixed("b", expects="any", fail_if=(T,), clock=1), rule=ALWAYS),
        does(Delete(stream=A, leave_open=True)),
        budget=Budget(unheard=1, late=1),
    )


def a_query_of_another_tag() -> MixedExplorer:
    """Each writes the stream and one tag, on the condition of the other's: fences that are not written."""
    return explorer(
        does(mixed("a", fail_if=(U,)), rule=ODD),
        does(mixed("b", tags=(U,), fail_if=(T,), clock=1)),
        does(mixed("c", streams=(), tags=(U,)), rule=ALWAYS),
        budget=Budget(unheard=1, late=1),
    )


def pages_that_must_be_closed_first() -> MixedExplorer:
    return explorer(
        does(mixed("a"), mixed("a1", expects="known", fail_if=(T,)), rule=TIGHT),
        does(mixed("b", streams=(), clock=1)),
        before=(does(mixed("s")),),
        budget=Budget(unheard=1, late=1),
    )


def two_under_one_key() -> MixedExplorer:
    """Each asks twice, the second time where the stream and the query refuse it."""
    return explorer(
        does(
            mixed("a", expects="none", fail_if=(T,), key="k"),
            mixed("a2", expects="none", key="k"),
            rule=ALWAYS,
        ),
        does(mixed("b", fail_if=(T,), key="k", clock=1), mixed("b2", fail_if=(T,), key="k")),
        does(Prune(stream=A, before=1)),
        budget=Budget(unheard=1, late=1),
    )


def a_stream_without_tags_on_the_condition_of_a_query() -> MixedExplorer:
    """What is only fenced is not written: the stream alone tells whether it was."""
    return explorer(
        does(
            mixed("a", tags=(), fail_if=(T,)), mixed("a1", tags=(), expects="known", fail_if=(T,)), rule=ODD
        ),
        does(mixed("b", fail_if=(T,), clock=1)),
        does(mixed("c", streams=()), rule=ALWAYS),
        budget=Budget(unheard=1, late=1),
    )


def one_key_with_a_condition_and_without() -> MixedExplorer:
    """A repeat is one, whether it names a condition or not: the stream is searched, where the record does not tell."""
    return explorer(
        does(mixed("a", tags=(), fail_if=(T,), key="k"), mixed("a2", tags=(), key="k"), rule=ALWAYS),
        does(mixed("b", tags=(), key="l", clock=1), mixed("b2", tags=(), fail_if=(T,), key="l")),
        budget=Budget(unheard=1, late=1),
    )


WORLDS = (
    two_of_a_stream_and_a_tag,
    one_among_writers_of_either,
    one_whose_stream_is_pruned,
    one_whose_stream_is_deleted,
    one_whose_stream_is_emptied,
    a_query_of_another_tag,
    pages_that_must_be_closed_first,
    two_under_one_key,
    a_stream_without_tags_on_the_condition_of_a_query,
    one_key_with_a_condition_and_without,
)


@each_of(
    WORLDS,
    dear=(
        one_among_writers_of_either,
        one_whose_stream_is_pruned,
        one_whose_stream_is_deleted,
        one_whose_stream_is_emptied,
    ),
)
def test_an_append_is_in_its_stream_and_under_its_tag_once_or_nowhere(
    world: Callable[[], MixedExplorer],
) -> None:
    found = world()

    assert found.explore() > 500, "a world in which hardly anything happens proves nothing"
    assert "Appended" in found.met


# ------------------------------------------------------------------------------------------------------------- mutants


def pages_of_tags_do_not_tell(patch: Patch) -> None:
    sound = commit._judge

    def streams_alone(table: str, write: Planned, item: Any, *, lost: bool) -> Verdict:
        of_tag = write.key["p"]["S"].startswith(TAG_STREAMS)
        return Unknowable() if of_tag else sound(table, write, item, lost=lost)

    patch.setattr(commit, "_judge", streams_alone)


def a_refused_append_is_not_looked_for(patch: Patch) -> None:
    patch.setattr(commit, "_judge", never_applied)


def each_page_gets_a_stamp_of_its_own(patch: Patch) -> None:
    sound = commit._plan

    def apart(wanted: Any, *how: Any) -> Steps[Any]:
        return (yield from sound(replace(wanted, one_stamp=False), *how))

    patch.setattr(commit, "_plan", apart)


def a_page_that_had_to_be_closed_has_a_stamp_of_its_own(patch: Patch) -> None:
    patch.setattr(commit, "time_of", lambda _: Ticks(1))


def homes_are_told_without_what_was_there_before(patch: Patch) -> None:
    sound = tagged_batch.TagShare.on

    def from_the_beginning(self: Any, batch: Any, pages: Any, homes: Any) -> Any:
        return sound(self, batch, pages, dict.fromkeys(homes, 0))

    patch.setattr(tagged_batch.TagShare, "on", from_the_beginning)


def streams_and_tags_are_written_one_by_one(patch: Patch) -> None:
    patch.setattr(commit, "_operation", lambda plan: plan.all[0])


def what_is_in_the_way_is_not_held_to_what_was_expected(patch: Patch) -> None:
    patch.setattr(streams_part, "accepts", lambda *_: True)


def a_tag_that_moved_is_followed_without_looking_for_matches(patch: Patch) -> None:
    def nothing(_site: Any, _condition: Any, position: Any, heads: Any) -> Steps[Any]:
        yield from ()
        until = {tag: heads[tag].reached for tag in position.seen}
        return Conflict(events=(), position=replace(position, seen=until))

    patch.setattr(tagged, "_in_the_way", nothing)


def fences_are_not_checked(patch: Patch) -> None:
    def anything(table: str, stream: str, _: Any) -> Steps[Any]:
        yield from ()
        return Check(table=table, key=page_key(stream, 0), condition=Absent("nothing"))

    patch.setattr(commit, "fence", anything)


def the_record_is_no_part_of_the_transaction(patch: Patch) -> None:
    kept = key_records.make_record_put
    patch.setattr(several_key, "make_record_put", lambda *given: replace(kept(*given), condition=None))


def a_conflict_is_told_without_asking_for_the_record(patch: Patch) -> None:
    def unasked(*_: Any) -> Steps[None]:
        yield from ()

    patch.setattr(several_key, "load_record", unasked)


@left_out(
    (pages_of_tags_do_not_tell, one_whose_stream_is_pruned, "a tag's page tells"),
    (a_refused_append_is_not_looked_for, two_of_a_stream_and_a_tag, "times|it is|and it is at"),
    (each_page_gets_a_stamp_of_its_own, one_among_writers_of_either, "several stamps"),
    (
        a_page_that_had_to_be_closed_has_a_stamp_of_its_own,
        pages_that_must_be_closed_first,
        "several stamps",
    ),
    (homes_are_told_without_what_was_there_before, two_of_a_stream_and_a_tag, "says that"),
    (streams_and_tags_are_written_one_by_one, two_of_a_stream_and_a_tag, "not in the other"),
    (
        what_is_in_the_way_is_not_held_to_what_was_expected,
        two_of_a_stream_and_a_tag,
        "expected|was there",
    ),
    (a_tag_that_moved_is_followed_without_looking_for_matches, two_of_a_stream_and_a_tag, "had seen"),
    (fences_are_not_checked, a_query_of_another_tag, "had seen"),
    (the_record_is_no_part_of_the_transaction, two_under_one_key, "times|and it is at|a fork"),
    (
        a_conflict_is_told_without_asking_for_the_record,
        two_under_one_key,
        "a repeat is told",
    ),
)
def test_a_rule_left_out_is_found_out(
    mutant: Mutant, world: Callable[[], MixedExplorer], found: str, monkeypatch: Patch
) -> None:
    is_found_out(mutant, world, found, monkeypatch)
