"""A function that would have to be iterated or awaited is refused, or its call has failed: never is that silent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from epochal.contrib.event_store_adapter.deciders import AggregateDeciders
from epochal.contrib.event_store_adapter.ids import aggregate_id
from epochal.contrib.event_store_adapter.state_codecs import StateCodec
from epochal.deciders.access import Access, custom, multi_snapshot, rolling_state, snapshot
from epochal.deciders.codecs import EventCodec
from epochal.deciders.on_queries import Decisions
from epochal.deciders.on_streams import Decider, Deciders
from epochal.deciders.projections import Projection, projection
from epochal.errors import InvalidInput
from epochal.model.events import Event
from epochal.model.plain_functions import must_be_done, must_be_plain
from epochal.model.tags import Query, QueryItem
from epochal.reactions.definition import Delivery, Selector, reaction
from epochal.testing.feeds import MemoryStore
from tests.layouts.deciders.tally import CODEC, DECIDER, Added, Snapshotted, Tally


async def waits(*_: Any) -> None:
    """Nothing awaits this."""


async def streams(*_: Any) -> AsyncIterator[None]:
    """Nothing iterates this."""
    yield


def yields(*_: Any) -> Iterator[None]:
    """Nothing iterates this either."""
    yield


class Future:
    def __await__(self) -> Iterator[None]:
        yield


NOT_PLAIN: dict[str, Callable[..., Any]] = {
    "async generator": streams,
    "generator": yields,
    "partial of partial": partial(partial(yields, 1), 2),
    "lambda that yields": lambda _: (yield),
}


@pytest.mark.parametrize("handler", NOT_PLAIN.values(), ids=NOT_PLAIN)
def test_a_handler_that_would_have_to_be_iterated_is_refused_where_it_is_made_a_reaction(
    handler: Callable[..., Any],
) -> None:
    with pytest.raises(InvalidInput, match="handler: must be a plain function"):
        reaction(name="board")(handler)


@pytest.mark.parametrize("handler", [None, "board", 7, ["board"]], ids=repr)
def test_what_is_no_function_is_refused_where_it_is_made_a_reaction(handler: Any) -> None:
    with pytest.raises(InvalidInput, match=f"handler: must be a function, not {type(handler).__name__}"):
        reaction(name="board")(handler)


WITHOUT_ROOM: dict[str, Callable[..., Any]] = {
    "takes nothing": lambda: None,
    "takes two": lambda _delivery, _context: None,
    "has a name of its own to be told": partial(lambda _delivery, *, _board: None),
}


@pytest.mark.parametrize("handler", WITHOUT_ROOM.values(), ids=WITHOUT_ROOM)
def test_a_handler_that_a_delivery_cannot_be_given_is_refused_where_it_is_made_a_reaction(
    handler: Callable[..., Any],
) -> None:
    with pytest.raises(InvalidInput, match="handler: is called with a delivery and nothing else: "):
        reaction(name="board")(handler)


@pytest.mark.parametrize(
    "handler",
    [print, partial(lambda _board, _delivery: None, {}), lambda *_: None],
    ids=["print", "partial", "any number"],
)
def test_a_handler_that_takes_a_delivery_or_does_not_tell_is_taken(handler: Callable[..., Any]) -> None:
    assert reaction(name="board")(handler).handler is handler


RETURNED: dict[str, Callable[[], object]] = {
    "coroutine": waits,
    "generator": yields,
    "async generator": streams,
    "future": Future,
}


@pytest.mark.parametrize("made", RETURNED.values(), ids=RETURNED)
def test_a_delivery_whose_handler_returns_work_to_be_done_has_failed_and_its_stream_is_parked(
    made: Callable[[], object],
) -> None:
    feed = MemoryStore()
    feed.tips.append("Cart-1", [Event(type="Opened")])
    board = reaction(name="board", attempts=2)(lambda _: made())
    (ran,) = feed.react(board)[:1]
    assert [failure.stream for failure in ran.parked] == ["Cart-1"]
    assert "must be a plain function" in ran.parked[0].cause
    assert ran.events == 0
    (parked,) = feed.parking(board).streams(0)
    assert parked.index == 0


def test_a_test_that_calls_a_reaction_is_told_too() -> None:
    board = reaction(name="board")(lambda _: waits())
    delivery = Delivery(group="board", partition=0, stream="A-1", events=())
    with pytest.raises(InvalidInput, match="coroutine"):
        board(delivery)


def test_what_a_plain_handler_returns_is_nobodys_business() -> None:
    for result in (None, 0, [1], {"a": 1}, iter([1]), "text"):
        must_be_done(result, "handler")
    for function in (print, Delivery, partial(print, 1), len, dict.get, lambda _: 1):
        must_be_plain(function, "handler")


def test_a_function_that_runs_its_coroutine_is_plain() -> None:
    handled: list[str] = []

    async def later(delivery: Delivery) -> None:
        handled.append(delivery.stream)

    feed = MemoryStore()
    feed.tips.append("Cart-1", [Event(type="Opened")])
    feed.react(reaction(name="board")(lambda delivery: asyncio.run(later(delivery))))
    assert handled == ["Cart-1"]


def test_a_fold_that_would_have_to_be_awaited_moves_no_read_model() -> None:
    feed = MemoryStore()
    feed.tips.append("Cart-1", [Event(type="Opened")])
    model = feed.read_models.open("carts", 1)
    for fold in (waits, lambda *_: waits()):
        (ran, *_) = feed.react(reaction(name=f"carts-{id(fold)}", attempts=1)(partial(_apply, model, fold)))
        assert "fold: must be a plain function" in ran.parked[0].cause
    assert model.place("Cart-1") is None


def _apply(model: Any, fold: Any, delivery: Delivery) -> None:
    model.apply(delivery, fold)


def plain(*_: Any) -> Any:
    """Any function's stand-in."""


