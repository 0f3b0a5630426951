"""An import with a codec: cells become values of the types of its classes, and what no codec reads is not written."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any, Literal
from uuid import UUID, uuid4

import attrs
import msgspec
import pydantic
import pytest

from epochal import Event, json_codec, upcast
from epochal.contrib.transfer.importing.importer import StreamImporter
from epochal.contrib.transfer.importing.incoming import Incoming, Misfit
from epochal.contrib.transfer.importing.kinds import source_of
from epochal.contrib.transfer.importing.sources import mapped
from epochal.contrib.transfer.importing.typed_bodies import TypedBodies
from epochal.contrib.transfer.importing.writing import HistoryWriter
from epochal.deciders.codecs import EventCodec, Stored
from epochal.testing.stores import memory_streams

ID = "00000000-0000-0000-0000-00000000000a"
NO_KEY = UUID(int=0)
MAP = "stream=S-{s},type=what,time=at,data=*"


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Size(IntEnum):
    SMALL = 1
    LARGE = 2


@dataclass(frozen=True)
class Line:
    sku: str
    price: Decimal


@dataclass(frozen=True, kw_only=True)
class Sold:
    name: str = ""
    count: int = 0
    ratio: float = 0.0
    paid: bool = False
    total: Decimal = Decimal(0)
    moment: datetime = datetime(2020, 1, 1, tzinfo=UTC)
    day: date = date(2020, 1, 1)
    key: UUID = NO_KEY
    color: Color = Color.RED
    size: Size = Size.SMALL
    kind: Literal["a", 2] = "a"
    lines: list[Line] = field(default_factory=list)
    box: Line | None = None
    note: str | None = None
    many: int | None = None
    anything: Any = None


@attrs.frozen(kw_only=True)
class SoldAttrs:
    name: str = ""
    count: int = 0
    paid: bool = False
    total: Decimal = Decimal(0)
    many: int | None = None
    lines: list[str] = attrs.field(factory=list)


class PydanticCard(pydantic.BaseModel):
    by: Literal["card"]
    number: str


class PydanticCash(pydantic.BaseModel):
    by: Literal["cash"]
    change: Decimal


class SoldPydantic(pydantic.BaseModel):
    name: str = ""
    count: int = 0
    paid: bool = False
    total: Decimal = Decimal(0)
    many: int | None = None
    moment: datetime | None = None
    color: Color = Color.RED
    customer: str = pydantic.Field(default="", alias="customerName")
    payment: PydanticCard | PydanticCash | None = pydantic.Field(default=None, discriminator="by")
    steps: list[PydanticCard | PydanticCash] = pydantic.Field(default_factory=list)


class Card(msgspec.Struct, tag="card"):
    number: str


class Cash(msgspec.Struct, tag="cash"):
    change: Decimal


class SoldMsgspec(msgspec.Struct, tag=True, rename="camel"):
    name: str = ""
    count: int = 0
    paid: bool = False
    total: Decimal = Decimal(0)
    ratio: float = 0.0
    many: int | None = None
    key: UUID = UUID(int=0)
    customer_name: str = ""
    payment: Card | Cash | None = None


CODEC = json_codec(Sold, SoldAttrs, SoldPydantic, SoldMsgspec)


def rows_of(folder: Path, text: str, codec: EventCodec[Any] = CODEC, fields: str = MAP) -> list[Any]:
    place = folder / "in.csv"
    place.write_text(text)
    source, mapping = source_of("", str(place)), mapped(fields, "")
    typed = TypedBodies(codec, cells=source.has_cells(mapping)).typed
    return [typed(row) for row in source.rows(str(place), mapping)]


def cells_of(folder: Path, what: str, codec: EventCodec[Any] = CODEC, **cells: str) -> Incoming | Misfit:
    quoted = ['"' + cell.replace('"', '""') + '"' for cell in cells.values()]
    head = ",".join(["s", "what", "at", *cells])
    (found,) = rows_of(folder, f"{head}\n{','.join(['1', what, '2024-05-01T09:30:00Z', *quoted])}\n", codec)
    assert isinstance(found, Incoming | Misfit)
    return found


CASES: list[tuple[Any, dict[str, str]]] = [
    (Sold(name="007"), {"name": "007"}),
    (Sold(name=""), {"name": ""}),
    (Sold(count=7), {"count": "7"}),
    (Sold(count=-7), {"count": "-7"}),
    (Sold(count=7), {"count": "007"}),
    (Sold(count=7), {"count": "7.0"}),
    (Sold(count=10**30), {"count": "1" + "0" * 30}),
    (Sold(count=0), {"count": ""}),
    (Sold(ratio=0.5), {"ratio": "0.5"}),
    (Sold(ratio=1e300), {"ratio": "1E300"}),
    *((Sold(paid=True), {"paid": text}) for text in ("true", "True", "TRUE", "t", "yes", "Y", "1")),
    *((Sold(paid=False), {"paid": text}) for text in ("false", "False", "F", "no", "n", "0", "")),
    (Sold(total=Decimal("1.10")), {"total": "1.10"}),
    (Sold(total=Decimal(-20)), {"total": "-20"}),
    (Sold(moment=datetime(2024, 5, 1, 9, 30, tzinfo=UTC)), {"moment": "2024-05-01T09:30:00Z"}),
    (Sold(day=date(2024, 5, 1)), {"day": "2024-05-01"}),
    (Sold(key=UUID(ID)), {"key": ID}),
    (Sold(color=Color.BLUE), {"color": "blue"}),
    (Sold(size=Size.LARGE), {"size": "2"}),
    (Sold(kind=2), {"kind": "2"}),
    (Sold(lines=[Line("x", Decimal("1.10"))]), {"lines": '[{"sku":"x","price":1.10}]'}),
    (Sold(box=Line("x", Decimal(2))), {"box": '{"sku":"x","price":2}'}),
    (Sold(box=None), {"box": ""}),
    (Sold(note=None), {"note": ""}),
    (Sold(note="5"), {"note": "5"}),
    (Sold(many=5), {"many": "5"}),
    (Sold(anything="5"), {"anything": "5"}),
    (SoldAttrs(name="x", count=1, paid=True, total=Decimal("0.50"), many=None, lines=["a"]),
     {"name": "x", "count": "1", "paid": "yes", "total": "0.50", "many": "", "lines": '["a"]'}),
    (SoldPydantic(count=3, paid=True, total=Decimal("1.10"), many=4, customerName="ann", color=Color.BLUE),
     {"count": "3", "paid": "t", "total": "1.10", "many": "4", "customerName": "ann", "color": "blue"}),
    (SoldPydantic(payment=PydanticCash(by="cash", change=Decimal("0.10"))),
     {"payment": '{"by":"cash","change":"0.10"}'}),
    (SoldPydantic(moment=datetime(2024, 5, 1, 9, 30, tzinfo=UTC)), {"moment": "2024-05-01T09:30:00Z"}),
    (SoldMsgspec(count=3, paid=True, total=Decimal("1.10"), ratio=2.0, many=4, key=UUID(ID), customer_name="ann"),
     {"count": "3", "paid": "1", "total": "1.10", "ratio": "2", "many": "4", "key": ID, "customerName": "ann"}),
    (SoldMsgspec(payment=Cash(Decimal("0.10"))), {"payment": '{"type":"cash","change":"0.10"}'}),
]  # fmt: skip


@pytest.mark.parametrize(("event", "cells"), CASES)
def test_cells_become_what_the_codec_writes_to_the_byte(
    tmp_path: Path, event: Any, cells: dict[str, str]
) -> None:
    found = cells_of(tmp_path, type(event).__name__, **cells)
    assert isinstance(found, Incoming), found
    assert found.event.data == CODEC.encode(event).data
    assert CODEC.decode(Stored(type=found.event.type, data=found.event.data)) == event


@pytest.mark.parametrize(
    ("what", "cells", "rule"),
    [
        ("Sold", {"paid": "maybe"}, "Sold.paid: must be true or false (or t, f, yes, no, y, n, 1, 0), got 'maybe'"),
        ("Sold", {"paid": "on"}, "Sold.paid: must be true or false"),
        ("Sold", {"paid": " true"}, "Sold.paid: must be true or false"),
        ("Sold", {"count": "1.5"}, "Sold.count: must be an integer, got '1.5'"),
        ("Sold", {"count": "1,000"}, "Sold.count: must be an integer, got '1,000'"),
        ("Sold", {"count": "\u0665"}, "Sold.count: must be an integer"),
        ("Sold", {"count": "1_0"}, "Sold.count: must be an integer"),
        ("Sold", {"count": "9" * 5000}, "Sold.count: must be an integer, got '999"),
        ("Sold", {"ratio": "nan"}, "Sold.ratio: must be a number, got 'nan'"),
        ("Sold", {"ratio": "1e999"}, "Sold.ratio: must be a number (not finite)"),
        ("Sold", {"total": "1,10"}, "Sold.total: must be a number, got '1,10'"),
        ("Sold", {"total": "1e" + "9" * 30}, "Sold.total: must be a number"),
        ("Sold", {"moment": "2024-05-01 09:30"}, "Sold.moment: must have a time zone"),
        ("Sold", {"moment": "1/5/2024"}, "Sold.moment: must be an ISO 8601 time"),
        ("Sold", {"key": "7"}, "Sold.key: must be a UUID"),
        ("Sold", {"color": "green"}, "Sold.color: must be one of 'red', 'blue', got 'green'"),
        ("Sold", {"size": "3"}, "Sold.size: must be one of 1, 2, got '3'"),
        ("Sold", {"lines": "a,b"}, "Sold.lines: must be a JSON array, got 'a,b'"),
        ("Sold", {"lines": '[{"sku":"x","price":"1.10"}]'}, "Sold.lines.0.price: must be a number, got '1.10'"),
        ("Sold", {"many": "x"}, "Sold.many: must be an integer or blank, got 'x'"),
        ("Sold", {"box": '{"sku":"x"}'}, "Sold.box.price: is missing and has no default"),
        ("Sold", {"$v": "1"}, "$v: must not be a column"),
        ("SoldAttrs", {"count": "x"}, "SoldAttrs.count: must be an integer, got 'x'"),
        ("SoldPydantic", {"paid": "maybe"}, "SoldPydantic.paid: must be true or false"),
        ("SoldPydantic", {"total": "x"}, "SoldPydantic.total: "),
        ("SoldPydantic", {"payment": '{"by":"cheque"}'}, "SoldPydantic.payment: "),
        ("SoldPydantic", {"payment": '{"by":"cash","change":[1]}'}, "SoldPydantic.payment.cash.change: "),
        ("SoldPydantic", {"steps": '[{"by":"cash","change":[1]}]'}, "SoldPydantic.steps.0.PydanticCard.by: "),
        ("SoldMsgspec", {"count": "x"}, "SoldMsgspec.count: must be an integer, got 'x'"),
        ("SoldMsgspec", {"key": "x"}, "SoldMsgspec: Invalid UUID - at `$.key`"),
        ("Lost", {"count": "1"}, "type: Lost is not known to the codec"),
    ],
)  # fmt: skip
def test_a_cell_that_does_not_convert_is_refused_by_type_field_rule_and_value(
    tmp_path: Path, what: str, cells: dict[str, str], rule: str
) -> None:
    found = cells_of(tmp_path, what, **cells)
    assert isinstance(found, Misfit)
    assert found.rule.startswith(rule)
    assert (found.at, found.stream) == ("line 2", "S-1")


@dataclass(frozen=True)
class Returned:
    book: str
    late: bool


@upcast("Returned", 1, to=2)
def with_late(event: dict[str, Any]) -> dict[str, Any]:
    return {**event, "late": event["late"] == "true"}


def test_cells_get_the_version_of_today(tmp_path: Path) -> None:
    codec = json_codec(Returned, upcasts=[with_late])
    found = cells_of(tmp_path, "Returned", codec, book="b", late="false")
    assert isinstance(found, Incoming)
    assert found.event.data == codec.encode(Returned("b", False)).data == b'{"$v":2,"book":"b","late":false}'


def test_a_field_takes_its_column_also_where_the_stream_or_a_tag_is_made_of_it(tmp_path: Path) -> None:
    fields = "stream=Book-{book},type==Returned,time=at,data=*,tags=book:{book}"
    text = "book,at,late\nb,2024-05-01T09:30:00Z,yes\n"
    (found,) = rows_of(tmp_path, text, json_codec(Returned), fields)
    assert (found.stream, found.event.tags) == ("Book-b", ("book:b",))
    assert found.event.data == b'{"book":"b","late":true}'


def test_a_missing_column_without_a_default_is_refused(tmp_path: Path) -> None:
    found = cells_of(tmp_path, "Returned", json_codec(Returned), book="b")
    assert isinstance(found, Misfit)
    assert found.rule == "Returned.late: is missing and has no default"
    found = cells_of(tmp_path, "Returned", json_codec(Returned), book="b", late="")
    assert isinstance(found, Misfit)
    assert found.rule == "Returned.late: must be true or false (or t, f, yes, no, y, n, 1, 0), got ''"


def test_a_column_that_the_class_has_no_field_for_is_kept_as_text_unless_it_is_blank(tmp_path: Path) -> None:
    found = cells_of(tmp_path, "Returned", json_codec(Returned), book="b", late="no", shelf="5", row="")
    assert isinstance(found, Incoming)
    assert found.event.data == b'{"book":"b","late":false,"shelf":"5"}'


@dataclass(frozen=True)
class Named:
    name: str
    key: UUID = field(default_factory=uuid4)


@dataclass(frozen=True)
class Picky:
    name: str

    def __post_init__(self) -> None:
        raise KeyError(self.name)


def test_whatever_a_class_raises_is_said_with_the_row(tmp_path: Path) -> None:
    found = cells_of(tmp_path, "Picky", json_codec(Picky), name="x")
    assert isinstance(found, Misfit)
    assert found.rule == "Picky: KeyError('x')"


def test_a_default_that_differs_whenever_it_is_made_is_refused_since_a_second_run_would_not_know_it(
    tmp_path: Path,
) -> None:
    found = cells_of(tmp_path, "Named", json_codec(Named), name="x")
    assert isinstance(found, Misfit)
    assert found.rule.startswith("Named.key: needs a column")
    assert isinstance(cells_of(tmp_path, "Named", json_codec(Named), name="x", key=ID), Incoming)


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ({"book": "b", "late": False}, ""),
        ({"book": "b", "late": "false"}, "Returned.late: must be true or false, got 'false'"),
        ({"book": "b", "late": 0}, "Returned.late: must be true or false, got 0"),
        ({"book": "b"}, "Returned.late: is missing"),
        ({"book": "b", "late": True, "$v": 3}, "Returned: unknown version 3"),
        ([], "Returned: must be an object"),
    ],
)
def test_json_is_kept_to_the_byte_and_decoded(tmp_path: Path, body: Any, rule: str) -> None:
    text = f" {json.dumps(body)}  "
    place = tmp_path / "in.ndjson"
    place.write_text(
        json.dumps({"stream": "Loan-1", "type": "Returned", "time": "2024-05-01T09:30Z", "data": text})
    )
    typed = TypedBodies(json_codec(Returned), cells=False).typed
    (found,) = map(typed, source_of("", str(place)).rows(str(place), {}))
    if not rule:
        assert isinstance(found, Incoming)
        assert found.event.data == text.encode()
    else:
        assert isinstance(found, Misfit)
        assert found.rule.startswith(rule)


def test_a_codec_of_the_users_own_decodes_and_what_it_raises_is_said_with_the_row(tmp_path: Path) -> None:
    def decode(stored: Stored) -> str:
        return str(json.loads(stored.data)["name"])

    codec = EventCodec[str](encode=lambda name: Event.json("Any", {"name": name}), decode=decode)
    assert isinstance(cells_of(tmp_path, "Any", codec, name="5"), Incoming)
    found = cells_of(tmp_path, "Any", codec, nome="5")
    assert isinstance(found, Misfit)
    assert found.rule == "Any: its codec fails: KeyError('name')"


def test_a_type_that_the_codec_skips_is_kept_as_it_is(tmp_path: Path) -> None:
    codec = json_codec(Returned, skips_unknown=True)
    found = cells_of(tmp_path, "Lost", codec, total="1.10")
    assert isinstance(found, Incoming)
    assert found.event.data == b'{"total":"1.10"}'


def test_a_timer_needs_no_codec() -> None:
    event = Event(type="$timer-fired", data=b"{}", timestamp="2024-05-01T09:30:00.0000000+00:00")
    row = Incoming(at="line 1", stream="Loan-1", index=0, event=event)
    assert TypedBodies(json_codec(Returned), cells=False).typed(row) is row


def test_verifying_with_a_codec_names_streams_that_it_cannot_read_also_what_was_there_before(
    tmp_path: Path,
) -> None:
    store, codec = memory_streams(), json_codec(Returned)
    text = (
        "s,what,at,book,late\n1,Returned,2024-05-01T09:30:00Z,b,false\n2,Returned,2024-05-01T09:30:00Z,b,no\n"
    )
    store.append("S-1", [Event.json("Returned", {"book": "b", "late": "false"})])
    rejected = list[Misfit]()
    importer = StreamImporter(
        writer=HistoryWriter(store), rejects=rejected.append, verifying=True, codec=codec
    )
    importer.run(rows_of(tmp_path, text, codec))
    done = importer.verify()
    assert [each.stream for each in rejected] == ["S-1"]
    assert done.unread == ["S-1: Returned (index 0): late: must be true or false"]
    assert done.unlike == ["S-1"]

    store.append("S-2", [Event.json("Unheard", {})])
    assert "S-2" in importer.verify().unread[-1]


def test_verifying_with_a_codec_that_fails_says_so(tmp_path: Path) -> None:
    def decode(_: Stored) -> str:
        raise ZeroDivisionError

    codec = EventCodec[str](encode=lambda _: Event.json("Any", {}), decode=decode)
    store = memory_streams()
    importer = StreamImporter(writer=HistoryWriter(store), verifying=True, codec=codec)
    place = tmp_path / "in.ndjson"
    place.write_text('{"stream":"S-1","type":"Any","time":"2024-05-01T09:30Z","data":"{}"}')
    importer.run(source_of("", str(place)).rows(str(place), {}))
    assert importer.verify().unread == ["S-1: Any (index 0): its codec fails: ZeroDivisionError()"]
