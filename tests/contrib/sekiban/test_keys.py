"""Tagged events under an idempotency key: an append, and a decision, is made once and answered alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import pytest

from epochal.contrib.sekiban import memory_dcb_events
from epochal.deciders.on_queries import Decided, Decisions
from epochal.deciders.projections import Projection, projection
from epochal.errors import ConflictError, InvalidInput
from epochal.model.events import Event
from epochal.model.outcomes import Appended, Conflict
from epochal.plan.failures import Lost
from epochal.plan.ops import BatchGet, Items, Op, Put, Reply, Transact, TransactGet
from epochal.plan.values import text
from epochal.store.driver import Driver, Meter, Patience
from epochal.store.tagged import TaggedStore
from epochal.testing.stores import memory_tables, memory_tagged_events
from tests.contrib.sekiban.world import event, query

ADDED = query(("Added", "a:1"))


@dataclass
class Store:
    """A store and another process's, on tables of which answers can be lost."""

    kind: str
    lose: Callable[[Op], bool] = lambda _: False
    tables: Any = field(default_factory=memory_tables)

    def __post_init__(self) -> None:
        opened: Callable[..., TaggedStore] = {"pages": memory_tagged_events, "dcb": memory_dcb_events}[
            self.kind
        ]
        self.others = opened(self.tables)
        driver = Driver(
            execute=self.execute,
            meter=Meter(),
            patience=Patience(first=0.0, longest=0.0),
            sleep=lambda _: None,
        )
        self.store = replace(self.others, driver=driver)

    def execute(self, op: Op) -> Reply:
        reply: Reply = self.tables.execute(op)
        if self.lose(op):
            raise Lost("response lost")
        return reply

    def there(self) -> list[str]:
        return [
            f"{each.type} {each.content.decode()}" for each in self.others.read(query(("", "a:1"))).events
        ]


@pytest.fixture(params=["pages", "dcb"])
def at(request: pytest.FixtureRequest) -> Store:
    return Store(request.param)


# ------------------------------------------------------------------------------------------------------------- appends


@pytest.mark.parametrize("events", [1, 2, 11])
def test_an_append_is_repeated_as_often_as_its_caller_likes(at: Store, events: int) -> None:
    batch = [event("Added", "a:1", "b:1", data=str(number)) for number in range(events)]
    first = at.store.append(batch, idempotency_key="k")
    at.store.append([event("Added", "a:1")])
    again = at.store.append(batch, idempotency_key="k")
    assert (first.replayed, again.replayed) == (False, True)
    assert again.events == first.events
    assert len(at.there()) == events + 1
    assert first.versions == {"a:1": events, "b:1": events}
    assert again.versions == {"a:1": events + 1, "b:1": events}


def test_a_repeat_is_answered_whatever_its_condition_has_come_to(at: Store) -> None:
    """It does not match the condition itself, so that only its ids tell."""
    first = at.store.append([event("Other", "a:1")], fail_if=ADDED, idempotency_key="k")
    at.store.append([event("Added", "a:1")])
    again = at.store.try_append([event("Other", "a:1")], fail_if=ADDED, idempotency_key="k")
    assert isinstance(again, Appended)
    assert (again.events, again.replayed) == (first.events, True)
    assert isinstance(
        at.store.try_append([event("Other", "a:1")], fail_if=ADDED, idempotency_key="l"), Conflict
    )


@pytest.mark.parametrize("bounded", [False, True], ids=["all in the way", "one in the way"])
@pytest.mark.parametrize("tags", [["b:1"], []], ids=["another tag", "no tag"])
def test_so_is_a_repeat_whose_events_have_no_tag_of_their_condition(
    at: Store, tags: Sequence[str], bounded: bool
) -> None:
    def tried() -> Appended | Conflict:
        room = iter([True])
        takes = (lambda _: next(room, False)) if bounded else None
        return at.store.try_append([event("Other", *tags)], fail_if=ADDED, takes=takes, idempotency_key="k")

    first = tried()
    for _ in range(3):
        at.store.append([event("Added", "a:1")])
    again = tried()
    assert isinstance(first, Appended)
    assert isinstance(again, Appended)
    assert (again.events, again.replayed) == (first.events, True)


