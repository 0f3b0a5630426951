from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochal.contrib.sekiban.items import Keys
from epochal.errors import CorruptData, InvalidInput, TooLarge
from epochal.model.bodies import Claim
from epochal.model.outcomes import Appended, Conflict
from epochal.model.position_text import read_position, write_position
from epochal.model.positions import Position, Reached
from epochal.model.tags import Query, QueryItem
from epochal.plan.failures import Lost
from epochal.plan.ops import Delete, Op, Transact
from tests.contrib.sekiban.world import NOW, World, event, query
from tests.support.examples import examples

COURSE = query(("Subscribed", "course:1"))
BOTH = query(("Subscribed", "course:1"), ("Subscribed", "student:7"))


@pytest.fixture
def world() -> World:
    return World()


def test_a_condition_holds_while_nothing_matches(world: World) -> None:
    world.store().append([event("Subscribed", "course:2"), event("Renamed", "course:1")])
    answer = world.store().try_append([event("Subscribed", "course:1")], fail_if=COURSE)
    assert isinstance(answer, Appended)


def test_a_match_anywhere_fails_a_condition_without_position_and_comes_back(world: World) -> None:
    world.store().append([event("Subscribed", "course:1", "student:7")])
    answer = world.store().try_append([event("Subscribed", "course:1")], fail_if=COURSE)
    assert isinstance(answer, Conflict)
    assert [found.tags for found in answer.events] == [("course:1", "student:7")]
    assert len(list(world.tables.items("events"))) == 1


def test_an_append_after_the_position_of_its_read_is_one_request(world: World) -> None:
    world.store().append([event("Subscribed", "course:1", "student:7")])
    seen = world.store().read(BOTH)
    before = world.meter.requests
    answer = world.store().try_append(
        [event("Subscribed", "course:1", "student:7")], fail_if=BOTH, after=seen.position
    )
    assert isinstance(answer, Appended)
    assert world.meter.requests == before + 1


def test_a_conditional_append_without_position_is_three_requests(world: World) -> None:
    world.store().append([event("Renamed", "course:1")])
    before = world.meter.requests
    world.store().append([event("Subscribed", "course:1")], fail_if=COURSE)
    assert world.meter.requests == before + 3


def test_the_position_of_an_append_is_good_for_the_next(world: World) -> None:
    answer = world.store().try_append([event("Subscribed", "course:1")], fail_if=COURSE)
    for _ in range(3):
        assert isinstance(answer, Appended)
        before = world.meter.requests
        answer = world.store().try_append(
            [event("Subscribed", "course:1")], fail_if=COURSE, after=answer.position
        )
        assert world.meter.requests == before + 1


def test_a_match_after_the_position_is_a_conflict_with_that_event(world: World) -> None:
    seen = world.store().read(COURSE)
    world.store().append([event("Subscribed", "course:1", "student:9")])
    answer = world.store().try_append([event("Subscribed", "course:1")], fail_if=COURSE, after=seen.position)
    assert isinstance(answer, Conflict)
    assert [found.tags for found in answer.events] == [("course:1", "student:9")]


def test_unrelated_appends_to_the_same_tag_are_nobodys_conflict(world: World) -> None:
    seen = world.store().read(COURSE)
    for number in range(5):
        world.store().append([event("Renamed", "course:1", f"other:{number}")])
    answer = world.store().try_append([event("Subscribed", "course:1")], fail_if=COURSE, after=seen.position)
    assert isinstance(answer, Appended)


def test_an_event_seen_through_one_item_is_not_new_through_another(world: World) -> None:
    """Read between two heads: the event is beyond student:7's position, but was returned through course:1."""
    store = world.store()
    store.append([event("Subscribed", "course:1", "student:7")])
    seen = store.read(BOTH)
    behind = Position(seen={**seen.position.seen, "student:7": Reached()})
    answer = store.try_append([event("Subscribed", "course:1", "student:7")], fail_if=BOTH, after=behind)
    assert isinstance(answer, Appended)


def test_an_item_of_several_tags_matches_only_events_with_all(world: World) -> None:
    both = query(("", "course:1 student:7"))
    world.store().append([event("Subscribed", "course:1"), event("Subscribed", "student:7")])
    seen = world.store().read(both)
    assert seen.events == ()
    world.store().append([event("Subscribed", "course:1", "student:7")])
    answer = world.store().try_append([event("X", "course:1")], fail_if=both, after=seen.position)
    assert isinstance(answer, Conflict)


