"""Read models that are asked, on DynamoDB Local and in memory: what is stored, in which order it comes, its cost."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from epochal.dynamo.interpreter import interpreter
from epochal.errors import TooLarge
from epochal.feed.events import FeedEvent
from epochal.layout.tables import READ_MODELS
from epochal.plan.ops import Execute, Scan
from epochal.reactions.definition import Delivery
from epochal.read_models.asking import Page
from epochal.read_models.documents import ReadModel, ReadModels
from epochal.read_models.keys import SecondaryKey
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables
from tests.support.tables import Tables

KEYS = [
    " ",
    "!",
    "a",
    "a b",
    "a!",
    "a0",
    "a\x00",
    "a\x1f",
    "aé",
    "a\ud7ff",
    "a\ue000",
    "a\U0001f600",
    "a\U0010ffff",
    "b",
]
NUMBERS = [-12, Decimal("-1.55"), -1.5, Decimal("-0.001"), 0, Decimal("1E-20"), 1, 1.5, 10, 10**20]


@pytest.fixture(params=["memory", "ddbl"])
def table(request: pytest.FixtureRequest) -> tuple[Execute, str]:
    if request.param == "memory":
        return MemoryTables({"models": READ_MODELS}).execute, "models"
    local: Tables = request.getfixturevalue("ddbl_tables")
    return interpreter(local.client), local.create(READ_MODELS)


@pytest.fixture
def models(table: tuple[Execute, str]) -> ReadModels:
    execute, name = table
    return ReadModels(driver=Driver(execute=execute, meter=Meter()), table=name)


def put(model: ReadModel, documents: dict[str, Any]) -> None:
    stream = f"S-{','.join(documents)}"
    event = FeedEvent(stream=stream, index=model.place(stream) or 0, type="x")

    def fold(found: Any, _: FeedEvent) -> None:
        for key, value in documents.items():
            if value is None:
                found.delete(key)
            else:
                found.put(key, value)

    model.apply(Delivery(group="g", partition=0, stream=stream, events=(event,)), fold)


def through(ask: Callable[..., Page], **how: Any) -> list[str]:
    found: list[str] = []
    page = ask(limit=3, **how)
    while True:
        found += [each.key for each in page.items]
        if page.next is None:
            return found
        page = ask(limit=3, after=page.next, **how)


def test_documents_come_in_the_order_of_their_keys_and_values(models: ReadModels) -> None:
    keys = {
        "by": SecondaryKey(lambda document: [("all", document["n"]), ("all", document["t"])], 3),
        "none": lambda _: None,
    }
    model = models.open("m", 1, keys=keys, spread=2)
    put(model, {key: {"n": index, "t": key} for index, key in enumerate(KEYS)})
    assert through(model.list) == sorted(KEYS)
    assert through(model.list, backward=True) == sorted(KEYS)[::-1]
    for prefix in ("a", "a\x00", "a ", "a\ud7ff", "a\U0010ffff", " ", "x"):
        assert through(model.list, prefix=prefix) == sorted(key for key in KEYS if key.startswith(prefix))
    assert through(model.list, since="a ", below="aé") == sorted(key for key in KEYS if "a " <= key < "aé")

    def ask(**how: Any) -> Page:
        return model.find("by", "all", **how)

    assert through(ask) == [*KEYS, *sorted(KEYS)], "numbers, and then texts"
    assert through(ask, since=3, below=9) == KEYS[3:9]
    assert through(ask, prefix="a") == sorted(key for key in KEYS if key.startswith("a"))
    assert (model.count(), model.count("by", "all"), model.count("none", "x")) == (
        len(KEYS),
        2 * len(KEYS),
        0,
    )


def test_numbers_come_by_size(models: ReadModels) -> None:
    model = models.open("m", 1, keys={"n": lambda document: ("all", document["n"])})
    put(model, {f"{index:02}": {"n": each} for index, each in enumerate(NUMBERS)})
    assert [found.value["n"] for found in model.find("n", "all", limit=100).items] == NUMBERS
    assert through(lambda **how: model.find("n", "all", since=-1.5, below=1.5, **how)) == [
        "02",
        "03",
        "04",
        "05",
        "06",
    ]


def test_entries_go_with_their_documents_and_a_generation_with_all_that_it_has(models: ReadModels) -> None:
    for generation in (1, 2):
        model = models.open("m", generation, keys={"by": lambda document: document}, holds=lambda each: each)
        put(model, {"a": ["x", "y"], "b": ["y"], "c": []})
        put(model, {"a": ["y", "z"]})
        put(model, {"b": None})
        assert [through(partial(model.find, "by", value)) for value in "xyz"] == [[], ["a"], ["a"]]
        assert [(each.key, each.value) for each in model.list().items] == [("a", ["y", "z"]), ("c", [])]
    models.swap("m", 2)
    dropped = models.drop("m", 1)
    while dropped.next:
        dropped = models.drop("m", 1, after=dropped.next)
    left = models.driver.ask(Scan(table=models.table)).items
    assert {each["pk"]["S"].partition("#")[0].partition("/")[0] for each in left} == {"m", "m@2"}


def test_the_longest_entries_that_there_may_be_are_stored(models: ReadModels) -> None:
    model = models.open("m", 1, keys={"by": lambda document: (document["of"], document["then"])})
    long = {"k" * 500: {"of": "x" * (2_048 - len("m@1/by/0/t")), "then": "y" * (1_024 - 500 - 4)}}
    put(model, long)
    (key,) = long
    assert [each.key for each in model.find("by", long[key]["of"], long[key]["then"]).items] == [key]
    for name in ("of", "then"):
        with pytest.raises(TooLarge, match="by of the document"):
            put(model, {key: {**long[key], name: long[key][name] + "z"}})


def test_a_page_costs_what_is_reckoned_whatever_there_is(models: ReadModels) -> None:
    """In memory units are reckoned, and the server says its own."""
    model = models.open("m", 1, keys={})
    held = models.open("held", 1, keys={}, holds=lambda document: document)
    for each in (model, held):
        for part in range(10):
            put(each, {f"{part}{index:02}": {"note": "x" * 100} for index in range(40)})

    def cost(ask: Callable[[], object]) -> float:
        ask()
        before = models.driver.meter.capacity.read
        ask()
        return models.driver.meter.capacity.read - before

    assert cost(lambda: model.list(limit=20)) == 21
    assert cost(lambda: held.list(limit=20)) == 1
    assert cost(lambda: model.list(prefix="9", limit=20, backward=True)) == 21
    assert cost(model.count) <= 400 / 30