def test_so_is_a_repeat_that_is_not_shown_all_of_the_first_yet() -> None:
    """DynamoDB shows a transaction item by item, and what was appended after it may be seen before."""
    at = Store("dcb")
    first = at.store.append([event("Other", "b:1")], fail_if=ADDED, idempotency_key="k")
    at.store.append([event("Added", "a:1")])
    (written,), awaited = first.events, list[Op]()

    def execute(op: Op) -> Reply:
        reply = at.execute(op)
        if isinstance(op, TransactGet):  # which waits for the first to be over
            awaited.append(op)
        if isinstance(op, BatchGet) and isinstance(reply, Items) and not awaited:
            shown = tuple(item for item in reply.items if text(written.id) not in item.values())
            return replace(reply, items=shown)
        return reply

    late = replace(at.store, driver=replace(at.store.driver, execute=execute))
    again = late.try_append([event("Other", "b:1")], fail_if=ADDED, idempotency_key="k")
    assert isinstance(again, Appended)
    assert (again.events, again.replayed) == (first.events, True)


def test_an_append_without_tags_is_repeated_too(at: Store) -> None:
    first = at.store.append([event("Added")], idempotency_key="k")
    again = at.store.append([event("Added")], idempotency_key="k")
    assert (again.events, again.versions) == (first.events, first.versions) == (first.events, {"": 1})


@pytest.mark.parametrize(
    "others",
    [["1"], ["1", "3"], ["1", "2", "3"], ["2", "1"]],
    ids=["fewer", "another", "more", "in another order"],
)
def test_a_key_of_other_contents_is_refused(at: Store, others: Sequence[str]) -> None:
    at.store.append([event("Added", "a:1", data=data) for data in "12"], idempotency_key="k")
    with pytest.raises(
        InvalidInput, match="idempotency_key: was already used for an append with other contents"
    ):
        at.store.append([event("Added", "a:1", data=data) for data in others], idempotency_key="k")
    assert len(at.there()) == 2


def test_events_under_a_key_have_no_ids_of_their_own(at: Store) -> None:
    own = replace(event("Added", "a:1"), id="3f0c8a52-7a3c-4b39-9d4a-1f1d7c0f4a51")
    with pytest.raises(InvalidInput, match=r"events\[1\]\.id"):
        at.store.append([event("Added", "a:1"), own], idempotency_key="k")
    with pytest.raises(InvalidInput, match="idempotency_key"):
        at.store.append([event("Added", "a:1")], idempotency_key="")


def test_an_append_says_where_it_is_in_its_tags_without_a_condition(at: Store) -> None:
    at.store.append([event("Added", "a:1"), event("Added", "b:1")])
    made = at.store.append([event("Added", "a:1", "b:1"), event("Added", "b:1")])
    assert made.versions == {"a:1": 2, "b:1": 3}
    assert at.store.read(query(("", "a:1")), after=made.position).events == ()
    later = at.store.append([event("Added", "b:1", data="9")])
    assert at.store.read(query(("", "b:1")), after=made.position).events == later.events
    with pytest.raises(ConflictError):
        at.store.append([event("Added", "b:1")], fail_if=query(("", "b:1")), after=made.position)


# ----------------------------------------------------------------------------------------------------------- decisions


def total() -> Projection[int]:
    def add(sum_: int, found: Any) -> int:
        return sum_ + int(found.data)

    return projection(tags=["a:1"], on={"Added": add}, initial=0)


def test_a_decision_on_events_whose_ids_are_taken_says_so(at: Store) -> None:
    taken = replace(event("Added", "a:1", data="1"), id="3f0c8a52-7a3c-4b39-9d4a-1f1d7c0f4a51")
    at.store.append([taken])
    with pytest.raises(
        InvalidInput, match=f"an event with the id {taken.id} exists, but with other contents"
    ):
        Decisions(store=at.store).handle({"total": total()}, lambda _: [replace(taken, data=b"2")])
    assert at.there() == ["Added 1"]


def drawn(numbers: Iterator[int], *tags: str) -> Callable[[Mapping[str, Any]], Sequence[Event]]:
    """A decision that is another one each time it is made, and more events the larger its model is."""

    def decide(model: Mapping[str, Any]) -> Sequence[Event]:
        by = next(numbers)
        return [event("Added", "a:1", *tags, data=str(by + at)) for at in range(1 + model["total"] % 3)]

    return decide


