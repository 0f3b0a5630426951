"""What goes with an append to tables of one's own: with the events or not at all, told apart, and counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pytest

from epochal import NO_STREAM, Appended, Conflict, Event, Query, QueryItem, StreamAppend, Unfold
from epochal.aio.stores import AsyncStreams
from epochal.codec import json
from epochal.contrib.equinox import memory_tips
from epochal.contrib.event_store_adapter import AggregateDeciders, aggregate_id, memory_aggregates
from epochal.contrib.event_store_adapter.state_codecs import StateCodec
from epochal.contrib.sekiban import memory_dcb_events
from epochal.deciders.codecs import json_codec
from epochal.deciders.loop import WithAlso
from epochal.deciders.on_queries import Decisions
from epochal.deciders.on_streams import Decider, Deciders, handle_all
from epochal.deciders.projections import projection
from epochal.errors import (
    ConditionUnmet,
    ConflictError,
    InvalidInput,
    MissingTable,
    TooLarge,
    Unavailable,
    WrongTable,
)
from epochal.plan.conditions import Compare
from epochal.plan.failures import Lost
from epochal.plan.ops import Op, Reply, Transact, tables_of
from epochal.plan.tables import KeyAttribute, TableSpec
from epochal.store.also import (
    Absent,
    All,
    AnyOf,
    BeginsWith,
    Not,
    Present,
    TransactionWrite,
    check,
    compare,
    delete,
    plain,
    put,
    update,
)
from epochal.store.streams import Streams
from epochal.store.tagged_pages import TaggedEvents
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_streams, memory_tables, memory_tagged_events

CARTS = TableSpec(kind="carts", partition=KeyAttribute(name="id", type="S"))
E = Event(type="Moved", data=b"{}")
T = Event(type="Moved", data=b"{}", tags=("user:1",))


@pytest.fixture
def tables() -> MemoryTables:
    return memory_tables(emails="email", carts=CARTS)


@pytest.fixture
def streams(tables: MemoryTables) -> Streams:
    return memory_streams(tables)


@pytest.fixture
def tagged(tables: MemoryTables) -> TaggedEvents:
    return memory_tagged_events(tables)


def claim(email: str = "a@example.com", by: str = "User-1") -> TransactionWrite:
    return put("emails", {"email": email, "by": by}, when=Absent("email"))


def counted(by: int = 1) -> TransactionWrite:
    return update("carts", {"id": "c"}, adds={"n": by})


def stored(tables: MemoryTables, table: str) -> list[dict[str, Any]]:
    return [plain(item) for item in tables.items(table)]


def losing(streams: Streams) -> Streams:
    """The same store, whose first transaction is applied and not answered."""
    lost = iter([True])

    def execute(op: Op) -> Reply:
        reply = streams.driver.execute(op)
        if isinstance(op, Transact) and next(lost, False):
            raise Lost("the test's fault")
        return reply

    return streams.on(replace(streams.driver, execute=execute, sleep=lambda _: None))


def test_an_item_is_written_with_the_events_in_one_request_that_costs_twice(
    streams: Streams, tables: MemoryTables
) -> None:
    token = streams.append("User-0", [E]).token

    made = streams.append("User-0", [E], expected=token, also=[claim(by="User-0"), counted()])

    assert made.version == 2
    assert stored(tables, "emails") == [{"email": "a@example.com", "by": "User-0"}]
    assert stored(tables, "carts") == [{"id": "c", "n": 1}]
    assert (made.capacity.requests, made.capacity.write) == (1, 2 * (1 + 1 + 1))
    assert streams.append("User-0", [E], expected=made.token).capacity.write == 1


def test_every_kind_of_write_and_change(streams: Streams, tables: MemoryTables) -> None:
    streams.append("Cart-1", [E], also=[put("carts", {"id": "a", "n": Decimal("1.5"), "gone": None})])
    streams.append("Cart-1", [E], also=[put("carts", {"id": "b"})])

    streams.append(
        "Cart-1",
        [E],
        also=[
            update(
                "carts",
                {"id": "a"},
                sets={"by": {"name": "Ann", "tags": {"x", "y"}}},
                adds={"n": Decimal("0.5"), "m": -2},
                extends={"lines": [b"1", True]},
                removes=["gone"],
                when=compare("n", ">=", 1),
            ),
            delete("carts", {"id": "b"}),
            check("carts", {"id": "c"}, AnyOf((Absent("id"), compare("n", "<", 3)))),
        ],
    )

    assert stored(tables, "carts") == [
        {"id": "a", "n": 2, "m": -2, "by": {"name": "Ann", "tags": {"x", "y"}}, "lines": [b"1", True]}
    ]


def test_a_condition_that_fails_is_told_by_its_place_with_the_item_and_nothing_is_written(
    streams: Streams, tables: MemoryTables
) -> None:
    streams.append("User-1", [E], expected=NO_STREAM, also=[claim()])

    with pytest.raises(ConditionUnmet, match=r"at \[1\]") as refused:
        streams.append("User-2", [E], expected=NO_STREAM, also=[counted(), claim(by="User-2")])

    assert refused.value.outcome.unmet == {1: {"email": "a@example.com", "by": "User-1"}}
    assert isinstance(refused.value, ConflictError)
    assert streams.load("User-2") is None
    assert stored(tables, "carts") == []
    outcome = streams.try_append("User-1", [E], also=[check("carts", {"id": "c"}, compare("n", "=", 1))])
    assert isinstance(outcome, Conflict)
    assert outcome.unmet == {0: None}
    assert outcome.capacity.requests == 2


def test_a_stream_that_is_not_as_expected_is_told_first(streams: Streams) -> None:
    streams.append("User-1", [E], also=[claim()])

    outcome = streams.try_append("User-1", [E], expected=NO_STREAM, also=[claim()])

    assert isinstance(outcome, Conflict)
    assert (outcome.version, outcome.unmet) == (1, {})


def test_several_streams_take_it_too(streams: Streams, tables: MemoryTables) -> None:
    both = [StreamAppend(stream=name, events=[E], expected=NO_STREAM) for name in ("Account-a", "Account-b")]

    streams.append_all(both, also=[claim(by="both")])

    assert stored(tables, "emails") == [{"email": "a@example.com", "by": "both"}]
    assert isinstance(streams.try_append_all(both, also=[claim()]), Conflict)
    others = [replace(each, stream=f"{each.stream}2") for each in both]
    with pytest.raises(ConditionUnmet):
        streams.append_all(others, also=[claim()])
    with pytest.raises(ConditionUnmet):
        streams.append_all(others[:1], also=[claim()])


@pytest.mark.parametrize("key", [None, "k"])
def test_a_lost_response_does_not_write_it_twice(
    streams: Streams, tables: MemoryTables, key: str | None
) -> None:
    made = losing(streams).append("User-1", [E], also=[counted(), claim()], idempotency_key=key)

    assert (made.first, made.version) == (0, 1)
    assert stored(tables, "carts") == [{"id": "c", "n": 1}]


def test_a_repeat_under_a_key_is_answered_like_the_first_and_writes_nothing(
    streams: Streams, tables: MemoryTables
) -> None:
    many = [StreamAppend(stream=name, events=[E]) for name in ("Account-a", "Account-b")]

    def call(store: Streams, also: list[TransactionWrite]) -> list[tuple[int, bool]]:
        one = store.append("User-1", [E], idempotency_key="k", also=also)
        two = store.append_all(many, idempotency_key="k", also=[counted()])
        three = store.append("User-1", (), unfolds=[Unfold(type="S")], idempotency_key="u", also=[counted()])
        return [(each.version, each.replayed) for each in (one, *two.streams.values(), three)]

    first = call(streams, [counted(), claim()])
    streams.append("User-1", [E])

    assert first == [(1, False), (1, False), (1, False), (1, False)]
    assert call(streams, [counted(), claim()]) == [(version, True) for version, _ in first]
    assert stored(tables, "carts") == [{"id": "c", "n": 3}]


@pytest.mark.parametrize(
    ("write", "field"),
    [
        (lambda: put("carts", {"id": "c", 1: "one"}), "also"),
        (lambda: put("carts", {"id": "c", "of": {1: "one", "two": 2}}), "also"),
        (lambda: put("carts", {"id": "c", "name": "\ud800"}), "name"),
        (lambda: put("carts", {"id": "c", "\ud800": "name"}), "also"),
        (lambda: put("carts", {"id": "c"}, when="absent"), "when"),  # type: ignore[arg-type]
        (lambda: update("carts", {"id": "c"}, sets={"n": 1}, when=True), "when"),  # type: ignore[arg-type]
        (lambda: delete("carts", {"id": ""}), "id"),
        (lambda: delete("carts", {"id": "c", "at": b""}), "at"),
        (lambda: delete("carts", {"id": None}), "id"),
        (lambda: check("carts", {"id": ""}, Absent("id")), "id"),
        (lambda: update("carts", {"id": ""}, sets={"n": 1}), "id"),
        (lambda: delete("carts", {"id": "c"}, when=claim()), "when"),  # type: ignore[arg-type]
        (lambda: check("carts", {"id": "c"}, None), "when"),  # type: ignore[arg-type]
        (lambda: compare("n", ">", 1), "operator"),  # type: ignore[arg-type]
        (lambda: delete("carts", {"id": "c"}, when=Absent(5)), "when.name"),  # type: ignore[arg-type]
        (lambda: delete("carts", {"id": "c"}, when=Present("")), "when.name"),
        (lambda: check("carts", {"id": "c"}, BeginsWith("id", b"c")), "when.prefix"),  # type: ignore[arg-type]
        (lambda: put("carts", {"id": "c"}, when=Compare("n", "=", 5)), "when.value"),  # type: ignore[arg-type]
        (lambda: put("carts", {"id": "c"}, when=Not(Absent("\ud800"))), "when.condition.name"),  # type: ignore[arg-type]
        (lambda: put("carts", {"id": "c"}, when=AnyOf(())), "when.conditions"),
        (lambda: put("carts", {"id": "c"}, when=All("id")), "when.conditions"),  # type: ignore[arg-type]
        (
            lambda: put("carts", {"id": "c"}, when=All((Absent("id"), AnyOf(("id",))))),  # type: ignore[arg-type]
            "when.conditions[1].conditions[0]",
        ),
        (lambda: update("carts", {"id": "c"}, removes="name"), "removes"),
        (lambda: update("carts", None, sets={"n": 1}), "key"),  # type: ignore[arg-type]
        (lambda: update("carts", b"c", sets={"n": 1}), "key"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_item_or_condition_is_refused_by_its_name_when_it_is_made(
    write: Callable[[], object], field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        write()
    assert refused.value.field == field


def test_numbers_that_are_equal_are_one_item_in_memory_as_in_dynamodb() -> None:
    by_number = TableSpec(kind="numbered", partition=KeyAttribute(name="n", type="N"))
    tables = memory_tables(numbered=by_number)
    also = [put("numbered", {"n": 1}), put("numbered", {"n": Decimal("1.0"), "by": "another"})]
    with pytest.raises(InvalidInput, match="also: must not have two writes to one item"):
        memory_streams(tables).append("User-1", [E], also=also)
    assert stored(tables, "numbered") == []


def without(streams: Streams, *missing: str) -> Streams:
    """The same store on DynamoDB, which does not say which table of a transaction it lacks, or has other keys."""

    def execute(op: Op) -> Reply:
        if isinstance(op, Transact):
            raise (MissingTable if missing else WrongTable)(", ".join(sorted(tables_of(op))))
        return streams.driver.execute(op)

    return streams.on(replace(streams.driver, execute=execute))


def test_a_table_of_the_caller_s_that_is_missing_or_has_other_keys_is_named_alone(streams: Streams) -> None:
    with pytest.raises(MissingTable, match="^table emails does not exist here"):
        without(streams, "emails").append("User-1", [E], also=[claim()])
    with pytest.raises(
        InvalidInput, match="^also: the attributes of the key are not those of table carts, emails$"
    ):
        without(streams).append("User-1", [E], also=[claim(), counted()])


def test_under_a_key_an_append_whose_answer_was_lost_is_no_repeat(streams: Streams) -> None:
    assert not losing(streams).append("User-1", [E], idempotency_key="k", also=[claim(), counted()]).replayed
    assert streams.append("User-1", [E], idempotency_key="k", also=[claim(), counted()]).replayed


def test_one_stream_takes_as_many_under_a_key_by_itself_as_it_does_alone(streams: Streams) -> None:
    also = [put("carts", {"id": str(number)}) for number in range(99)]
    one = StreamAppend(stream="User-1", events=[E])
    assert streams.append_all([one], idempotency_key="k", also=also).streams["User-1"].version == 1
    assert streams.append("User-1", [E], idempotency_key="k", also=also).replayed


@pytest.mark.parametrize("others", [(), (put("carts", {"id": "other"}),)])
def test_what_goes_with_it_is_part_of_the_contents_that_a_key_is_for(
    streams: Streams, tagged: TaggedEvents, others: tuple[TransactionWrite, ...]
) -> None:
    many = [StreamAppend(stream=name, events=[E]) for name in ("Account-a", "Account-b")]
    calls: list[Callable[[Any], Any]] = [
        lambda also: streams.append("User-1", [E], idempotency_key="k", also=also),
        lambda also: streams.append_all(many, idempotency_key="k", also=also),
        lambda also: streams.append("U-1", (), unfolds=[Unfold(type="S")], idempotency_key="k", also=also),
        lambda also: tagged.append([T], idempotency_key="k", also=also),
    ]
    for call in calls:
        call([counted()])
        with pytest.raises(InvalidInput, match="idempotency_key: was already used"):
            call(others)


def test_a_key_that_was_refused_for_a_condition_is_free(streams: Streams, tables: MemoryTables) -> None:
    streams.append("User-0", [E], also=[claim()])

    for stream, key in (("User-1", "k"), ("User-2", "l")):
        with pytest.raises(ConditionUnmet):
            streams.append(stream, [E], idempotency_key=key, also=[claim()])
    with pytest.raises(ConditionUnmet):
        streams.append("User-1", (), unfolds=[Unfold(type="S")], idempotency_key="u", also=[claim()])
    streams.append("User-0", [E], also=[delete("emails", {"email": "a@example.com"})])

    assert not streams.append("User-1", [E], idempotency_key="k", also=[claim()]).replayed


def test_tagged_events_take_it_in_their_transaction(tagged: TaggedEvents, tables: MemoryTables) -> None:
    query = Query(items=(QueryItem(tags=frozenset({"user:1"})),))

    made = tagged.append([T], fail_if=query, idempotency_key="k", also=[claim(), counted()])

    assert tagged.append([T], fail_if=query, idempotency_key="k", also=[claim(), counted()]).replayed
    assert stored(tables, "carts") == [{"id": "c", "n": 1}]
    with pytest.raises(ConditionUnmet) as refused:
        tagged.append([T], fail_if=query, after=made.position, also=[claim()])
    assert refused.value.places == [0]
    with pytest.raises(ConflictError, match="stored events match the condition"):
        tagged.append([T], fail_if=query, also=[claim()])


def test_streams_whose_events_have_tags_take_it_too(streams: Streams, tables: MemoryTables) -> None:
    event, query = replace(E, tags=("user:1",)), Query(items=(QueryItem(tags=frozenset({"user:1"})),))
    two = [StreamAppend(stream=name, events=[event]) for name in ("User-2", "User-3")]

    made = streams.append("User-1", [event], fail_if=query, idempotency_key="k", also=[claim(), counted()])

    assert streams.append("User-1", [event], idempotency_key="k", also=[claim(), counted()]).replayed
    with pytest.raises(InvalidInput, match="was already used"):
        streams.append("User-1", [event], idempotency_key="k", also=[counted()])
    with pytest.raises(ConditionUnmet, match=r"at \[1\]"):
        streams.append("User-1", [event], fail_if=query, after=made.position, also=[counted(), claim()])
    for appends in (two, two[:1]):
        with pytest.raises(ConditionUnmet):
            streams.append_all(appends, fail_if=query, after=made.position, also=[claim()])
    with pytest.raises(ConflictError, match="stored events match the condition"):
        streams.append_all(two, fail_if=query, also=[claim()])
    assert streams.append_all(two, also=[counted()]).streams["User-3"].version == 1
    assert stored(tables, "carts") == [{"id": "c", "n": 2}]


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "the store's table": (
        lambda: [put("streams", {"p": "User-1", "i": 0})],
        r"also\[0\]: must not name a table",
    ),
    "one item twice": (lambda: [counted(), counted()], r"also\[1\]: must not name an item"),
    "one item, put and by its key": (
        lambda: [put("carts", {"id": "c", "n": 1}), check("carts", {"id": "c"}, Absent("id"))],
        r"also\[1\]: must not name an item",
    ),
    "one item, put twice": (
        lambda: [put("carts", {"id": "c", "n": 1}), put("carts", {"id": "c"})],
        "also: must not have two writes to one item",
    ),
    "an item too large": (
        lambda: [counted(), put("carts", {"id": "d", "x": "x" * 410_000})],
        r"also\[1\]: 410",
    ),
    "too many items": (lambda: [put("carts", {"id": str(k)}) for k in range(100)], "also: 100 items"),
    "too many bytes": (
        lambda: [put("carts", {"id": str(k), "x": "x" * 400_000}) for k in range(11)],
        "also: 4,4",
    ),
    "no write": (lambda: [{"Put": {}}], r"also\[0\]: must be a put"),
    "no list": (lambda: "put", "also: must be a list"),
    "no list, but one": (counted, "also: must be a list, not Update"),
    "without the key": (
        lambda: [counted(), put("emails", {"id": "1"})],
        r"also\[1\]: the attributes of the key are not those of table emails",
    ),
    "a key of another type": (
        lambda: [put("carts", {"id": 1})],
        r"also\[0\]: the attributes of the key are not those of table carts",
    ),
}


@pytest.mark.parametrize(("also", "words"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_go_with_events_is_refused_before_anything_is_written(
    streams: Streams, tagged: TaggedEvents, tables: MemoryTables, also: Callable[[], Any], words: str
) -> None:
    for append in (
        lambda: streams.append("User-1", [E], also=also()),
        lambda: streams.append_all([StreamAppend(stream="User-1", events=[E])], also=also()),
        lambda: tagged.append([T], also=also()),
    ):
        with pytest.raises(InvalidInput, match=words):
            append()
    assert not [*tables.items("streams"), *tables.items("carts")]


@pytest.mark.parametrize("value", [1.5, float("nan"), Decimal("NaN"), object(), set(), {1, "a"}, {None}])
def test_a_value_that_dynamodb_has_not_is_refused_by_its_name(value: object) -> None:
    with pytest.raises(InvalidInput, match="n: "):
        put("carts", {"id": "c", "n": value})


def test_an_item_that_would_become_too_large_is_named(streams: Streams, tables: MemoryTables) -> None:
    large = update("carts", {"id": "c"}, extends={"lines": ["x" * 250_000]})
    streams.append("Cart-1", [E], also=[large])

    for key in (None, "k"):
        with pytest.raises(TooLarge, match=r"also\[1\]"):
            streams.append("Cart-1", [E], also=[claim(), large], idempotency_key=key)
    with pytest.raises(TooLarge, match=r"also\[0\]"):
        streams.append("Cart-1", (), unfolds=[Unfold(type="S")], also=[large], idempotency_key="u")

    state = streams.load("Cart-1")
    assert state is not None
    assert state.version == 1
    assert len(list(tables.items("streams"))) == 2, "the page is not left for it; a key has its record"


def test_layouts_of_others_refuse_it_and_say_so(tables: MemoryTables) -> None:
    with pytest.raises(
        InvalidInput, match="also: cannot be appended in one transaction with the layout tips"
    ):
        memory_tips(tables).append("User-1", [E], also=[counted()])
    with pytest.raises(
        InvalidInput, match="also: cannot be appended in one transaction with events in Sekiban's tables"
    ):
        memory_dcb_events(tables).append([T], also=[counted()])


def test_it_is_awaited_too(streams: Streams, tables: MemoryTables) -> None:
    made = asyncio.run(AsyncStreams(streams).append("User-1", [E], also=[counted()]))

    assert isinstance(made, Appended)
    assert stored(tables, "carts") == [{"id": "c", "n": 1}]


def test_a_lost_try_that_may_still_arrive_is_no_refusal(streams: Streams) -> None:
    """The seat is gone now, but the try whose answer was lost may find one."""
    lost = iter([True])

    def execute(op: Op) -> Reply:
        if isinstance(op, Transact) and next(lost, False):
            raise Lost("on its way still")
        return streams.driver.execute(op)

    slow = streams.on(replace(streams.driver, execute=execute, sleep=lambda _: None))
    with pytest.raises(Unavailable) as error:
        slow.append("Cart-1", [E], also=[check("carts", {"id": "c"}, compare("n", ">=", 1))])
    assert error.value.maybe_applied


def test_a_lost_try_of_what_is_too_large_by_now_is_no_refusal(streams: Streams, tables: MemoryTables) -> None:
    """The list has no room now, but the try whose answer was lost may arrive when it has some."""
    lost = iter([True])
    large = update("carts", {"id": "c"}, extends={"lines": ["x" * 250_000]})
    tables.execute(large)

    def execute(op: Op) -> Reply:
        if isinstance(op, Transact) and next(lost, False):
            raise Lost("on its way still")
        return streams.driver.execute(op)

    slow = streams.on(replace(streams.driver, execute=execute, sleep=lambda _: None))
    with pytest.raises(Unavailable, match=r"also\[0\]") as error:
        slow.append("Cart-1", [E], also=[large])
    assert error.value.maybe_applied


@dataclass(frozen=True)
class Registered:
    """A user was registered."""

    email: str


USERS: Decider[str, int, Registered] = Decider(
    initial=lambda: 0,
    evolve=lambda count, _: count + 1,
    decide=lambda email, count: WithAlso([Registered(email)], [claim(email, str(count)), counted()]),
)


@pytest.mark.parametrize("key", [None, "k"])
def test_a_decider_answers_them_with_its_events(
    streams: Streams, tables: MemoryTables, key: str | None
) -> None:
    deciders = Deciders(streams=streams, decider=USERS, codec=json_codec(Registered))

    deciders.handle("User-1", "a@example.com", idempotency_key=key)
    if key is not None:
        assert deciders.handle("User-1", "a@example.com", idempotency_key=key).replayed
    assert stored(tables, "emails") == [{"email": "a@example.com", "by": "0"}]
    assert stored(tables, "carts") == [{"id": "c", "n": 1}]
    with pytest.raises(ConditionUnmet) as refused:
        deciders.handle("User-2", "a@example.com", idempotency_key=key)
    assert refused.value.places == [0]

    handle_all(
        [deciders.on("User-3"), deciders.on("User-4")],
        lambda *_: [
            WithAlso([Registered("b")], [claim("b", "3")]),
            WithAlso([Registered("c")], [claim("c", "4")]),
        ],
        idempotency_key=key and f"{key}2",
    )
    assert {each["email"] for each in stored(tables, "emails")} == {"a@example.com", "b", "c"}
    with pytest.raises(InvalidInput, match="also: must not be given without events"):
        deciders.handle("User-5", decide=lambda _: WithAlso([], [counted()]))
    assert streams.load("User-2") is None


def test_a_decision_on_a_query_answers_them_and_others_refuse_what_they_would_lose(
    tagged: TaggedEvents, tables: MemoryTables
) -> None:
    seats = {"taken": projection(tags=["user:1"], on={"Moved": lambda n, _: n + 1}, initial=0)}

    Decisions(store=tagged).handle(seats, lambda _: WithAlso([T], [counted()]))
    assert stored(tables, "carts") == [{"id": "c", "n": 1}]
    with pytest.raises(ConditionUnmet):
        Decisions(store=tagged).handle(
            seats, lambda _: WithAlso([T], [check("carts", {"id": "d"}, Present("id"))])
        )
    with pytest.raises(InvalidInput, match="also: cannot"):
        Decisions(store=memory_dcb_events(tables)).handle(seats, lambda _: WithAlso([T], [counted()]))
    codec, state = json_codec(Registered), StateCodec[int](encode=json.dumps, decode=json.loads)
    aggregates = AggregateDeciders(store=memory_aggregates(), decider=USERS, codec=codec, state=state)
    with pytest.raises(InvalidInput, match="also: cannot be combined with events of an aggregate"):
        aggregates.handle(aggregate_id("user", "1"), "a@example.com")


def test_a_decision_on_a_stream_and_a_query_answers_them_and_is_not_made_where_one_is_refused(
    streams: Streams, tables: MemoryTables
) -> None:
    party = Deciders(streams=streams, decider=USERS, codec=json_codec(Registered)).on("User-1")
    seats = {"taken": projection(tags=["user:1"], on={"Moved": lambda n, _: n + 1}, initial=0)}

    made = party.deciders.handle(
        party.stream, given=seats, decide=lambda *_: WithAlso([Registered("a")], [claim("a"), counted()])
    )
    assert (made.version, stored(tables, "carts")) == (1, [{"id": "c", "n": 1}])
    with pytest.raises(ConditionUnmet) as refused:
        party.deciders.handle(
            party.stream, given=seats, decide=lambda *_: WithAlso([Registered("a")], [counted(), claim("a")])
        )
    assert refused.value.places == [1]
    assert (streams.load("User-1").version, stored(tables, "carts")) == (1, [{"id": "c", "n": 1}])  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({}, "update"),
        ({"sets": {"n": 1}, "removes": ["n"]}, "n"),
        ({"sets": {"n": 1}, "adds": {"n": 1}}, "n"),
        ({"sets": {"id": "d"}}, "id"),
        ({"adds": {"n": 10**38 + 1}}, "n"),
        ({"sets": {"n": Decimal("1E126")}}, "n"),
        ({"sets": {"n": Decimal("1E-131")}}, "n"),
        ({"sets": {"n": {10**38 + 1}}}, "n"),
        ({"adds": {"n": True}}, "n"),
        ({"adds": {"n": "1"}}, "n"),
        ({"extends": {"lines": "x"}}, "lines"),
        ({"sets": 5}, "sets"),
        ({"adds": [1]}, "adds"),
        ({"extends": "x"}, "extends"),
        ({"sets": {"": 1}}, "also"),
    ],
)
def test_a_change_that_dynamodb_does_not_take_is_refused_with_its_place(
    changes: dict[str, Any], place: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        update("carts", {"id": "c"}, **changes)
    assert refused.value.field == place


@pytest.mark.parametrize("table", [None, 5, "", "x" * 2_000])
def test_what_is_no_name_of_a_table_is_refused(table: Any) -> None:
    for write in (
        lambda: put(table, {"id": "c"}),
        lambda: update(table, {"id": "c"}, sets={"n": 1}),
        lambda: delete(table, {"id": "c"}),
        lambda: check(table, {"id": "c"}, Absent("n")),
    ):
        with pytest.raises(InvalidInput) as refused:
            write()
        assert refused.value.field == "table"


def test_numbers_and_levels_go_as_far_as_dynamodb_takes_them() -> None:
    def nested(levels: int) -> Any:
        return {"of": nested(levels - 1)} if levels else "x"

    large = (10**37 + 1) * 10**88
    taken = put("carts", {"id": "c", "n": large, "small": Decimal("1E-130"), "deep": nested(31)})
    assert plain(taken.item)["n"] == large
    with pytest.raises(InvalidInput, match=r"deep: has more than 32 levels"):
        put("carts", {"id": "c", "deep": nested(32)})
