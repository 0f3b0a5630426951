"""The world with everything is worth its time: it finds bugs that show only where the parts of the pipeline meet.

The seeds are those that the unchanged code passes.
"""

# ruff: noqa: SLF001  # mutants are of steps that are nobody else's business
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from epochal.care.auditor import Auditor
from epochal.contrib.sekiban import history as tagged_events
from epochal.contrib.sekiban import port as tags
from epochal.feed import events, notices
from epochal.feed.events import FeedEvent
from epochal.feed.indexer import Indexer, Report
from epochal.feed.stream_records import Record
from epochal.hosting import reaction_function, wakeups
from epochal.hosting.wakeups import Woken
from epochal.index.checkpoints import Checkpoint
from epochal.index.group_state import GroupState
from epochal.index.groups import group_stream
from epochal.index.ingestion import Ingested
from epochal.layout.registry import source_of
from epochal.model.events import Recorded
from epochal.reactions import group_member, page_tasks, reactor
from tests.simulation import simulate
from tests.simulation.mutants import Mutants, Patch
from tests.simulation.system_checks import play

SEEDS = 600

MUTANTS = Mutants()
mutant = MUTANTS.add


# -------------------------------------------------------------------------------------- from the tables to the index


@mutant("lacked what was delivered")
def an_indexer_forgets_the_last_record_of_a_batch(patch: Patch) -> None:
    index = Indexer.index

    def silent(self: Indexer, records: Iterable[Record]) -> Report:
        return replace(index(self, list(records)[:-1]), failed=())

    patch.setattr(Indexer, "index", silent)


@mutant("lacked what was delivered|is not all in the feed|verify finds")
def events_without_tags_are_no_part_of_the_feed(patch: Patch) -> None:
    tag_of = tags._tag_of
    patch.setattr(tags, "_tag_of", lambda item, service: tag_of(item, service) or None)


@mutant("is not all in the feed", dear=True)
def the_auditor_only_counts_what_is_missing(patch: Patch) -> None:
    patch.setattr(Auditor, "_mend", lambda *_: None)


# -------------------------------------------------------------------------------------- from the index to the groups


@mutant("was not woken")
def an_indexer_does_not_tell_of_a_partition(patch: Patch) -> None:
    publish = notices.Topic.publish

    def some(self: Any, given: Mapping[int, Checkpoint]) -> int:
        return publish(self, {each: at for each, at in given.items() if source_of(each) != "journal"})

    patch.setattr(notices.Topic, "publish", some)


@mutant("was not woken", begin=24)
def an_indexer_tells_only_of_what_it_has_added_itself(patch: Patch) -> None:
    ingest = Indexer.ingest

    def forgetful(self: Indexer, heal: Any, partition: int, *given: Any) -> Ingested:
        done = ingest(self, heal, partition, *given)
        if not done.events and not done.removals:
            self._pending_notices.pop(partition, None)
        return done

    patch.setattr(Indexer, "ingest", forgetful)


@mutant("was not woken", begin=24)
def what_could_not_be_told_is_not_told_again(patch: Patch) -> None:
    def once(self: Indexer, _records: Any, outcome: Any) -> None:
        try:
            self.notify()
        except Exception:  # noqa: BLE001  # that is the bug
            self._pending_notices.clear()

    patch.setattr(Indexer, "_notify", once)


@mutant("was not woken", dear=True)
def a_refused_notice_counts_as_published(patch: Patch) -> None:
    patch.setattr(notices.Topic, "publish", _carefree(notices.Topic.publish))


def _carefree(publish: Callable[..., int]) -> Callable[..., int]:
    def published(self: Any, given: Mapping[int, Checkpoint]) -> int:
        try:
            return publish(self, given)
        except Exception:  # noqa: BLE001  # that is the bug
            return 0

    return published


@mutant("was not woken", begin=9)
def a_wake_up_that_got_nowhere_counts_as_handled(patch: Patch) -> None:
    handle_wake_ups = wakeups.handle_wake_ups

    def content(*given: Any) -> Woken:
        return replace(handle_wake_ups(*given), failed=())

    patch.setattr(reaction_function, "handle_wake_ups", content)


# ----------------------------------------------------------------------------------------------------- in the groups


@mutant("passed|was not woken")
def groups_share_their_checkpoints(patch: Patch) -> None:
    patch.setattr(group_member, "group_stream", lambda partition, _: group_stream(partition, "board"))


@mutant("passed")
def a_reactor_commits_before_what_it_parks_is_written(patch: Patch) -> None:
    settled = page_tasks.after_tasks

    def early(state: GroupState, *given: Any) -> GroupState:
        return replace(settled(state, *given), parked=state.parked)

    patch.setattr(reactor, "after_tasks", early)


@mutant("is not Written", begin=5)
def the_feed_gives_an_event_the_data_of_its_neighbour(patch: Patch) -> None:
    tagged_feed_event, last = events.tagged_feed_event, [b""]

    def mixed(tag: str, index: int, event: Recorded, *home: Any) -> FeedEvent:
        right = tagged_feed_event(tag, index, event, *home)
        data, last[0] = last[0], right.data  # type: ignore[assignment]  # no claims here
        return replace(right, data=data) if index % 2 else right

    patch.setattr(tagged_events, "tagged_feed_event", mixed)


@pytest.mark.parametrize("name", MUTANTS.names())
def test_a_seed_finds_out(name: str, monkeypatch: Patch) -> None:
    MUTANTS.find_out(name, monkeypatch, play, SEEDS)


def test_the_story_of_a_seed_that_fails_is_of_everyone_from_the_writer_to_the_reactor(
    monkeypatch: Patch,
) -> None:
    groups_share_their_checkpoints(monkeypatch)
    (kind,) = (kind for kind in simulate.KINDS if kind.name == "everything")
    told = filter(None, (simulate.tell(kind, seed) for seed in range(SEEDS)))
    story = "\n".join(next(told).story)
    assert all(f"{who} 0: " in story for who in ("writer", "indexer", "reactor"))