QUERY = Query(items=(QueryItem(tags=frozenset({"a:1"})),))


@pytest.mark.parametrize(
    ("field", "make"),
    [
        ("initial", lambda: Decider(initial=waits, evolve=plain, decide=plain)),
        ("evolve", lambda: Decider(initial=plain, evolve=waits, decide=plain)),
        ("decide", lambda: Decider(initial=plain, evolve=plain, decide=waits)),
        ("encode", lambda: EventCodec(encode=waits, decode=plain)),
        ("decode", lambda: EventCodec(encode=plain, decode=waits)),
        ("encode", lambda: StateCodec(encode=waits, decode=plain)),
        ("decode", lambda: StateCodec(encode=plain, decode=waits)),
        ("transmute", lambda: custom(plain, waits)),
        ("unfold_is_origin", lambda: Access(transmute=plain, unfold_is_origin=waits)),
        ("event_is_origin", lambda: Access(transmute=plain, unfold_is_origin=plain, event_is_origin=waits)),
        ("unfold_is_origin", lambda: snapshot(waits, plain)),
        ("to_snapshot", lambda: snapshot(plain, waits)),
        ("to_snapshots", lambda: multi_snapshot(plain, waits)),
        ("to_snapshot", lambda: rolling_state(waits)),
        ("initial", lambda: Projection(query=QUERY, initial=waits, evolve=plain)),
        ("evolve", lambda: Projection(query=QUERY, initial=plain, evolve=waits)),
        ("on['Opened']", lambda: projection(tags=["a:1"], on={"Opened": waits}, initial=0)),
        ("policy", lambda: on_aggregates(policy=waits)),
        ("initial", lambda: Decider(initial=0, evolve=plain, decide=plain)),  # type: ignore[arg-type]
        ("unfold_is_origin", lambda: Access(transmute=plain, unfold_is_origin=None)),  # type: ignore[arg-type]
    ],
)
def test_functions_of_a_domain_that_would_have_to_be_awaited_are_refused(
    field: str, make: Callable[[], object]
) -> None:
    with pytest.raises(InvalidInput) as refused:
        make()
    assert refused.value.field == field


def test_a_predicate_that_would_have_to_be_awaited_is_not_taken_for_true() -> None:
    feed = MemoryStore()
    feed.tips.append("Cart-1", [Event(type="Opened")])
    feed.index()
    for predicate in (waits, coroutine_of):
        with pytest.raises(InvalidInput, match="predicate: must be a plain function"):
            list(feed.feed.read(0, predicate=predicate))  # type: ignore[arg-type]


def coroutine_of(*_: object) -> Any:
    return waits()


