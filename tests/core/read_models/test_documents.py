"""Read models: every event once, whoever delivers it how often; and a caller can wait for his own."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from epochal.errors import Contended, InvalidInput, Refused, TooLarge
from epochal.feed.events import FeedEvent
from epochal.layout.tables import READ_MODELS, store_tables
from epochal.lazy_dataclasses import replace
from epochal.plan.failures import Lost
from epochal.plan.ops import Op, Query, Reply, Scan, Transact
from epochal.reactions.definition import Delivery
from epochal.read_models.documents import SMALL, Documents, ReadModel, ReadModels
from epochal.testing.memory import MemoryTables
from tests.core.feed.feeds import Feeds
from tests.core.reactions.world import World


def feeds() -> Feeds:
    return Feeds(tables=MemoryTables({spec.kind: spec for spec in (*store_tables(), READ_MODELS)}))


def models(feeds_: Feeds | None = None) -> ReadModels:
    return ReadModels(driver=(feeds_ or feeds()).driver, table="read-models")


def delivery(stream: str, first: int, *types: str) -> Delivery:
    events = tuple(
        FeedEvent(stream=stream, index=first + offset, type=kind) for offset, kind in enumerate(types)
    )
    return Delivery(group="board", partition=0, stream=stream, events=events)


def count(documents: Documents, event: FeedEvent) -> None:
    """How many events of each type there have been."""
    documents.put(event.type, documents.get(event.type, 0) + 1)


def test_events_are_folded_into_documents() -> None:
    model = models().open("counts", 1)
    assert model.apply(delivery("A-1", 0, "x", "y", "x"), count) == 3
    assert (model.get("x"), model.get("y"), model.get("z")) == (2, 1, None)


def test_what_is_delivered_again_is_folded_once() -> None:
    model = models().open("counts", 1)
    model.apply(delivery("A-1", 0, "x", "x"), count)
    assert model.apply(delivery("A-1", 0, "x", "x"), count) == 0
    assert model.apply(delivery("A-1", 1, "x", "x"), count) == 1
    assert model.get("x") == 3


def test_streams_are_folded_side_by_side_into_one_document_and_none_is_lost() -> None:
    model = models().open("counts", 1)
    other = ReadModel(driver=model.driver, table=model.table, name="counts", generation=1)
    interfered = False

    def fold(documents: Documents, event: FeedEvent) -> None:
        nonlocal interfered
        count(documents, event)
        if not interfered:
            interfered = True
            other.apply(delivery("B-1", 0, "x"), count)

    model.apply(delivery("A-1", 0, "x"), fold)
    assert model.get("x") == 2


def test_who_is_slower_and_changes_no_document_does_not_bring_the_place_back() -> None:
    model = models().open("counts", 1)
    interfered = False

    def fold(_: Documents, __: FeedEvent) -> None:
        nonlocal interfered
        if not interfered:
            interfered = True
            model.apply(delivery("A-1", 0, "x", "x", "x"), count)

    assert model.apply(delivery("A-1", 0, "x"), fold) == 0
    assert (model.place("A-1"), model.get("x")) == (3, 3)


def test_a_document_that_is_deleted_and_made_anew_meanwhile_is_another_one() -> None:
    model = models().open("counts", 1)
    model.apply(delivery("A-1", 0, "x", "x"), count)
    interfered = False

    def fold(documents: Documents, event: FeedEvent) -> None:
        nonlocal interfered
        count(documents, event)
        if not interfered:
            interfered = True
            model.apply(delivery("B-1", 0, "x"), lambda found, each: found.delete(each.type))
            model.apply(delivery("C-1", 0, "x"), count)

    model.apply(delivery("D-1", 0, "x"), fold)
    assert model.get("x") == 2, "that of C-1 and that of D-1"


def test_a_document_that_others_always_change_first_is_given_up_and_nothing_is_half_done() -> None:
    model = models().open("counts", 1)
    numbers = iter(range(1_000))

    def fold(documents: Documents, event: FeedEvent) -> None:
        count(documents, event)
        model.apply(delivery(f"B-{next(numbers)}", 0, "x"), count)

    with pytest.raises(Contended):
        model.apply(delivery("A-1", 0, "x"), fold)
    assert model.place("A-1") is None


def test_a_commit_whose_answer_is_lost_is_made_once() -> None:
    tables = feeds()
    lost = False

    def lose(op: Op) -> None:
        nonlocal lost
        if isinstance(op, Transact) and not lost:
            lost = True
            tables.tables.execute(op)
            raise Lost("reset")

    tables.fault = lose
    model = models(tables).open("counts", 1)
    model.apply(delivery("A-1", 0, "x"), count)
    assert lost
    assert model.get("x") == 1


def test_a_place_that_a_reply_lacks_beside_the_document_is_looked_for() -> None:
    """One reply may show the document as a transaction has left it, and not yet the place."""

    def fold(documents: Documents, event: FeedEvent) -> None:
        count(documents, event)
        if event.stream == "B-1" or event.type == "y":
            documents.put("A-1", {"last": event.type, "pad": "p" * 2 * SMALL})

    def torn(op: Op) -> Reply:
        reply = driver.execute(op)
        if isinstance(op, Query):
            assert op.consistent
            reply = replace(reply, items=[item for item in reply.items if item["sk"]["S"] != "place"])
        return reply

    driver = feeds().driver
    model = ReadModels(driver=driver, table="read-models").open("counts", 1)
    model.apply(delivery("B-1", 0, "b"), fold)
    model.apply(delivery("A-1", 0, "x"), fold)

    torn_model = ReadModels(driver=replace(driver, execute=torn), table="read-models").open("counts", 1)
    assert torn_model.apply(delivery("A-1", 0, "x", "y"), fold) == 1
    assert (model.get("x"), model.get("y"), model.place("A-1")) == (1, 1, 2)


@pytest.mark.parametrize(("size", "kinds"), [(SMALL // 2, {"document"}), (2 * SMALL, {"document", "place"})])
def test_progress_is_kept_apart_from_a_large_document_that_its_stream_does_not_change(
    size: int, kinds: set[str]
) -> None:
    def fold(documents: Documents, event: FeedEvent) -> None:
        documents.put("A-1" if event.stream == "B-1" else "last", {"type": event.type, "pad": "p" * size})

    feeds_ = feeds()
    model = models(feeds_).open("counts", 1)
    model.apply(delivery("B-1", 0, "b"), fold)
    for index in range(3):
        model.apply(delivery("A-1", index, "x"), fold)

    items = [item for item in feeds_.tables.items("read-models") if item["pk"]["S"] == "counts@1#A-1"]
    assert {item["sk"]["S"] for item in items} == kinds
    assert (model.place("A-1"), model.get("A-1")["type"]) == (3, "b")


def test_a_fold_that_fails_changes_nothing() -> None:
    model = models().open("counts", 1)

    def fold(documents: Documents, event: FeedEvent) -> None:
        count(documents, event)
        if event.index == 1:
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        model.apply(delivery("A-1", 0, "x", "x"), fold)
    assert (model.get("x"), model.place("A-1")) == (None, None)


def test_a_delivery_that_changes_more_documents_than_a_transaction_holds_is_committed_in_parts() -> None:
    model = models().open("each", 1)

    def fold(documents: Documents, event: FeedEvent) -> None:
        documents.put(f"{event.stream}@{event.index}", event.type)

    assert model.apply(delivery("A-1", 0, *["x"] * 250), fold) == 250
    assert model.place("A-1") == 250
    assert model.get("A-1@249") == "x"


def test_one_event_that_changes_too_many_documents_is_refused() -> None:
    model = models().open("each", 1)

    def fold(documents: Documents, _: FeedEvent) -> None:
        for number in range(100):
            documents.put(str(number), number)

    with pytest.raises(TooLarge):
        model.apply(delivery("A-1", 0, "x"), fold)
    assert model.place("A-1") is None


def test_documents_can_be_deleted_and_written_again() -> None:
    model = models().open("board", 1)

    def fold(documents: Documents, event: FeedEvent) -> None:
        if event.type == "Landed":
            documents.delete(event.stream)
        else:
            documents.put(event.stream, {"state": event.type})

    model.apply(delivery("A-1", 0, "Departed"), fold)
    assert model.get("A-1") == {"state": "Departed"}
    model.apply(delivery("A-1", 1, "Landed"), fold)
    assert model.get("A-1", "gone") == "gone"
    model.apply(delivery("A-1", 2, "Departed", "Landed", "Departed"), fold)
    assert model.get("A-1") == {"state": "Departed"}


def test_nothing_is_no_document() -> None:
    with pytest.raises(InvalidInput, match="delete"):
        models().open("board", 1).apply(
            delivery("A-1", 0, "x"), lambda documents, _: documents.put("k", None)
        )


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ({5: 1}, "names that are not text"),
        ({"counts": [{5: 1, "5": 2}]}, "a name twice"),
        ({"counts": [{None: 1}]}, "names that are not text"),
        (Decimal("1" * 5_000), "digits"),
    ],
)
def test_a_document_that_would_come_back_as_another_is_refused(value: object, rule: str) -> None:
    model = models().open("board", 1)
    with pytest.raises(InvalidInput, match=rule):
        model.apply(delivery("A-1", 0, "x"), lambda documents, _: documents.put("k", value))
    assert model.get("k") is None


def test_a_caller_waits_until_what_he_appended_is_in_the_documents() -> None:
    world = World(feeds=feeds())
    model = models(world.feeds).open("counts", 1)
    world.told.during = lambda call: model.apply(call, count)
    appended = world.feeds.append("A-1", "x", "y")
    assert not model.wait_for("A-1", appended.version, seconds=1)

    def catch_up() -> None:
        world.index()
        world.reactor().run(0, seconds=60)

    steps: list[Callable[[], object]] = [catch_up]
    world.feeds.clock.at_sleep = lambda: steps.pop()() if steps else None
    assert model.wait_for("A-1", appended.version, seconds=10)
    assert model.get("y") == 1


def test_a_generation_is_made_beside_the_live_one_and_takes_its_place() -> None:
    found = models()
    one, two = found.open("counts", 1), found.open("counts", 2)
    one.apply(delivery("A-1", 0, "x"), count)
    assert found.live("counts").get("x") == 1
    two.apply(delivery("A-1", 0, "x", "x"), count)
    assert found.live("counts").get("x") == 1
    assert found.swap("counts", 2).get("x") == 2
    assert found.live("counts").get("x") == 2
    with pytest.raises(
        InvalidInput, match="generation: must not be 1: 2 is live already, and a swap only goes forward"
    ):
        found.swap("counts", 1)


@pytest.mark.parametrize("keys", [None, {}, {"by": str}])
def test_a_generation_in_which_nothing_is_does_not_become_the_live_one(keys: Any) -> None:
    found = models()
    found.open("counts", 1, keys=keys).apply(delivery("A-1", 0, "x"), count)
    found.open("counts", 30, keys=keys).apply(delivery("A-1", 0, "x"), count)
    found.open("counts-3", 1, keys=keys).apply(delivery("A-1", 0, "x"), count)
    for generation in (2, 3):
        found.open("counts", generation, keys=keys)
        with pytest.raises(
            InvalidInput,
            match=f"generation: {generation} of counts holds nothing: let its reaction catch up first",
        ):
            found.swap("counts", generation)
    assert found.live("counts").generation == 1
    found.open("counts", 2, keys=keys).apply(delivery("A-1", 0, "x"), lambda *_: None)
    assert found.swap("counts", 2).generation == 2, "its documents may be none"
    assert found.swap("counts", 2).generation == 2
    assert found.live("counts").generation == 2


def test_the_first_generation_may_be_made_live_before_there_is_anything() -> None:
    assert models().swap("counts", 1).generation == 1


def test_a_generation_that_is_being_dropped_does_not_become_the_live_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("epochal.read_models.dropping.LOOKED_AT", 1)
    found = models()
    found.open("counts", 2).apply(delivery("A-1", 0, "x", "y", "z"), count)
    assert found.drop("counts", 2).next is not None
    with pytest.raises(InvalidInput, match="generation: counts@2 is being dropped"):
        found.swap("counts", 2)


def test_a_swap_looks_for_a_generation_by_one_read_if_it_has_keys() -> None:
    requests: list[Op] = []
    found = models()
    for generation in (1, 2):
        found.open("counts", generation, keys={}).apply(delivery("A-1", 0, "x"), count)
    driver = found.driver

    def recording(op: Op) -> Any:
        requests.append(op)
        return driver.execute(op)

    ReadModels(driver=replace(driver, execute=recording), table="read-models").swap("counts", 2)
    assert [type(op).__name__ for op in requests] == ["Get", "Get", "Put"]


def test_a_program_that_may_not_scan_swaps_at_its_own_word() -> None:
    found = models()
    driver = found.driver

    def denying(op: Op) -> Any:
        if isinstance(op, Scan):
            raise Refused("dynamodb:Scan", "no policy allows it")
        return driver.execute(op)

    assert (
        ReadModels(driver=replace(driver, execute=denying), table="read-models").swap("counts", 2).generation
        == 2
    )


@pytest.mark.parametrize(("name", "generation"), [("", 1), ("a@b", 1), ("a#b", 1), ("a", 0)])
def test_names_that_would_be_taken_for_others_are_refused(name: str, generation: int) -> None:
    with pytest.raises(InvalidInput):
        models().open(name, generation)


@pytest.mark.parametrize("key", [None, 5, b"k", ("a", "b")])
@pytest.mark.parametrize("keys", [None, {}])
def test_a_key_that_is_not_text_is_refused(key: Any, keys: Any) -> None:
    model = models().open("counts", 1, keys=keys)
    calls: list[Callable[[Documents], object]] = [
        lambda documents: documents.put(key, {"n": 1}),
        lambda documents: documents.get(key),
        lambda documents: documents.delete(key),
    ]
    for place, call in enumerate(calls):
        with pytest.raises(InvalidInput, match=f"key: must be text, not {type(key).__name__}"):
            model.apply(delivery(f"A-{place}", 0, "x"), lambda documents, _, call=call: call(documents))
        assert model.place(f"A-{place}") is None
    with pytest.raises(InvalidInput, match="key: must be text"):
        model.get(key)
    assert model.get(str(key)) is None


@pytest.mark.parametrize("stream", [None, 5])
def test_a_stream_that_is_not_text_has_no_place(stream: Any) -> None:
    with pytest.raises(InvalidInput, match="stream: must be text"):
        models().open("counts", 1).place(stream)
