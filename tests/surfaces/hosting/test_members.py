"""Several members of a partition: they share its streams out, and their checkpoints are one item."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import inf
from threading import Condition, Lock
from typing import Any

import pytest

from epochal.errors import InvalidInput
from epochal.hosting.runner import Runner
from epochal.hosting.wakeup_queue import read_wake_ups
from epochal.index.checkpoints import Checkpoint
from epochal.index.group_state import Sharing, Unit
from epochal.index.live_members import Sign, write_sign
from epochal.model.events import Event
from epochal.plan.ops import Op, Reply
from epochal.reactions.definition import Delivery, Reaction
from epochal.reactions.steering import Groups
from epochal.testing.feeds import MemoryStore
from tests.core.reactions.world import Told, World
from tests.surfaces.hosting.test_wakeups import Context, Sent, function, message

STREAMS = [f"A-{number}" for number in range(40)]


def filled(told: Told | None = None) -> World:
    """Two events of each stream, an entry each."""
    world = World(told=told or Told())
    for _ in range(2):
        for stream in STREAMS:
            world.feeds.append(stream, "x")
        world.index()
    return world


def run(world: World, members: int, *shares: int, **reaction: Any) -> None:
    for share in shares or range(members):
        world.reactor(members=members, **reaction).run(0, share=share, seconds=600)


def test_members_share_the_streams_out_and_each_stream_keeps_its_order() -> None:
    world = filled()
    for share in range(4):
        world.told.handled.clear()
        run(world, 4, share)
        mine = {stream for stream, _ in world.told.handled}
        assert mine == {each for each in STREAMS if Sharing(4).share_of(each) == share}
        assert all(world.told.of(stream) == [0, 1] for stream in mine)
    assert world.state().checkpoint == Checkpoint.of(0, 2)


def test_a_stream_is_one_member_s_and_members_have_about_as_many() -> None:
    counts = Counter(Sharing(16).share_of(f"Order-{number}") for number in range(16_000))
    assert sorted(counts) == list(range(16))
    assert all(850 < each < 1_150 for each in counts.values())


def test_the_group_is_as_far_as_its_slowest_member() -> None:
    world = filled()
    run(world, 4, 0, 1, 2)
    assert world.state().checkpoint == Checkpoint(0)
    assert world.state().shares == (*[Checkpoint.of(0, 2)] * 3, Checkpoint(0))
    run(world, 4, 3)
    assert world.state().checkpoint == Checkpoint.of(0, 2)


def test_what_a_member_handled_before_it_died_comes_again_to_it_alone() -> None:
    world = filled()

    def die(_: Delivery) -> None:
        raise SystemExit

    world.told.during = die
    with pytest.raises(SystemExit):
        run(world, 4, 2)
    world.told.during = lambda _: None
    run(world, 4, 0, 1, 3)
    handled = len(world.told.handled)
    run(world, 4)
    assert sorted(world.told.handled) == sorted((each, index) for each in STREAMS for index in (0, 1))
    assert len(world.told.handled) > handled


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [(1, 8), (8, 1), (4, 8), (8, 4), (3, 5), (5, 3), (2, 64)])
@pytest.mark.parametrize("ran", [0, 1])
def test_another_number_of_members_skips_nothing(before: int, after: int, ran: int) -> None:
    world = filled()
    run(world, before, *range(ran, before, 2))
    run(world, after)
    assert {(stream, index) for stream in STREAMS for index in (0, 1)} == set(world.told.handled)
    assert all(
        second in (first + 1, 0) for each in STREAMS for first, second in pairwise(world.told.of(each))
    )


def test_twice_as_many_members_go_on_where_each_was() -> None:
    world = filled()
    run(world, 4, 0, 1, 2)
    run(world, 8)
    assert sorted(world.told.handled) == sorted((each, index) for each in STREAMS for index in (0, 1))


def test_another_pattern_skips_nothing() -> None:
    world = filled()
    run(world, 4, 0, 1, partition_by=r"-(\d)")
    run(world, 4, partition_by=r"(\d)$")
    assert {(stream, index) for stream in STREAMS for index in (0, 1)} == set(world.told.handled)


def test_streams_in_whose_names_the_same_matches_have_one_member() -> None:
    sharing = Sharing(16, r"^\w+-(\w+)-")
    assert len({sharing.share_of(f"Order-acme-{number}") for number in range(100)}) == 1
    assert len({sharing.share_of(f"Order-{number}-1") for number in range(100)}) == 16
    assert len({sharing.share_of(f"Order{number}") for number in range(100)}) > 10


@pytest.mark.parametrize(
    ("argument", "rule"),
    [
        ({"members": 0}, "members: must be at least 1"),
        ({"members": 65}, "members: must be at most 64"),
        ({"partition_by": "("}, "partition_by: must be a regular expression"),
        ({"partition_by": "-.*"}, "partition_by: must have exactly one group"),
    ],
)
def test_what_cannot_be_shared_out_is_refused(argument: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule):
        World().reactor(**argument)


def test_members_that_commit_at_the_same_time_keep_all_that_each_has_done() -> None:
    """In threads, each of which is refused now and then what another has committed meanwhile."""
    world = filled()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda share: run(world, 8, share), range(8)))
    assert sorted(world.told.handled) == sorted((each, index) for each in STREAMS for index in (0, 1))
    assert world.state().shares == (Checkpoint.of(0, 2),) * 8


def test_a_stream_that_one_member_parks_stays_parked_while_others_commit() -> None:
    world = filled(Told(fails=lambda call: call.stream == "A-1"))
    run(world, 4)
    assert world.state().parked == {"A-1": 0}
    world.told.fails = lambda _: False
    assert world.parking(members=4).replay(0, "A-1", seconds=60).unparked
    run(world, 4)
    assert world.told.of("A-1") == [0, 1]


def test_a_member_costs_what_a_group_without_members_costs() -> None:
    alone, shared = filled(), filled()
    for world, members in ((alone, 1), (shared, 4)):
        run(world, members, *range(members))
        world.feeds.ops.clear()
        run(world, members, 0)
    assert len(shared.feeds.ops) == len(alone.feeds.ops) == 2


def test_processes_share_the_members_of_a_partition() -> None:
    world = filled()
    driver = world.feeds.driver
    driver.run(write_sign("index", "board", Sign(owner="two", until=2**50)))
    for owner in ("one", "two"):
        Runner(reactor=world.reactor(members=8), owner=owner).run(until_done=True)
        driver.run(write_sign("index", "board", Sign(owner="one", until=2**50)))
    assert sorted(world.told.handled) == sorted((each, index) for each in STREAMS for index in (0, 1))


def test_a_notice_wakes_the_members_that_are_not_there_yet() -> None:
    world, sent = filled(), Sent()
    run(world, 4, 3)
    woken = function(world, sent, members=4)
    woken.handle({"Records": [message(0, 2)]}, Context())  # type: ignore[arg-type]
    assert [(each["MessageGroupId"], each["MessageBody"]) for each in sent.entries] == [
        ("0/1", "2"),
        ("0/2", "2"),
    ]


def test_a_member_that_is_woken_wakes_no_other() -> None:
    world, sent = filled(), Sent()
    asked = message(0, 2)
    asked["attributes"]["MessageGroupId"] = "0/2"
    assert [each.unit for each in read_wake_ups([asked])] == [Unit(0, 2)]
    function(world, sent, members=4).handle({"Records": [asked]}, Context())  # type: ignore[arg-type]
    assert sent.entries == []
    assert {stream for stream, _ in world.told.handled} == {
        each for each in STREAMS if Sharing(4).share_of(each) == 2
    }


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after", "gone"), [(4, 2, 3), (4, 1, 3), (4, 3, 3), (64, 2, 40)])
def test_a_wake_up_of_a_share_that_is_no_more_wakes_whoever_has_its_streams(
    before: int, after: int, gone: int
) -> None:
    world, sent = filled(), Sent()
    run(world, before, *range(gone))
    left = message(0, 2, id_="left", receives=4)
    left["attributes"]["MessageGroupId"] = f"0/{gone}"
    left["messageAttributes"] = {name: {"stringValue": "1"} for name in ("At", "Hops")}
    woken = function(world, sent, members=after)
    answer = woken.handle({"Records": [left]}, Context())  # type: ignore[arg-type]
    assert answer == {"batchItemFailures": []}
    for each in sent.entries:
        again = message(0, int(each["MessageBody"]))
        again["attributes"]["MessageGroupId"] = each["MessageGroupId"]
        woken.handle({"Records": [again]}, Context())  # type: ignore[arg-type]
    assert {(stream, index) for stream in STREAMS for index in (0, 1)} == set(world.told.handled)


def test_a_wake_up_of_a_share_that_is_no_more_is_done_where_its_streams_are() -> None:
    world, sent = filled(), Sent()
    run(world, 4)
    left = message(0, 2)
    left["attributes"]["MessageGroupId"] = "0/3"
    other = message(0, 1, id_="other")
    answer = function(world, sent, members=2).handle({"Records": [left, other]}, Context())  # type: ignore[arg-type]
    assert (answer, sent.entries) == ({"batchItemFailures": []}, [])


@pytest.mark.parametrize(("members", "share"), [(1, 1), (2, 3), (3, 3), (2, -1), (2, "1")])
def test_a_share_that_a_reaction_does_not_have_is_refused(members: int, share: Any) -> None:
    with pytest.raises(InvalidInput, match="^share: must"):
        filled().reactor(members=members).run(0, share=share, seconds=600)


def test_a_feed_in_memory_runs_every_member_and_says_what_all_of_them_have_done() -> None:
    feed, told = MemoryStore(), Told(fails=lambda call: call.stream in ("A-1", "A-2", "A-3"))
    for stream in STREAMS:
        feed.streams.append(stream, [Event(type="x")])
    shared = Reaction(name="board", handler=told, members=4, attempts=1)
    runs = feed.react(shared)
    assert sum(each.events for each in runs) == len(told.handled) == 37
    assert {failure.stream for each in runs for failure in each.parked} == {"A-1", "A-2", "A-3"}
    assert all(each.at_tail for each in runs)
    assert {each.partition: each.checkpoint for each in feed.groups.standing("board")} == {
        each.partition: each.tail for each in feed.feed.partitions()
    }
    assert len(runs) == len(feed.groups.standing("board"))
    feed.groups.pause("board")
    assert all(each.paused for each in feed.react(shared))


def test_a_member_that_is_blocked_shows_in_the_answer_of_all() -> None:
    feed, told = MemoryStore(), Told(fails=lambda call: call.stream == "A-1")
    for stream in STREAMS:
        feed.streams.append(stream, [Event(type="x")])
    blocks = Reaction(name="board", handler=told, members=4, attempts=1, on_failure="block")
    (ran,) = (each for each in feed.react(blocks) if each.blocked is not None)
    assert ran.blocked is not None
    assert (ran.blocked.stream, ran.at_tail) == ("A-1", False)


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["", r"(\d)$"])
@pytest.mark.parametrize("offset", [0, 1, 2])
def test_a_reset_between_the_checkpoints_of_members_says_what_comes_again_and_what_never_comes(
    offset: int, pattern: str
) -> None:
    world = filled()
    run(world, 4, 0, 1, partition_by=pattern)
    before = set(world.told.handled)
    groups = Groups(world.feeds.reader(world.feeds.streams))
    told = groups.reset("board", {0: Checkpoint.of(0, offset)}, dry_run=True)
    assert told == groups.reset("board", {0: Checkpoint.of(0, offset)})
    world.told.handled.clear()
    run(world, 4, partition_by=pattern)
    after, every = set(world.told.handled), {(stream, index) for stream in STREAMS for index in (0, 1)}
    assert (told[0].before, told[0].again) == (Checkpoint(0), len(before & after))
    assert told[0].skipped == len(every - before - after)
    assert len(after) == 40 * (2 - offset)


def test_what_a_group_with_members_has_not_handled_is_what_each_has_not() -> None:
    world = filled()
    run(world, 4, 0, 1)
    groups = Groups(world.feeds.reader(world.feeds.streams))
    assert [each.events for each in groups.standing("board")] == [80 - len(world.told.handled)]


def test_each_process_that_has_a_member_of_a_partition_is_shown_with_it() -> None:
    world = filled()
    groups, owners = Groups(world.feeds.reader(world.feeds.streams)), ("p1", "p2", "p3", "p4")
    for owner in owners:
        world.feeds.driver.run(write_sign("index", "board", Sign(owner=owner, until=2**50)))

    def shown() -> dict[str, tuple[int, ...]]:
        return {each.owner: each.partitions for each in groups.members("board")}

    run(world, 64)
    assert shown() == dict.fromkeys(owners, (0,))
    groups.reset("board", "beginning")
    assert shown() == dict.fromkeys(owners, (0,))


def test_what_a_member_holds_of_a_group_that_was_deleted_is_not_what_has_begun_anew() -> None:
    """Or a commit that was applied, unheard, would be made again on a group that is to be given everything."""
    world = filled()
    states = []
    for seconds in (1, 2):
        real = world.reactor(members=2, start="tail")
        now = partial(int, seconds * 10**9)
        replace(real, member=replace(real.member, now=now)).run(0, seconds=60)
        states.append(world.state())
        Groups(world.feeds.reader(world.feeds.streams)).delete("board")
    assert states[0].checkpoint == states[1].checkpoint
    assert Sharing(2).is_others(states[0], states[0], 0)
    assert not Sharing(2).is_others(states[0], states[1], 0)


class Lanes:
    """A time for each member, who goes on only where no other is behind it: so requests come in their order."""

    def __init__(self, lanes: int) -> None:
        self._times: dict[int, float] = dict.fromkeys(range(lanes), 0.0)
        self._turn = Condition()
        self.end = 0.0

    def take(self, lane: int, seconds: float) -> None:
        with self._turn:
            self._times[lane] += seconds
            self._turn.notify_all()
            while (self._times[lane], lane) > min((time, each) for each, time in self._times.items()):
                self._turn.wait()

    def leave(self, lane: int) -> None:
        with self._turn:
            self.end = max(self.end, self._times.pop(lane))
            self._turn.notify_all()


REQUEST, HANDLER, PARALLEL, EVENTS = 0.005, 0.020, 8, 2_000


def events_a_second(members: int) -> float:
    """In a model: every request takes 5 ms, a handler 20 ms, a member handles 8 streams side by side. What a process
    computes takes no time.
    """
    world = World()
    world.append("Z-1")
    run(world, members)
    for number in range(EVENTS):
        world.feeds.append(f"Order-{number}", "x")
    records = world.feeds.records(1)
    for first in range(0, EVENTS, 100):
        assert not world.feeds.indexer().index(records[first : first + 100]).failed
    lanes = Lanes(members)

    def member(share: int) -> None:
        def execute(op: Op) -> Reply:
            of_stream = str(getattr(op, "table", "")) == "tips"
            lanes.take(share, REQUEST / (PARALLEL if of_stream else 1))
            with lock:
                return world.feeds.tables.execute(op)

        def handle(_: Delivery) -> None:
            lanes.take(share, HANDLER / PARALLEL)

        driver = replace(world.feeds.driver, execute=execute, sleep=partial(lanes.take, share))
        real = world.reactor(members=members, handler=handle)
        reader = real.member.reader.on(driver)
        replace(real, member=replace(real.member, reader=reader)).run(0, share=share, seconds=inf)
        lanes.leave(share)

    lock = Lock()
    with ThreadPoolExecutor(members) as pool:
        list(pool.map(member, range(members)))
    return EVENTS / lanes.end


@pytest.mark.slow
def test_sixteen_members_of_one_partition_handle_more_than_ten_times_what_one_does() -> None:
    figures = {members: round(events_a_second(members), -1) for members in (1, 16)}
    assert figures[16] > 10 * figures[1], figures
