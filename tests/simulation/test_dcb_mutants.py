"""The simulation is worth its time: take any one rule out of the layout of tagged events, and a seed finds out.

Each mutant leaves out what DESIGN §5.12 or a module asks for. The seeds are those that the unchanged layout passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest

from epochal.contrib.sekiban import append, entries, reading, transaction
from epochal.contrib.sekiban import listings as tag_listings
from epochal.contrib.sekiban import store as dcb_events
from epochal.contrib.sekiban.items import TagSite
from epochal.contrib.sekiban.transaction import Planned, TaggedBatch, plan
from epochal.layout import queries
from epochal.layout.queries import AppendCondition, Fence, fence
from epochal.model.events import Event, Recorded
from epochal.model.outcomes import Appended, Conflict
from epochal.model.positions import Position, Reached
from epochal.model.tags import Trail
from epochal.plan.conditions import Absent
from epochal.plan.ops import Check, Put, Steps, Transact
from epochal.store import tagged
from tests.simulation.dcb_simulation import replay
from tests.simulation.mutants import Mutants, Patch

SEEDS = 600

Heads = Mapping[str, Reached]
MUTANTS = Mutants()
mutant = MUTANTS.add


def rewriting(patch: Patch, change: Callable[[Planned], Sequence[Any]]) -> None:
    """Appends send other writes than planned."""

    def planned(*given: Any) -> Planned:
        right = plan(*given)
        transact = Transact(writes=tuple(change(right)), token=right.transact.token)
        return replace(right, transact=transact)

    patch.setattr(append, "plan", planned)


def is_head(write: Any) -> bool:
    return isinstance(write, Put) and write.item["sk"]["S"] == "#"


@mutant("violated")
def fences_are_not_checked(patch: Patch) -> None:
    def unchecked(right: Planned) -> list[Any]:
        return [
            replace(write, condition=Absent("never")) if isinstance(write, Check) else write
            for write in right.transact.writes
        ]

    rewriting(patch, unchecked)


@mutant("a gap|do not increase|violated|its head")
def heads_are_moved_whatever_they_say(patch: Patch) -> None:
    def anyhow(right: Planned) -> list[Any]:
        return [
            replace(write, condition=None) if is_head(write) else write for write in right.transact.writes
        ]

    rewriting(patch, anyhow)


@mutant("lacks its head|a gap|its head|violated")
def the_head_of_one_of_the_tags_is_forgotten(patch: Patch) -> None:
    def planned(site: TagSite, *given: Any) -> Planned:
        right = plan(site, *given)
        forgotten = [tag for tag in right.heads if tag in right.reached][1:2]
        left = [
            write
            for write in right.transact.writes
            if not (is_head(write) and write.item["pk"] in [site.keys.head(tag)["pk"] for tag in forgotten])
        ]
        kept = tuple(tag for tag in right.heads if tag not in forgotten)
        return replace(right, transact=replace(right.transact, writes=tuple(left)), heads=kept)

    patch.setattr(append, "plan", planned)


@mutant("lacks its head|Present|violated")
def type_heads_are_not_moved(patch: Patch) -> None:
    tags_of = transaction.tags_of

    def without(event: Event, *, type_heads: bool) -> tuple[str, ...]:
        del type_heads
        return tags_of(event, type_heads=False)

    patch.setattr(append, "tags_of", without)
    patch.setattr(transaction, "tags_of", without)


@mutant("violated|position and events differ")
def heads_are_read_after_the_events(patch: Patch) -> None:
    everything = reading.DcbReads.everything

    def late(reads: reading.DcbReads, *given: Any) -> Steps[Any]:
        seen = yield from everything(reads, *given)
        return replace(seen, position=(yield from reading.stand(reads.site, reads.fenced)))

    patch.setattr(reading.DcbReads, "everything", late)


@mutant("position and events differ|a false conflict|violated")
def entries_beyond_the_head_are_not_cut_off(patch: Patch) -> None:
    matches = reading.matches

    def beyond(
        site: TagSite, fenced: Fence, before: Heads, until: Heads, *ids: Any, **end: Any
    ) -> Steps[Any]:
        heads = yield from reading.read_heads(site, list(until))
        return (yield from matches(site, fenced, before, heads, *ids, **end))

    patch.setattr(reading, "matches", beyond)


@mutant("violated|position and events differ|acknowledged", dear=True)
def an_event_is_new_only_within_the_reach_of_every_item(patch: Patch) -> None:
    is_new = queries.is_new

    def within_all(event: Recorded, fenced: Fence, before: Heads, until: Heads) -> bool:
        return is_new(event, fenced, before, until) and all(
            event.place <= until[tag].last
            for item, tags in zip(fenced.query.items, fenced.tags, strict=True)
            for tag in set(tags).intersection(event.tags)
            if item.matches(event.type, event.tags)
        )

    patch.setattr(reading, "is_new", within_all)


@mutant("a false conflict|read again", dear=True)
def an_event_is_new_that_another_item_has_shown(patch: Patch) -> None:
    is_new = queries.is_new

    def through_any(event: Recorded, fenced: Fence, before: Heads, until: Heads) -> bool:
        return any(is_new(event, fenced, {tag: before[tag]}, until) for tag in before) or (
            not before and is_new(event, fenced, before, until)
        )

    patch.setattr(reading, "is_new", through_any)


@mutant("no transaction wrote|twice")
def an_event_is_put_whatever_is_there(patch: Patch) -> None:
    def anyhow(right: Planned) -> list[Any]:
        return [
            replace(write, condition=None)
            if isinstance(write, Put) and write.condition == Absent("pk") and not is_head(write)
            else write
            for write in right.transact.writes
        ]

    rewriting(patch, anyhow)


@mutant("rejected, yet", dear=True)
def own_events_are_not_looked_for_where_a_condition_fails(patch: Patch) -> None:
    patch.setattr(append, "append", append._append)  # noqa: SLF001  # what the rule is wrapped around
    patch.setattr(dcb_events, "append", append._append)  # noqa: SLF001


@mutant("do not increase|order|a gap|but its entries differ")
def an_id_is_what_the_clock_says(patch: Patch) -> None:
    patch.setattr(transaction, "later_than", lambda proposed, *_: proposed)


@mutant("do not increase|order|a gap|but its entries differ")
def an_id_exceeds_those_of_one_tag_only(patch: Patch) -> None:
    recorded = transaction._recorded  # noqa: SLF001  # where ids are chosen

    def by_one(site: TagSite, batch: TaggedBatch, heads: Heads) -> Iterator[Recorded]:
        of_first = min(heads, default="")
        known = {tag: replace(reached, last="0" * 30) for tag, reached in heads.items() if tag != of_first}
        return recorded(site, batch, {**heads, **known})

    patch.setattr(transaction, "_recorded", by_one)


@mutant("another query was accepted|violated")
def a_position_of_another_query_is_accepted(patch: Patch) -> None:
    begin = append._position  # noqa: SLF001  # what takes it up

    def careless(site: TagSite, batch: TaggedBatch, condition: AppendCondition) -> Steps[Any]:
        if condition.after is not None:
            heads = yield from reading.read_heads(site, condition.fence.all_tags)
            after = replace(condition.after, seen={**heads, **condition.after.seen})
            condition = replace(condition, after=after)
        return (yield from begin(site, batch, condition))

    patch.setattr(append, "_position", careless)
    patch.setattr(tagged, "fence_after", lambda query, _, type_heads: fence(query, type_heads=type_heads))


@mutant("violated")
def an_event_tells_the_position_of_the_whole_read(patch: Patch) -> None:
    patch.setattr(Trail, "at", lambda self, _: self.end)


@mutant("lost by a listing", dear=True)
def a_listing_is_cut_between_equal_ids(patch: Patch) -> None:
    patch.setattr(tag_listings, "until_whole", islice)


@mutant("violated")
def a_moved_fence_is_followed_without_looking_for_matches(patch: Patch) -> None:
    def nothing(
        _site: TagSite, _batch: TaggedBatch, _: AppendCondition, position: Position, until: Heads
    ) -> Steps[Conflict]:
        yield from ()
        return Conflict(events=(), position=replace(position, seen=until))

    patch.setattr(append, "_in_the_way", nothing)


@mutant("violated")
def a_replay_hands_out_the_position_of_now(patch: Patch) -> None:
    def now(
        site: TagSite, batch: TaggedBatch, condition: AppendCondition | None = None, *heads: Any
    ) -> Steps[Any]:
        answer = yield from append.append(site, batch, condition, *heads)
        if isinstance(answer, Appended) and answer.replayed and condition is not None:
            answer = replace(answer, position=(yield from reading.stand(site, condition.fence)))
        return answer

    patch.setattr(dcb_events, "append", now)


def nothing_settled(*_: Any) -> Steps[dict[str, Any]]:
    yield from ()
    return {}


@mutant("violated|missing|differ|not the last|lost by", dear=True)
def an_event_that_a_plain_read_does_not_find_has_expired(patch: Patch) -> None:
    patch.setattr(reading, "settled_events", nothing_settled)


@mutant("but its entries differ", dear=True)
def an_entry_that_does_not_show_yet_is_lost(patch: Patch) -> None:
    patch.setattr(entries, "LOOKS", 1)


@mutant("some ids are stored already", dear=True)
def half_of_an_append_that_shows_is_all_of_it(patch: Patch) -> None:
    patch.setattr(append, "settled_events", nothing_settled)


@mutant("a condition was violated", begin=21)
def what_others_append_during_a_pause_is_not_looked_at(patch: Patch) -> None:
    class Fresh(dict[str, Reached]):
        """Heads as they were read after a pause; those at the beginning are put together with others."""

    advance = append._advance  # noqa: SLF001  # what looks at them

    def read_heads(site: TagSite, tags: Sequence[str]) -> Steps[dict[str, Reached]]:
        return Fresh((yield from reading.read_heads(site, tags)))

    def careless(*given: Any) -> Steps[Any]:
        *_, condition, position, heads = given
        if condition is None or not isinstance(heads, Fresh):
            return (yield from advance(*given))
        return replace(position, seen={tag: heads[tag] for tag in position.seen})

    patch.setattr(append, "read_heads", read_heads)
    patch.setattr(append, "_advance", careless)


@pytest.mark.parametrize("name", MUTANTS.names())
def test_a_seed_finds_out(name: str, monkeypatch: Patch) -> None:
    MUTANTS.find_out(name, monkeypatch, replay, SEEDS)
