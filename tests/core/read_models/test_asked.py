"""Read models that are asked: by prefix and secondary key, in order, in pages; what each costs, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any

import msgspec
import pydantic
import pytest

from epochal.errors import CorruptData, InvalidInput, TooLarge
from epochal.feed.events import FeedEvent
from epochal.layout.changes import Removal
from epochal.layout.tables import READ_MODELS
from epochal.reactions.definition import Delivery
from epochal.read_models.asking import FoundDocument, Page, question
from epochal.read_models.documents import Documents, ReadModel, ReadModels
from epochal.read_models.keys import ALL, DeclaredKey, SecondaryKey, document_of
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables


def store() -> ReadModels:
    tables = MemoryTables({READ_MODELS.kind: READ_MODELS})
    return ReadModels(driver=Driver(execute=tables.execute, meter=Meter()), table=READ_MODELS.kind)


def change(model: ReadModel, **documents: Any) -> None:
    """Write these documents, by events of a stream of each; None deletes one."""
    for key, value in documents.items():
        put(model, key, value)


def put(model: ReadModel, key: str, value: Any) -> None:
    at = model.place(f"Of-{key}") or 0
    delivery = Delivery(
        group="g",
        partition=0,
        stream=f"Of-{key}",
        events=(FeedEvent(stream=f"Of-{key}", index=at, type="x"),),
    )

    def fold(documents: Documents, _: FeedEvent) -> None:
        if value is None:
            documents.delete(key)
        else:
            documents.put(key, value)

    model.apply(delivery, fold)


LOANS = {"by_member": lambda loan: (loan["member"], loan["due"]), "topics": lambda loan: loan.get("topics")}


def loans(**how: Any) -> ReadModel:
    model = store().open("loans", 1, keys=LOANS, **how)
    change(
        model,
        a={"member": "m1", "due": 20260301, "topics": ["sea", "art"]},
        b={"member": "m2", "due": 20260101},
        c={"member": "m1", "due": 20260102, "topics": ["art"]},
        d={"member": "m10", "due": 20260401, "topics": []},
    )
    return model


def keys(page: Page) -> list[str]:
    return [each.key for each in page.items]


def through(ask: Callable[..., Page], **how: Any) -> list[str]:
    """All keys of a question, page by page."""
    found, after = [], None
    while True:
        page = ask(after=after, **how)
        found += keys(page)
        after = page.next
        if after is None:
            return found


# ---------------------------------------------------------------------------------------------------- order of values


@pytest.mark.parametrize(
    "value",
    [True, None, 1.5j, b"x", float("nan"), Decimal("Infinity"), Decimal("1E+5000"), "\ud800", ["a"], {}],
)
def test_what_has_no_order_is_refused_and_the_document_is_named(value: Any) -> None:
    model = store().open("m", 1, keys={"by": lambda _: (value,)})
    with pytest.raises(InvalidInput, match="by of the document k"):
        put(model, "k", 1)
    assert model.get("k") is None


# ----------------------------------------------------------------------------------------------------------- questions


def test_documents_are_listed_by_prefix_in_the_order_of_their_keys_forward_and_backward() -> None:
    model = store().open("board", 1, keys={})
    for key in ("b-2", "a-1", "b-10", "b", "ba", "c"):
        put(model, key, {"is": key})
    assert keys(model.list()) == ["a-1", "b", "b-10", "b-2", "ba", "c"]
    assert keys(model.list(prefix="b-")) == ["b-10", "b-2"]
    assert keys(model.list(prefix="b", backward=True)) == ["ba", "b-2", "b-10", "b"]
    assert keys(model.list(since="b", below="ba")) == ["b", "b-10", "b-2"]
    assert keys(model.list(since="x", below="a")) == []
    assert model.list(prefix="c").items == (FoundDocument("c", {"is": "c"}),)
    assert (model.count(), model.count(prefix="b-"), model.count(at_most=2)) == (6, 2, 2)


def test_documents_are_found_by_the_values_of_a_secondary_key() -> None:
    model = loans()
    assert keys(model.find("by_member", "m1")) == ["c", "a"]
    assert keys(model.find("by_member", "m1", 20260301)) == ["a"]
    assert keys(model.find("by_member", "m1", since=20260102, below=20260301)) == ["c"]
    assert keys(model.find("by_member", "m1", since=20260103)) == ["a"]
    assert keys(model.find("topics", "art")) == ["a", "c"]
    assert keys(model.find("topics", "art", prefix="c")) == ["c"], "the document's key follows the values"
    assert keys(model.find("by_member", "m")) == []
    assert (model.count("topics", "art"), model.count("topics", "sea"), model.count("topics", "x")) == (
        2,
        1,
        0,
    )


def test_a_changed_or_deleted_document_is_where_it_is_now_alone() -> None:
    model = loans()
    change(model, a={"member": "m2", "due": 1, "topics": ["art"]}, c=None)
    assert keys(model.find("by_member", "m1")) == []
    assert keys(model.find("by_member", "m2")) == ["a", "b"]
    assert keys(model.find("topics", "art")) == ["a"]
    assert keys(model.list()) == ["a", "b", "d"]


def test_what_a_removal_deletes_is_listed_no_more() -> None:
    model = loans()
    removal = Removal("Of-a", 1, "deleted", 1)
    delivery = Delivery(group="g", partition=0, stream="Of-a", events=(), removal=removal)
    assert model.remove(delivery, lambda documents, _: documents.delete("a"))
    assert keys(model.list()) == ["b", "c", "d"]
    assert keys(model.find("by_member", "m1")) == ["c"]
    assert entries(model) == {"b", "c", "d"}


def test_a_removal_that_is_delivered_again_is_folded_once() -> None:
    model, folded = loans(), list[int]()
    for end, taken in ((1, True), (1, False), (2, True), (1, False)):
        removal = Removal("Of-a", end, "pruned", 2)
        delivery = Delivery(group="g", partition=0, stream="Of-a", events=(), removal=removal)
        assert model.remove(delivery, lambda _, removal: folded.append(removal.end)) is taken
    assert folded == [1, 2]


def entries(model: ReadModel) -> set[str]:
    """Documents that have an entry, of whatever key."""
    tables: Any = model.driver.execute.__self__  # type: ignore[attr-defined]
    items = tables.items(model.table)
    return {document_of(each["sk"]["S"]) for each in items if each["pk"]["S"].startswith("loans@1/")}


@pytest.mark.slow
@pytest.mark.parametrize("spread", [1, 2, 7])
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("limit", [1, 3, 50])
def test_pages_that_go_on_from_one_another_have_every_document_once(
    spread: int, backward: bool, limit: int
) -> None:
    model = store().open("m", 1, keys={"by": SecondaryKey(lambda _: "all", spread)}, spread=spread)
    wanted = sorted(f"{number * 7919 % 1000}" for number in range(40))
    for key in wanted:
        put(model, key, 1)
    wanted = wanted[::-1] if backward else wanted
    assert through(model.list, limit=limit, backward=backward) == wanted
    assert through(lambda **how: model.find("by", "all", **how), limit=limit, backward=backward) == wanted
    assert model.count() == model.count("by", "all") == 40


def test_a_page_goes_on_where_its_last_document_was_though_that_is_gone() -> None:
    model = loans()
    page = model.list(limit=2)
    change(model, a=None, b=None)
    assert keys(model.list(limit=2, after=page.next)) == ["c", "d"]


def test_a_document_that_moves_between_the_reads_of_a_page_is_left_out() -> None:
    model = loans()
    execute, moved = model.driver.execute, False

    def moving(op: Any) -> Any:
        nonlocal moved
        if type(op).__name__ == "BatchGet" and not moved:
            moved = True
            change(model, a={"member": "m9", "due": 1}, b=None)
        return execute(op)

    asking = replace(model, driver=replace(model.driver, execute=moving))
    assert keys(asking.find("by_member", "m1")) == ["c"]
    moved = False
    assert keys(asking.list()) == ["a", "c", "d"]


# --------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("forged", ["", "x", "!!!!", "AAAA", "a" * 200, "é"])
def test_a_forged_continuation_is_refused(forged: str) -> None:
    with pytest.raises(InvalidInput, match="after"):
        loans().list(after=forged)


def test_a_continuation_goes_on_with_its_own_question_alone() -> None:
    model = loans()
    after = model.list(limit=1).next
    assert after is not None
    for ask in (
        lambda: model.list(after=after, backward=True),
        lambda: model.list(after=after, prefix="a"),
        lambda: model.find("by_member", "m1", after=after),
    ):
        with pytest.raises(InvalidInput, match="another question"):
            ask()
    beyond = model.list(prefix="a", limit=1, after=None)
    assert beyond.next is None


def test_a_continuation_never_leads_out_of_its_question() -> None:
    model = loans()
    asked = question("loans@1", {ALL: DeclaredKey(1, False)}, None, (), prefix="b", since=None, below=None)
    for outside in ("tz ", "ta ", asked.low, asked.high, ""):
        with pytest.raises(InvalidInput, match="another question"):
            model.list(prefix="b", after=asked.encode_continuation(outside, backward=False))


@pytest.mark.parametrize(
    ("ask", "field"),
    [
        (lambda model: model.find("by_owner", "m1"), "name"),
        (lambda model: model.find("by_member"), "values"),
        (lambda model: model.find("", "m1"), "name"),
        (lambda model: model.list(limit=0), "limit"),
        (lambda model: model.list(limit=1_001), "limit"),
        (lambda model: model.list(prefix="a", since="b"), "prefix"),
        (lambda model: model.list(prefix=1), "prefix"),
        (lambda model: model.find("by_member", "m1", since=True), "since"),
        (lambda model: model.count(at_most=0), "at_most"),
    ],
)
def test_what_is_no_question_is_refused(ask: Callable[[ReadModel], object], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        ask(loans())
    assert refused.value.field == field


@pytest.mark.parametrize(
    "how",
    [
        {"keys": {"a/b": str}},
        {"keys": {"": str}},
        {"keys": {"by": "member"}},
        {"keys": ["by"]},
        {"keys": {}, "spread": 0},
        {"keys": {}, "spread": 65},
        {"spread": 2},
        {"holds": str},
    ],
)
def test_keys_that_cannot_be_are_refused(how: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        store().open("loans", 1, **how)


def test_a_generation_keeps_the_keys_that_it_was_begun_with() -> None:
    models = store()
    change(models.open("loans", 1, keys={"by": lambda loan: loan["by"]}), a={"by": "x"})
    for other in ({}, {"by": SecondaryKey(lambda loan: loan["by"], 2)}, {"to": lambda loan: loan["by"]}):
        fresh = ReadModels(driver=models.driver, table=models.table)
        for using in (
            lambda fresh=fresh, other=other: put(fresh.open("loans", 1, keys=other), "b", {"by": "y"}),
            lambda fresh=fresh, other=other: fresh.open("loans", 1, keys=other).list(),
        ):
            with pytest.raises(InvalidInput, match="next generation"):
                using()
    with pytest.raises(InvalidInput, match="next generation"):
        put(models.open("loans", 1), "a", {"by": "y"})
    assert keys(models.live("loans").find("by", "x")) == ["a"]
    change(models.open("loans", 2, keys={}), a={"by": "x"})


def test_what_was_built_without_keys_cannot_be_asked_and_gets_none_later() -> None:
    models = store()
    change(models.open("loans", 1), a=1)
    with pytest.raises(InvalidInput, match="built without"):
        models.live("loans").list()
    with pytest.raises(InvalidInput, match="next generation"):
        change(models.open("loans", 1, keys={}), a=2)
    assert models.live("loans").get("a") == 1


def test_a_model_without_keys_stores_no_more_than_documents_and_progress() -> None:
    models = store()
    model = models.open("counts", 1)
    change(model, a=1)
    before = models.driver.meter.capacity
    put(model, "a", 2)
    after = models.driver.meter.capacity
    assert (after.requests - before.requests, after.write - before.write) == (4, 4)
    tables: Any = models.driver.execute.__self__  # type: ignore[attr-defined]
    assert {name for item in tables.items(models.table) for name in item} == {"pk", "sk", "d", "v", "n"}


def test_a_document_too_large_is_named_and_what_came_before_it_is_kept() -> None:
    model = store().open("m", 1)
    sizes = [10, 20, 500_000, 30]
    events = tuple(FeedEvent(stream="A-1", index=index, type=str(size)) for index, size in enumerate(sizes))
    delivery = Delivery(group="g", partition=0, stream="A-1", events=events)
    with pytest.raises(TooLarge, match="document 2: 500,"):
        model.apply(delivery, lambda documents, event: documents.put(str(event.index), "x" * int(event.type)))
    assert (model.place("A-1"), model.get("1")) == (2, "x" * 20)


def test_a_key_too_long_is_named_and_what_came_before_it_is_kept() -> None:
    model = store().open("m", 1, keys={"by": lambda document: ("x", document)})
    events = tuple(
        FeedEvent(stream="A-1", index=index, type="x" * size) for index, size in enumerate([1, 2, 2_000, 3])
    )
    with pytest.raises(TooLarge, match="by of the document 2: 2,0"):
        model.apply(
            Delivery(group="g", partition=0, stream="A-1", events=events),
            lambda documents, event: documents.put(str(event.index), event.type),
        )
    assert (model.place("A-1"), keys(model.list())) == (2, ["0", "1"])


@pytest.mark.slow
@pytest.mark.parametrize("how", [{}, {"keys": {"by": lambda _: list("abcdefgh")}}])
def test_what_fits_transactions_event_by_event_is_never_refused_together(how: dict[str, Any]) -> None:
    model = store().open("m", 1, **how)
    events = tuple(FeedEvent(stream="A-1", index=index, type="x") for index in range(20))
    delivery = Delivery(group="g", partition=0, stream="A-1", events=events)

    def fold(documents: Documents, event: FeedEvent) -> None:
        for number in range(9):
            documents.put(f"{event.index}-{number}", "x" * 60_000)

    assert model.apply(delivery, fold) == 20
    assert model.get("19-8") is not None
    if how:
        assert model.count() == 180


def test_a_document_whose_key_has_no_place_in_a_list_is_refused_with_its_sizes() -> None:
    model = store().open("m", 1, keys={})
    with pytest.raises(TooLarge, match="at most 1,024"):
        put(model, "k" * 1_024, 1)
    put(model, "k" * 1_022, 1)
    assert keys(model.list()) == ["k" * 1_022]


# ---------------------------------------------------------------------------------------------------------- documents


@dataclass(frozen=True)
class Loan:
    member: str
    due: date
    fee: Decimal = Decimal(0)


@dataclass(frozen=True)
class Note:
    text: str


class Row(msgspec.Struct, frozen=True):
    member: str
    due: date
    fee: Decimal = Decimal(0)


class Card(pydantic.BaseModel, frozen=True):
    member: str
    due: date
    fee: Decimal = Decimal(0)


@pytest.mark.parametrize("kind", [Loan, Row, Card])
def test_documents_of_a_class_are_written_read_and_found_as_such(kind: type) -> None:
    models = store()
    model = models.open("loans", 1, of=kind, keys={"by_due": lambda loan: ("all", loan.due.isoformat())})
    one, two = (
        kind(member="m1", due=date(2026, 3, 1), fee=Decimal("1.10")),
        kind(member="m2", due=date(2026, 1, 1)),
    )
    change(model, a=one, b=two)
    assert model.find("by_due", "all").items == (FoundDocument("b", two), FoundDocument("a", one))
    assert models.live("loans", of=kind).get("a") == one
    assert str(models.live("loans", of=kind).get("a", one).fee) == "1.10"
    with pytest.raises(CorruptData, match="loans@1#a"):
        models.live("loans", of=Note).get("a")


def test_what_is_not_of_the_class_is_not_written() -> None:
    model = store().open("loans", 1, of=Loan)
    for wrong in ({"member": "m1"}, Note("x"), Loan(member=3, due=date(2026, 1, 1))):  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="of the document a"):
            put(model, "a", wrong)
    assert model.get("a") is None


def test_numbers_stay_exact_and_have_their_order() -> None:
    model = store().open("m", 1, keys={"by": lambda document: ("all", document["n"])})
    numbers = [
        json.loads(each, parse_float=Decimal) for each in ("10", "9", "-3", "1.10", "0", "1e20", "-0.5")
    ]
    for index, each in enumerate(numbers):
        put(model, str(index), {"n": each})
    assert [found.value["n"] for found in model.find("by", "all").items] == sorted(numbers)
    assert keys(model.find("by", "all", since=-1, below=9.5)) == ["6", "4", "3", "1"]


def test_what_a_key_holds_is_shown_in_place_of_the_document() -> None:
    held = SecondaryKey(lambda loan: loan["member"], holds=lambda loan: {"due": loan["due"]})
    model = store().open("loans", 1, keys={"by_member": held}, holds=lambda loan: loan["due"])
    change(model, a={"member": "m1", "due": 1, "note": "x"}, b={"member": "m1", "due": 2})
    assert model.find("by_member", "m1").items == (
        FoundDocument("a", {"due": 1}),
        FoundDocument("b", {"due": 2}),
    )
    change(model, a={"member": "m1", "due": 3, "note": "y"})
    assert model.find("by_member", "m1").items[0] == FoundDocument("a", {"due": 3})
    assert [each.value for each in model.list().items] == [3, 2]


# -------------------------------------------------------------------------------------------------------------- costs


def cost(model: ReadModel, ask: Callable[[], object]) -> tuple[int, float, float]:
    before = model.driver.meter.capacity
    ask()
    after = model.driver.meter.capacity
    return after.requests - before.requests, after.read - before.read, after.write - before.write


def filled(documents: int, **how: Any) -> ReadModel:
    model = store().open("m", 1, keys={"by": lambda document: (document["of"], document["n"])}, **how)
    stream = tuple(FeedEvent(stream="A-1", index=index, type="x") for index in range(documents))
    fold: Any = lambda documents, event: documents.put(  # noqa: E731
        f"{event.index:06}", {"of": f"m{event.index % 2}", "n": event.index, "note": "x" * 100}
    )
    model.apply(Delivery(group="g", partition=0, stream="A-1", events=stream), fold)
    return model


@pytest.mark.slow
def test_a_page_costs_by_what_it_returns_however_much_there_is() -> None:
    few, many = filled(100), filled(600)
    for ask in (
        lambda model: model.list(limit=20),
        lambda model: model.find("by", "m1", limit=20, backward=True),
    ):
        costs = [cost(model, lambda model=model, ask=ask: ask(model)) for model in (few, many)]
        assert costs == [(2, 21, 0), (2, 21, 0)], "the entries, and a unit for each document"
    spread = filled(600, spread=8)
    assert cost(spread, lambda: spread.list(limit=20))[1] <= 30
    few, many = filled(100, holds=dict), filled(600, holds=dict)
    costs = [cost(model, lambda model=model: model.list(limit=20)) for model in (few, many)]
    assert costs == [(1, 1, 0), (1, 1, 0)], "twenty documents of 150 bytes are in one unit of entries"


@pytest.mark.slow
def test_a_count_costs_a_unit_for_some_thirty() -> None:
    model = filled(1_000)
    requests, units, _ = cost(model, lambda: model.count("by", "m1"))
    assert (requests, model.count("by", "m1")) == (1, 500)
    assert units <= 500 / 30
    assert cost(model, lambda: model.count(at_most=20))[1] == 1


def test_an_entry_is_written_only_where_it_changes() -> None:
    model = loans()
    at = {"member": "m1", "due": 20260301, "topics": ["sea", "art"]}

    def units(key: str, value: Any) -> float:
        return cost(model, lambda: put(model, key, value))[2]

    assert units("new", {"member": "m1", "due": 1}) == 8, "place, document, in the list, by member"
    assert units("a", {**at, "note": "x"}) == 4, "place and document"
    assert units("a", {**at, "topics": ["art", "sea"]}) == 4, "in whatever order"
    assert units("a", {**at, "topics": ["art"]}) == 6, "one entry less"
    assert units("a", {**at, "due": 5, "topics": ["art"]}) == 8, "one moves"
    assert units("a", None) == 10


# ----------------------------------------------------------------------------------------------------------- dropping


def test_a_generation_is_dropped_in_parts_with_all_that_it_has_and_nothing_else_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("epochal.read_models.dropping.LOOKED_AT", 5)
    models = store()
    for generation in (1, 10):
        change(models.open("loans", generation, keys={"by": lambda _: ["x", "y"]}), a=1, b=2, c=3)
    change(models.open("counts", 1), a=1)
    with pytest.raises(InvalidInput, match="is live"):
        models.drop("loans", 1)
    models.swap("loans", 10)
    dropped = models.drop("loans", 1)
    assert dropped.next is not None
    with pytest.raises(InvalidInput, match="being dropped"):
        models.open("loans", 1).list()
    with pytest.raises(InvalidInput, match="being dropped"):
        put(models.open("loans", 1, keys={"by": lambda _: ["x", "y"]}), "a", 1)
    total = dropped.items
    while dropped.next:
        dropped = models.drop("loans", 1, after=dropped.next)
        total += dropped.items
    assert total == 3 * (1 + 1 + 1 + 2)
    tables: Any = models.driver.execute.__self__  # type: ignore[attr-defined]
    left = {item["pk"]["S"].partition("#")[0].partition("/")[0] for item in tables.items(models.table)}
    assert left == {"loans", "loans@10", "counts@1"}
    assert keys(models.live("loans").find("by", "x")) == ["a", "b", "c"]


@pytest.mark.parametrize("forged", ["x", "!!", "W10=", "WzEsMl0="])
def test_a_forged_place_of_a_drop_is_refused(forged: str) -> None:
    models = store()
    change(models.open("loans", 2), a=1)
    models.swap("loans", 2)
    with pytest.raises(InvalidInput, match="after"):
        models.drop("loans", 1, after=forged)