@pytest.mark.parametrize("decide", [waits, coroutine_of])
def test_a_decision_that_would_have_to_be_awaited_stores_nothing(decide: Any) -> None:
    feed = MemoryStore()
    deciders = Deciders(streams=feed.tips, decider=DECIDER, codec=CODEC)
    state = StateCodec(encode=plain, decode=plain)
    aggregates = AggregateDeciders(store=feed.aggregates, decider=DECIDER, codec=CODEC, state=state)
    for refused in (
        lambda: deciders.handle("Tally-1", decide=decide),
        lambda: deciders.handle("Tally-1", decide=decide, with_result=True),
        lambda: aggregates.handle(aggregate_id("tally", "1"), decide=decide),
        lambda: Decisions(store=feed.dcb).handle(
            {"one": projection(tags=["a:1"], on={"Opened": plain}, initial=0)}, decide
        ),
    ):
        with pytest.raises(InvalidInput, match="decide: must be a plain function"):
            refused()
    assert not [*feed.tables.items("tips"), *feed.tables.items("journal"), *feed.tables.items("events")]


def on_streams(feed: MemoryStore | None = None, **changed: Any) -> Deciders[Any, Any, Any]:
    """Deciders with some functions changed."""
    rules = {name: changed.pop(name) for name in ("initial", "evolve") if name in changed}
    codec = {name: changed.pop(name) for name in ("encode", "decode") if name in changed}
    return Deciders(
        streams=(feed or MemoryStore()).tips,
        decider=replace(DECIDER, **rules),
        codec=replace(CODEC, **codec),
        **changed,
    )


def on_aggregates(feed: MemoryStore | None = None, **changed: Any) -> AggregateDeciders[Any, Any, Any]:
    """Deciders on aggregates with some functions changed; `restore` is how a state is decoded."""
    rules = {name: changed.pop(name) for name in ("initial", "evolve") if name in changed}
    codec = {name: changed.pop(name) for name in ("encode", "decode") if name in changed}
    return AggregateDeciders(
        store=(feed or MemoryStore()).aggregates,
        decider=replace(DECIDER, **rules),
        codec=replace(CODEC, **codec),
        state=StateCodec(
            encode=changed.pop("store", lambda _: b"{}"), decode=changed.pop("restore", lambda _: Tally())
        ),
        **changed,
    )


SNAPSHOTS: Access[Any, Any] = snapshot(plain, lambda tally: Snapshotted(tally.total))

OF_STREAMS: dict[str, tuple[str, dict[str, Any]]] = {
    "initial": ("initial", {"initial": coroutine_of}),
    "evolve": ("evolve", {"evolve": coroutine_of}),
    "encode": ("encode", {"encode": coroutine_of}),
    "decode": ("decode", {"decode": coroutine_of}),
    "an origin among unfolds": ("unfold_is_origin", {"access": snapshot(coroutine_of, plain)}),
    "an origin among events": (
        "event_is_origin",
        {"access": Access(transmute=plain, unfold_is_origin=plain, event_is_origin=coroutine_of)},
    ),
    "a snapshot": ("to_snapshot", {"access": snapshot(plain, coroutine_of)}),
    "snapshots": ("to_snapshots", {"access": multi_snapshot(plain, coroutine_of)}),
    "a rolling state": ("to_snapshot", {"access": rolling_state(coroutine_of)}),
    "a custom strategy": ("transmute", {"access": custom(plain, coroutine_of)}),
}


@pytest.mark.parametrize(("field", "changed"), OF_STREAMS.values(), ids=OF_STREAMS)
def test_a_decider_whose_function_returns_work_to_be_done_stores_nothing_and_is_told_which(
    field: str, changed: dict[str, Any]
) -> None:
    feed = MemoryStore()
    written = Deciders(streams=feed.tips, decider=DECIDER, codec=CODEC, access=SNAPSHOTS)
    written.handle("Tally-1", decide=lambda _: [Added(1, 1)])
    before = list(feed.tables.items("tips"))
    with pytest.raises(InvalidInput, match="it returned a coroutine") as refused:
        on_streams(feed, **changed).handle("Tally-1", decide=lambda _: [Added(1, 1)])
    assert refused.value.field == field
    assert list(feed.tables.items("tips")) == before


OF_AGGREGATES = ("initial", "evolve", "encode", "decode", "store", "restore", "policy")


@pytest.mark.parametrize("function", OF_AGGREGATES)
def test_so_is_one_on_aggregates(function: str) -> None:
    feed, aggregate = MemoryStore(), aggregate_id("tally", "1")
    if function not in ("initial", "store"):
        for _ in range(2):
            on_aggregates(feed, policy=lambda _: False).handle(aggregate, decide=lambda _: [Added(1, 1)])
    before = [*feed.tables.items("journal"), *feed.tables.items("snapshot")]
    with pytest.raises(InvalidInput, match="it returned a coroutine") as refused:
        on_aggregates(feed, **{function: coroutine_of}).handle(aggregate, decide=lambda _: [Added(1, 1)])
    assert refused.value.field == {"store": "encode", "restore": "decode"}.get(function, function)
    assert [*feed.tables.items("journal"), *feed.tables.items("snapshot")] == before