@pytest.mark.parametrize("racers", [2, 8, 64])
def test_of_racers_on_overlapping_conditions_exactly_one_commits(world: World, racers: int) -> None:
    world.store().append([event("Renamed", "course:1", "student:7")])
    seen = world.store().read(BOTH)
    queries = [COURSE, BOTH]
    barrier = threading.Barrier(racers)
    answers: list[object] = []

    def race(number: int) -> None:
        chosen = queries[number % 2]
        barrier.wait()
        answers.append(
            world.store().try_append(
                [event("Subscribed", "course:1", "student:7")], fail_if=chosen, after=seen.position
            )
        )

    threads = [threading.Thread(target=race, args=(number,)) for number in range(racers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(answer, Appended) for answer in answers) == 1


def test_first_writers_on_a_tag_do_not_both_commit(world: World) -> None:
    """The race starts before there is any head to condition on."""
    seen = world.store().read(COURSE)
    first = world.store().try_append([event("Subscribed", "course:1")], fail_if=COURSE, after=seen.position)
    second = world.store().try_append([event("Subscribed", "course:1")], fail_if=COURSE, after=seen.position)
    assert (type(first), type(second)) == (Appended, Conflict)


def test_an_append_that_slips_in_before_the_transaction_is_seen(world: World) -> None:
    seen = world.store().read(COURSE)
    rival = [event("Subscribed", "course:1", "student:9")]

    def before(op: Op) -> None:
        if isinstance(op, Transact):
            world.before = lambda _: None
            world.store().append(rival)

    world.before = before
    answer = world.store().try_append([event("Subscribed", "course:1")], fail_if=COURSE, after=seen.position)
    assert isinstance(answer, Conflict)


def test_a_lost_answer_is_our_own_write_not_a_conflict(world: World) -> None:
    seen = world.store().read(COURSE)

    def after(op: Op) -> None:
        if isinstance(op, Transact):
            world.after = lambda _: None
            world.store().append([event("Subscribed", "course:1", "student:9")])
            # Beyond the ten minutes of the store's own idempotency: only the event id tells.
            world.tables._tokens.clear()  # noqa: SLF001
            raise Lost("the answer was dropped")

    world.after = after
    answer = world.store().try_append([event("Subscribed", "course:1")], fail_if=COURSE, after=seen.position)
    assert isinstance(answer, Appended)
    assert answer.replayed
    assert len(world.store().read(COURSE).events) == 2


def test_a_clock_that_is_behind_still_orders_events_within_their_tags(world: World) -> None:
    world.store(now=NOW + 10**12).append([event("A", "t:1"), event("B", "t:2")])
    world.store(now=NOW).append([event("C", "t:1", "t:2")])
    world.store(now=NOW - 10**12).append([event("D", "t:2"), event("E", "t:1")])
    for tag, wanted in (("t:1", "ACE"), ("t:2", "BCD")):
        found = world.store().read(query(("", tag))).events
        assert "".join(each.type for each in found) == wanted
        assert sorted(each.place for each in found) == [each.place for each in found]


def test_a_condition_by_type_alone_is_refused_with_the_reason(world: World) -> None:
    for item in (QueryItem(types=frozenset({"A"})), QueryItem()):
        with pytest.raises(InvalidInput, match="query: each item must name a tag"):
            world.store().append([event("A")], fail_if=Query(items=(item,)))
    assert list(world.tables.items("events")) == []


def test_with_type_heads_conditions_by_type_and_over_everything_hold() -> None:
    world = World(type_heads=True)
    by_type, everything = query(("A B", "")), query(("", ""))
    seen, all_seen = world.store().read(by_type), world.store().read(everything)
    world.store().append([event("C", "t:1")])
    assert isinstance(world.store().try_append([event("A")], fail_if=by_type, after=seen.position), Appended)
    assert isinstance(world.store().try_append([event("A")], fail_if=by_type, after=seen.position), Conflict)
    answer = world.store().try_append([event("D")], fail_if=everything, after=all_seen.position)
    assert isinstance(answer, Conflict)
    assert [found.type for found in answer.events] == ["C", "A"]


def test_an_event_without_tags_has_a_head_too(world: World) -> None:
    world.store().append([event("A"), event("B")])
    heads = [item for item in world.tables.items("tags") if item["sk"]["S"] == "#"]
    assert [(head["pk"]["S"], head["n"]["N"]) for head in heads] == [("TAG#", "2")]


def test_tenants_do_not_see_each_other() -> None:
    tables = World().tables
    one = World(keys=Keys(service="one"), tables=tables).store()
    two = World(keys=Keys(service="two"), tables=tables).store()
    one.append([event("A", "t:1", id_="00000000-0000-4000-8000-000000000001")])
    two.append([event("B", "t:1", id_="00000000-0000-4000-8000-000000000002")])
    assert [found.type for found in one.read(query(("", "t:1"))).events] == ["A"]
    assert two.event("00000000-0000-4000-8000-000000000001") is None


@examples(60)
@given(
    appended=st.lists(
        st.tuples(st.sampled_from("AB"), st.sets(st.sampled_from(["x", "y", "z"]))), max_size=12
    ),
    items=st.lists(
        st.tuples(st.sampled_from(["", "A", "A B"]), st.sets(st.sampled_from(["x", "y", "z"]), min_size=1)),
        min_size=1,
        max_size=3,
    ),
    cut=st.integers(0, 12),
)
def test_reads_and_positions_agree_with_a_plain_list(
    appended: list[tuple[str, set[str]]], items: list[tuple[str, set[str]]], cut: int
) -> None:
    world = World()
    asked = query(*[(types, " ".join(sorted(tags))) for types, tags in items])
    wanted = [asked.matches(kind, tags) for kind, tags in appended]
    for kind, tags in appended[:cut]:
        world.store().append([event(kind, *tags)])
    early = world.store().read(asked)
    for kind, tags in appended[cut:]:
        world.store().append([event(kind, *tags)])
    late, new = world.store().read(asked), world.store().read(asked, after=early.position)
    assert len(late.events) == sum(wanted)
    assert new.events == late.events[len(early.events) :]
    assert early.position <= late.position
    answer = world.store().try_append([event("C", "x")], fail_if=asked, after=early.position)
    assert isinstance(answer, Conflict) is any(wanted[cut:])


def test_positions_survive_their_text_form(world: World) -> None:
    world.store().append([event("A", "t:é", "u:1")])
    position = world.store().read(query(("", "t:é u:1"))).position
    assert read_position(write_position(position)) == position


@pytest.mark.parametrize("text", ["", "x", "e30", "bm8", "=====", "eyJzIjp7ImEiOlsxLCIxIl19LCJoIjp7fX0"])
def test_malformed_positions_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="after: must be a position"):
        read_position(text)