def decided(store: TaggedStore, decide: Any, key: str | None = "k") -> Decided:
    return Decisions(store=store).handle({"total": total()}, decide, idempotency_key=key)


@pytest.mark.parametrize("since", [0, 1, 7])
@pytest.mark.parametrize("before", [0, 1, 2])
def test_a_repeated_decision_is_answered_like_the_first(at: Store, before: int, since: int) -> None:
    numbers = count(5)
    for _ in range(before):
        at.others.append([event("Added", "a:1", data="1")])
    first = decided(at.store, drawn(numbers, "b:1"))
    for _ in range(since):
        at.others.append([event("Added", "a:1", data="1")])

    again = decided(at.store, drawn(numbers, "b:1"))

    assert (again.events, again.model.states) == (first.events, first.model.states)
    assert (first.replayed, again.replayed) == (False, True)
    assert len(at.there()) == before + since + len(first.events)
    assert first.versions == {"a:1": before + len(first.events), "b:1": len(first.events)}
    assert again.versions == {"a:1": before + since + len(first.events), "b:1": len(first.events)}


def test_a_decision_says_the_position_past_it(at: Store) -> None:
    first = decided(at.store, drawn(count(5)))
    assert at.store.read(first.model.query, after=first.position).events == ()
    assert at.store.read(first.model.query, after=first.model.position).events == first.events
    again = decided(at.store, drawn(count(9)))
    assert at.store.read(first.model.query, after=again.position).events == ()
    assert at.store.read(first.model.query, after=again.model.position).events == first.events


def test_a_decision_that_would_be_refused_by_now_is_answered_as_it_was(at: Store) -> None:
    class Full(Exception):
        pass

    def once(model: Mapping[str, Any]) -> Sequence[Event]:
        if model["total"]:
            raise Full
        return [event("Added", "a:1", data="1")]

    first = decided(at.store, once)
    with pytest.raises(Full):
        decided(at.store, once, key=None)
    assert decided(at.store, once).events == first.events


def test_a_decision_that_appended_nothing_is_made_again(at: Store) -> None:
    assert decided(at.store, lambda _: []).events == ()
    assert len(decided(at.store, drawn(count(1))).events) == 1
    assert decided(at.store, lambda _: []).replayed


@pytest.mark.parametrize("overtakers", range(4))
@pytest.mark.parametrize("kind", ["Added", "Other"])
def test_what_was_decided_elsewhere_under_the_key_while_this_was_is_what_is_answered(
    at: Store, overtakers: int, kind: str
) -> None:
    """Also where it is in nobody's way, since the query does not ask for it."""
    numbers, rival, others = count(5), list[Decided](), iter(range(overtakers))

    def mine(model: Mapping[str, Any]) -> Sequence[Event]:
        return [replace(each, type=kind) for each in drawn(numbers)(model)]

    def overtaken(model: Mapping[str, Any]) -> Sequence[Event]:
        if next(others, None) is not None:
            at.others.append([event("Added", "a:1", data="1")])
        elif not rival:
            rival.append(decided(at.others, mine))
            for _ in range(overtakers):
                at.others.append([event("Added", "a:1", data="1")])
        return mine(model)

    found = decided(at.store, overtaken)
    assert (found.events, found.replayed) == (rival[0].events, True)
    assert len(at.there()) == 2 * overtakers + len(found.events)


@pytest.mark.parametrize("kind", [Put, Transact])
def test_a_lost_answer_is_the_one_that_the_repeat_gets(at: Store, kind: type[Op]) -> None:
    lost, numbers = iter([True]), count(5)
    at.lose = lambda op: isinstance(op, kind) and next(lost, False)
    first = decided(at.store, drawn(numbers))
    assert decided(at.store, drawn(numbers)).events == first.events
    assert len(at.there()) == len(first.events)


def test_a_key_of_a_decision_costs_what_an_id_does_and_one_request() -> None:
    at = Store("pages")
    plain = decided(at.store, lambda _: [event("Added", "a:1", data="1")], key=None).capacity
    keyed = decided(at.store, lambda _: [event("Added", "a:1", data="1")]).capacity
    # One page alone is no transaction, which costs twice; then the record of its id.
    assert (plain.write, keyed.write) == (1.0, 4.0)
    assert keyed.requests - plain.requests == 1