@pytest.mark.parametrize(
    ("field", "asked"),
    [
        ("initial", Projection(query=QUERY, initial=coroutine_of, evolve=plain)),
        ("evolve", Projection(query=QUERY, initial=plain, evolve=coroutine_of)),
        ("evolve", projection(tags=["a:1"], on={"Opened": coroutine_of}, initial=0)),
    ],
)
def test_so_is_a_projection_of_tagged_events(field: str, asked: Projection[Any]) -> None:
    feed = MemoryStore()
    feed.dcb.append([Event(type="Opened", data=b"{}", tags=("a:1",))])
    with pytest.raises(InvalidInput, match="it returned a coroutine") as refused:
        Decisions(store=feed.dcb).model({"one": asked})
    assert refused.value.field == field


def not_a(*kinds: type) -> list[Any]:
    """Values of other kinds than these."""
    values = (None, 5, -1, float("nan"), float("inf"), 1.5, True, [], {}, b"x", object, "x", 10**30)
    return [each for each in values if type(each) not in kinds]


REFUSED: dict[str, list[Any]] = {
    "name": ["", *not_a(str)],
    "categories": ["", [5], *not_a(type(None), list, dict)],
    "types": ["", [None], *not_a(type(None), list, dict)],
    "sources": ["", [5], *not_a(type(None), list, dict)],
    "only": ["", *not_a(type(None))],
    "max_events": ["", 0, *(each for each in not_a() if each is True or each != 5)],
    "parallel": ["", 0, *(each for each in not_a() if each is True or each != 5)],
    "attempts": ["", 0, *(each for each in not_a() if each is True or each != 5)],
    "members": ["", 0, *(each for each in not_a() if each is True or each != 5)],
    "partition_by": not_a(),
    "in_order": ["", *not_a(bool)],
    "once": ["", *not_a(bool)],
    "sealed": ["", *not_a(bool)],
    "on_failure": ["", *not_a()],
    "start": ["", *not_a(dict)],
}


@pytest.mark.parametrize("field", REFUSED)
def test_an_argument_of_the_wrong_kind_is_refused_where_the_reaction_is_made(field: str) -> None:
    for value in REFUSED[field]:
        with pytest.raises(InvalidInput, match=f"^{field}: must"):
            reaction(**{"name": "board", field: value})(print)


SELECTED: dict[str, list[Any]] = {
    "streams": ["", [5], *not_a(type(None), list, dict)],
    "prefix": not_a(str),
    "query": ["", *not_a(type(None))],
    "correlation_id": not_a(str),
    "metadata": ["", {5: 1}, *not_a(dict)],
}


@pytest.mark.parametrize("field", SELECTED)
def test_an_argument_of_the_wrong_kind_is_refused_where_the_selector_is_made(field: str) -> None:
    for value in SELECTED[field]:
        with pytest.raises(InvalidInput, match=f"^{field}: must"):
            Selector(**{field: value})


def test_a_query_of_a_list_of_items_is_as_good_as_one_of_a_tuple() -> None:
    items: Any = [QueryItem(tags=frozenset({"course:1"}))]
    assert Selector(query=Query(items=items)).query == Query(items=items)


@pytest.mark.parametrize(
    "act", ["pause", "resume", "standing", "members", "delete", "reset", "begin", "like"]
)
def test_the_name_of_a_group_that_is_no_text_is_refused(act: str) -> None:
    groups = MemoryStore().groups
    steer: Callable[[Any], object] = {
        "reset": lambda group: groups.reset(group, "tail"),
        "begin": lambda group: groups.begin(group, like="board"),
        "like": lambda group: groups.begin("board", like=group),
    }.get(act) or getattr(groups, act)
    for group in not_a(str):
        with pytest.raises(InvalidInput, match="^name: must be text"):
            steer(group)


def test_partitions_that_cannot_be_compared_are_refused_where_a_group_is_reset() -> None:
    feed = MemoryStore()
    feed.react(reaction(name="board")(print))
    with pytest.raises(InvalidInput, match="^partition: board has not begun in partition 1"):
        feed.groups.reset("board", {"x": "tail", 1: "tail", None: "tail"})  # type: ignore[dict-item]
