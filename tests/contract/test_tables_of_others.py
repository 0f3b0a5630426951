"""A store handed a table of other keys, or another store's of the same, names it; DynamoDB's own words reach nobody."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from click.testing import CliRunner

from epochal import Event, open_feed, open_read_models, open_streams
from epochal.cli.main import epochal
from epochal.cli.target import Choice, OpenedStore, open_store
from epochal.contrib.equinox import open_tips
from epochal.contrib.equinox.port import tips_source
from epochal.contrib.event_store_adapter import AggregateEvent, aggregate_id, open_aggregates
from epochal.contrib.sekiban import open_dcb_events, open_projection_states
from epochal.contrib.sekiban.listings import TagListings
from epochal.dynamo.stores import Place
from epochal.errors import InvalidInput, WrongTable
from epochal.feed.indexer import Indexer
from epochal.layout.tables import READ_MODELS, store_tables
from epochal.settings import Settings
from tests.support.tables import Tables

ORDER = aggregate_id("order", "1")
KINDS = {spec.kind: spec for spec in (*store_tables(), READ_MODELS)}
E = Event(type="E")
T = Event(type="T", data=b"{}", tags=("order:1",))
A = AggregateEvent(type="A", data=b"{}")

Open = Callable[[Callable[[str], str], Place], Any]

USES: dict[str, tuple[tuple[str, ...], Open]] = {
    "append": (("tips",), lambda of, place: open_tips(of("tips"), place=place).append("Order-1", [E])),
    "load": (("tips",), lambda of, place: open_tips(of("tips"), place=place).load("Order-1")),
    "feed": (("index",), lambda of, place: open_feed(of("index"), place=place).partitions()),
    "persist": (
        ("journal", "snapshot"),
        lambda of, place: open_aggregates(of("journal"), of("snapshot"), place=place).append(
            ORDER, [A], snapshot=b"{}"
        ),
    ),
    "replay": (
        ("snapshot",),
        lambda of, place: open_aggregates(of("journal"), of("snapshot"), place=place).replay(ORDER),
    ),
    "tag": (
        ("events", "tags"),
        lambda of, place: open_dcb_events(of("events"), of("tags"), place=place).append([T]),
    ),
    "list": (
        ("events",),
        lambda of, place: list(
            TagListings(store=open_dcb_events(of("events"), of("tags"), place=place)).all_events()
        ),
    ),
    "save": (
        ("projection-states",),
        lambda of, place: open_projection_states(of("projection-states"), place=place).save(
            "Totals", "v1", [b"1"], events_processed=1, last_sortable_id="0" * 30
        ),
    ),
    "model": (("read-models",), lambda of, place: open_read_models(of("read-models"), place=place).live("m")),
}


@pytest.fixture(scope="module")
def empty(ddbl: Any) -> Any:
    with Tables(ddbl) as tables:
        yield {kind: tables.create(spec) for kind, spec in KINDS.items()}, Place(endpoint=ddbl.url)


@pytest.mark.ddbl
@pytest.mark.parametrize(
    ("use", "given"),
    [
        (use, given)
        for (use, (kinds, _)), given in product(USES.items(), KINDS)
        if all(KINDS[kind].keys != KINDS[given].keys for kind in kinds)
    ],
)
def test_a_table_with_other_keys_is_named_with_the_kind_it_must_be(
    empty: tuple[dict[str, str], Place], use: str, given: str
) -> None:
    names, place = empty
    kinds, opened = USES[use]
    said = r"has other keys or indexes, not a table of [a-z-]+( and [a-z-]+)?(: it may belong to a version of .*)?$"
    with pytest.raises(WrongTable, match=said) as caught:
        opened(lambda kind: names[given if kind == kinds[0] else kind], place)
    assert names[given] in caught.value.table
    assert kinds[0] in caught.value.wanted


def test_streams_are_not_appended_to_an_index_nor_read_from_it(ddbl_tables: Tables) -> None:
    place = Place(endpoint=ddbl_tables.endpoint.url)
    tips, index = ddbl_tables.create(KINDS["tips"]), ddbl_tables.create(KINDS["index"])
    Indexer(driver=place.driver(), index_table=index, sources=(tips_source(tips),)).register()
    open_tips(tips, place=place).append("Order-1", [E])
    before = ddbl_tables.client.scan(TableName=index)["Items"]

    with pytest.raises(WrongTable, match=f"table: {index} is a table of index, not a table of tips"):
        open_tips(index, place=place).append("Order-1", [E])
    with pytest.raises(WrongTable, match=f"table: {tips} is a table of tips, not a table of index"):
        open_feed(tips, place=place).partitions()
    assert ddbl_tables.client.scan(TableName=index)["Items"] == before


def test_one_table_is_not_opened_for_two_purposes() -> None:
    for opened in (
        lambda: open_feed("t", open_tips("t")),
        lambda: open_feed("t", open_streams("t")),
        lambda: open_aggregates("t", "t"),
        lambda: open_dcb_events("t", "t"),
    ):
        with pytest.raises(InvalidInput, match="must be another table than"):
            opened()


def test_a_command_with_swapped_tables_or_one_table_twice_writes_nothing(ddbl_tables: Tables) -> None:
    place = Place(endpoint=ddbl_tables.endpoint.url)
    tips, index = ddbl_tables.create(KINDS["tips"]), ddbl_tables.create(KINDS["index"])
    Indexer(driver=place.driver(), index_table=index, sources=(tips_source(tips),)).register()

    def opened(**tables: str) -> OpenedStore:
        return open_store(Choice(settings=Settings.of(**tables), endpoint=place.endpoint or ""))

    swapped = opened(tips_table=index, index_table=tips)
    with pytest.raises(WrongTable, match="is a table of index, not a table of tips"):
        swapped.deployment.tips.append("Order-1", [E])
    open_tips(tips, place=place).append("Order-1", [E])
    with pytest.raises(WrongTable, match="is a table of tips, not a table of index"):
        swapped.feed.partitions()
    with pytest.raises(InvalidInput, match="--index-table: must be another table than --tips-table"):
        opened(tips_table=tips, index_table=tips)
    right = opened(tips_table=tips, index_table=index)
    assert right.deployment.tips.load("Order-1") is not None
    rebuilt = CliRunner().invoke(
        epochal, ["index", "rebuild", "--into", _other(ddbl_tables)], obj=lambda: right
    )
    assert isinstance(rebuilt.exception, WrongTable)


def _other(tables: Tables) -> str:
    """A table of streams that no setting names."""
    other = tables.create(KINDS["tips"])
    open_tips(other, place=Place(endpoint=tables.endpoint.url)).append("Order-1", [E])
    return other
