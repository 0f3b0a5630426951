"""`epochal models`."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from click.testing import CliRunner

from epochal.cli.inputs import NotThere
from epochal.cli.main import epochal
from epochal.cli.target import OpenedStore
from epochal.codec import json
from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.feed.events import FeedEvent
from epochal.reactions.definition import Delivery
from epochal.read_models.asking import value_from
from epochal.read_models.value_texts import Value
from epochal.testing.feeds import MemoryStore
from epochal.testing.stores import MemoryBucket, memory_settings

LOANS = {
    "Loan-1": {"member": "ann", "due": 3},
    "Loan-2": {"member": "bob", "due": 1},
    "Loan-3": {"member": "ann", "due": 12},
}


@pytest.fixture
def feed() -> MemoryStore:
    feed = MemoryStore()
    for generation in (1, 2):
        model = feed.read_models.open(
            "loans", generation, keys={"by": lambda loan: (loan["member"], loan["due"])}
        )
        for key, loan in LOANS.items():
            delivery = Delivery(
                group="g", partition=0, stream=key, events=(FeedEvent(stream=key, index=0, type="Lent"),)
            )
            model.apply(delivery, lambda documents, event, loan=loan: documents.put(event.stream, loan))
    feed.read_models.swap("loans", 2)
    return feed


def run(feed: MemoryStore, *arguments: str, table: str = "read-models") -> Any:
    deployment = Deployment(
        settings=memory_settings(**({"read_models_table": table} if table else {})),
        driver=feed.read_models.driver,
        bucket=MemoryBucket(),
    )
    store = OpenedStore.of(deployment, list, lambda _: None)
    return CliRunner().invoke(epochal, ("models", *arguments), obj=lambda: store)


def lines(feed: MemoryStore, *arguments: str) -> list[str]:
    found = run(feed, *arguments)
    assert found.exit_code == 0, found.exception
    return found.stdout.splitlines()


def test_models_are_listed_with_their_generations(feed: MemoryStore) -> None:
    assert lines(feed, "list") == ["loans  live: 2  generations: 1, 2"]
    (line,) = lines(feed, "list", "--json")
    assert json.loads(line) == {"name": "loans", "live": 2, "generations": [1, 2]}


def test_a_document_is_printed_or_missed_by_name(feed: MemoryStore) -> None:
    assert lines(feed, "get", "loans", "Loan-1") == ['{"member":"ann","due":3}']
    assert isinstance(run(feed, "get", "loans", "Loan-9").exception, NotThere)


def test_documents_are_found_by_prefix_and_by_key_page_by_page(feed: MemoryStore) -> None:
    assert lines(feed, "find", "loans", "--prefix", "Loan-2") == ['Loan-2  {"member":"bob","due":1}']
    found = [json.loads(each)["key"] for each in lines(feed, "find", "loans", "by", "ann", "--json")]
    assert found == ["Loan-1", "Loan-3"]
    assert lines(feed, "find", "loans", "by", "ann", "12")[0].startswith("Loan-3")
    assert lines(feed, "find", "loans", "by", "ann", "--since", "4")[0].startswith("Loan-3")
    first = run(feed, "find", "loans", "--limit", "2", "--backward")
    assert [each.split()[0] for each in first.stdout.splitlines()] == ["Loan-3", "Loan-2"]
    after = first.stderr.split()
    assert lines(feed, "find", "loans", "--limit", "2", "--backward", *after)[0].startswith("Loan-1")


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        *(
            (text, text)
            for text in ("ann", "2026-07-01", "007", "true", "null", "[1]", '{"a":1}', '"', "", "a b")
        ),
        ("8", 8),
        ("-1.5", Decimal("-1.5")),
        ('"8"', "8"),
    ],
)
def test_a_value_that_is_typed_is_text_unless_it_is_a_number_or_a_json_string(
    typed: str, value: Value
) -> None:
    assert value_from(typed) == value
    assert type(value_from(typed)) is type(value)


def test_documents_are_counted(feed: MemoryStore) -> None:
    assert lines(feed, "count", "loans") == ["3"]
    assert lines(feed, "count", "loans", "by", "ann", "--below", "12", "--generation", "1") == ["1"]


def test_a_generation_that_is_not_live_is_dropped(feed: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("epochal.read_models.dropping.LOOKED_AT", 4)
    assert isinstance(run(feed, "drop", "loans", "2").exception, InvalidInput)
    assert lines(feed, "drop", "loans", "1") == ["loans, generation 1: 9 items deleted"]
    assert lines(feed, "list") == ["loans  live: 2  generations: 2"]


def test_a_store_without_read_models_has_no_such_table(feed: MemoryStore) -> None:
    assert "--read-models-table" in str(run(feed, "list", table="").exception)