def test_a_position_of_another_query_is_refused_and_named(world: World) -> None:
    seen = world.store().read(COURSE)
    with pytest.raises(InvalidInput, match="did not include 'student:7'"):
        world.store().append([event("Subscribed", "course:1")], fail_if=BOTH, after=seen.position)


def test_a_forged_head_cannot_bend_the_order(world: World) -> None:
    world.store().append([event("A", "t:1")])
    forged = Position(seen={"t:1": Reached(1, "0" * 30)})
    world.store(now=NOW - 10**15).append([event("B", "t:1")], fail_if=query(("X", "t:1")), after=forged)
    found = world.store().read(query(("", "t:1"))).events
    assert [each.type for each in found] == ["A", "B"]


def test_an_id_that_exists_with_the_same_contents_is_success_with_others_an_error(world: World) -> None:
    own = "00000000-0000-4000-8000-00000000000a"
    world.store().append([event("A", "t:1", id_=own)])
    again = world.store().try_append([event("A", "t:1", id_=own)])
    assert isinstance(again, Appended)
    assert again.replayed
    with pytest.raises(InvalidInput, match="exists, but with other contents"):
        world.store().append([event("B", "t:1", id_=own)])
    with pytest.raises(InvalidInput, match="some ids are stored already"):
        world.store().append([event("A", "t:1", id_=own), event("A", "t:1")])
    assert len(list(world.tables.items("events"))) == 1


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (event("", "t:1"), "events[0].type"),
        (event("A", ""), "events[0].tags"),
        (event("A", "$all"), "events[0].tags"),
        (event("A", "t:\n"), "events[0].tags"),
        (event("A", "t" * 513), "events[0].tags"),
        (event("A", "t:1", id_="7"), "events[0].id"),
        (replace(event("A", "t:1"), data=Claim(key="k", sha256="0" * 64, size=1)), "events[0].data"),
    ],
)
def test_malformed_events_name_the_field(world: World, bad: object, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        world.store().append([bad])  # type: ignore[list-item]
    assert caught.value.field == field
    assert list(world.tables.items("events")) == []


def test_more_than_a_transaction_holds_is_refused_with_the_numbers(world: World) -> None:
    with pytest.raises(TooLarge, match="items, at most 100 allowed"):
        world.store().append([event("A", f"t:{number}") for number in range(34)])
    assert list(world.tables.items("events")) == []


def test_entries_that_a_head_promises_and_nobody_finds_are_corruption(world: World) -> None:
    world.store().append([event("A", "t:1")])
    entry = next(item for item in world.tables.items("tags") if item["sk"]["S"] != "#")
    world.tables.execute(Delete(table="tags", key={"pk": entry["pk"], "sk": entry["sk"]}))
    with pytest.raises(CorruptData, match="but its entries differ"):
        world.store().read(query(("", "t:1")))
