"""What a codec writes it can read: whatever would come back as something else is refused, and the field is named."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID
from zoneinfo import ZoneInfo

import attrs
import msgspec
import pydantic
import pytest

from epochal.deciders.codecs import EventCodec, Stored, json_codec
from epochal.deciders.type_hints import shape_of
from epochal.deciders.value_forms import form_of
from epochal.errors import InvalidInput

NOW = datetime(2026, 1, 2, 3, 4, 5, 600, UTC)


class Gate(enum.StrEnum):
    NORTH = "north"


class Rank(enum.IntEnum):
    LOW = 1


class Text(str):
    __slots__ = ()


class Odd(enum.Enum):
    ONE = 1

    @classmethod
    def _missing_(cls, value: object) -> Any:
        member = object.__new__(cls)
        member._name_, member._value_ = str(value), value
        return member


class Moment(datetime):
    """As time libraries and libraries that stop clocks have."""


class Finer(datetime):
    """As a Timestamp of pandas, which counts nanoseconds."""

    def isoformat(self, *_: str) -> str:
        return "2026-01-01T00:00:00.000000001+00:00"


def refused(event: Any) -> str:
    """What the codec of its class says of an event."""
    codec: EventCodec[Any] = json_codec(type(event))
    with pytest.raises(InvalidInput) as raised:
        codec.encode(event)
    return f"{raised.value.field}: {raised.value.rule}"


# Members of subclasses


class Payment(pydantic.BaseModel):
    amount: int


class CardPayment(Payment):
    last_four: str


class Paid(pydantic.BaseModel):
    by: Payment


class PaidInParts(pydantic.BaseModel):
    parts: dict[str, list[Payment]]


class Transfer(msgspec.Struct):
    amount: int


class WireTransfer(Transfer):
    bank: str


class Transferred(msgspec.Struct):
    by: list[Transfer]


@attrs.frozen
class Coin:
    amount: int


@attrs.frozen
class GoldCoin(Coin):
    carat: int


@attrs.frozen
class Tossed:
    coin: Coin


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (
            Paid(by=CardPayment(amount=3, last_four="0000")),
            "events.Paid.by: must be of type Payment, the type that is read back, got CardPayment(",
        ),
        (
            PaidInParts(parts={"first": [Payment(amount=1), CardPayment(amount=3, last_four="0000")]}),
            "events.PaidInParts.parts.first.1: must be of type Payment, the type that is read back, got CardPayment(",
        ),
        (
            Transferred([WireTransfer(3, "Bank")]),
            "events.Transferred.by.0: must be of type Transfer, the type that is read back, got WireTransfer(",
        ),
        (Tossed(GoldCoin(1, 24)), "events.Tossed.coin: must be a Coin, got GoldCoin("),
    ],
    ids=lambda part: type(part).__name__,
)
def test_a_member_of_a_subclass_is_refused_since_its_own_members_would_be_lost(
    event: Any, message: str
) -> None:
    assert refused(event).startswith(message)


# Values of other types


@pytest.mark.parametrize(
    ("hint", "value", "rule"),
    [
        (str, Gate.NORTH, "must be a string of type str, not of a subclass, got <Gate.NORTH: 'north'>"),
        (str, Text("a"), "must be a string of type str, not of a subclass, got 'a'"),
        (int, Rank.LOW, "must be an integer of type int, not of a subclass, got <Rank.LOW: 1>"),
        (int, True, "must be an integer, got True"),
        (float, True, "must be a number, got True"),
        (float, 2**53 + 1, "must be a number (it has no exact float value), got 9007199254740993"),
        (float, float("nan"), "must be a number (not finite), got nan"),
        (Decimal, Decimal("sNaN"), "must be a number (not finite), got Decimal('sNaN')"),
        (Odd, Odd(2), "must be a member of Odd, got <Odd.2: 2>"),
        (Literal["north"], Gate.NORTH, "must be one of 'north', got <Gate.NORTH: 'north'>"),
        (list[int], (1,), "must be a list, got (1,)"),
        (tuple[int, ...], [1], "must be a tuple, got [1]"),
        (Sequence[int], {1}, "must be a list or a tuple, got {1}"),
        (set[int], frozenset({1}), "must be a set, got frozenset({1})"),
        (Mapping[str, int], {Gate.NORTH: 1}, "must be a dict of strings, got {<Gate.NORTH: 'north'>: 1}"),
        (datetime, Finer(2026, 1, 1, tzinfo=UTC), "must be an ISO 8601 time (2026-01-01T00:00:00.000000001"),
        (Any, (1,), "must be JSON where the type is Any"),
        (Any, {1: 1}, "must be JSON where the type is Any"),
        (Any, Decimal("NaN"), "must be JSON where the type is Any"),
        (
            Any,
            0.1,
            "must be a Decimal, because fields of type Any are read back with Decimals for floats, got 0.1",
        ),
        (Any, Gate.NORTH, "must be JSON where the type is Any"),
    ],
    ids=lambda part: type(part).__name__,
)
def test_a_value_that_would_come_back_as_another_type_is_refused(hint: Any, value: Any, rule: str) -> None:
    made: Any = attrs.make_class("Made", {"value": attrs.field(type=hint)})
    assert refused(made(value)).startswith(f"events.Made.value: {rule}")


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (
            pydantic.create_model("Made", value=int).model_construct(value="5"),
            "events.Made.value: must be of type int, the type that is read back, got '5'",
        ),
        (pydantic.create_model("Made", value=Any)(value=(1,)), "events.Made.value: must be of type list"),
        (
            pydantic.create_model("Made", value=Any)(value=float("inf")),
            "events.Made.value: must be",
        ),
        (msgspec.defstruct("Made", [("value", str)])(Gate.NORTH), "events.Made.value: must be of type str"),
        (
            msgspec.defstruct("Made", [("value", int)])("5"),
            "events.Made: could not be read back: Expected `int`",
        ),
        (
            msgspec.defstruct("Made", [("value", float)])(2**53 + 1),
            "events.Made.value: must be of type float",
        ),
        (msgspec.defstruct("Made", [("value", Any)])({1: 1}), "events.Made.value: must not change"),
        (msgspec.defstruct("Made", [("value", Any)])({1}), "events.Made.value: must be of type list"),
        (
            msgspec.defstruct("Made", [("value", str)])("\ud800"),
            "events.Made.value: must not contain a lone surrogate",
        ),
        (
            attrs.make_class("Made", {"value": attrs.field(type=list[str])})(["a\ud800"]),
            "events.Made.value.0: must",
        ),
    ],
    ids=lambda part: type(part).__name__,
)
def test_values_that_pydantic_and_msgspec_do_not_check_are_refused(event: Any, message: str) -> None:
    assert refused(event).startswith(message)


@pytest.mark.parametrize(
    ("hint", "value", "back"),
    [
        (float, 5, 5.0),
        (float, -0.0, -0.0),
        (Decimal, 5, Decimal(5)),
        (datetime, Moment(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)),
        (
            datetime,
            datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")),
            datetime.fromisoformat("2026-10-25T02:30:00+01:00"),
        ),
        (int, 10**4_000, 10**4_000),
        (UUID, UUID(int=1), UUID(int=1)),
    ],
    ids=lambda part: type(part).__name__,
)
def test_what_a_type_says_is_no_loss_comes_back_as_the_type(hint: Any, value: Any, back: Any) -> None:
    for made in (
        attrs.make_class("Made", {"value": attrs.field(type=hint)}),
        pydantic.create_model("Made", value=hint),
    ):
        codec: EventCodec[Any] = json_codec(made)
        read: Any = codec.read(codec.encode(made(value=value)))
        assert (str(read.value), type(read.value)) == (str(back), type(back))


@dataclass(frozen=True)
class Priced:
    price: Decimal


@dataclass(frozen=True)
class Loose:
    value: Any


@dataclass(frozen=True)
class Numbered:
    number: int
    numbers: tuple[int, ...] = ()


@pytest.mark.parametrize(
    "made", [Priced, Loose, attrs.make_class("Made", {"value": attrs.field(type=Decimal)})]
)
@pytest.mark.parametrize("value", [Decimal("-0"), Decimal("-0.0"), Decimal("-0E+3"), Decimal("-0E-9")])
def test_a_zero_keeps_its_sign(made: Any, value: Decimal) -> None:
    codec: EventCodec[Any] = json_codec(made)
    (back,) = vars(codec.decode(Stored(type=made.__name__, data=codec.encode(made(value)).data))).values()
    assert (type(back), str(back)) == (Decimal, str(value))


def test_an_integer_is_read_from_a_zero_that_another_program_gave_a_sign() -> None:
    codec = json_codec(Numbered)
    back = codec.decode(Stored(type="Numbered", data=b'{"number":-0,"numbers":[-0,1]}'))
    assert back == Numbered(0, (0, 1))
    assert type(back.number) is int


@pytest.mark.parametrize(
    "event",
    [
        Priced(Decimal("1" * 4_301)),
        Priced(Decimal("-" + "1" * 5_000)),
        Priced(10**4_400),  # type: ignore[arg-type]
        Loose(Decimal("1" * 5_000)),
        Loose([Decimal("1" * 5_000)]),
    ],
)
def test_a_decimal_of_more_digits_than_python_reads_as_an_integer_is_refused(event: Any) -> None:
    assert "must be a number of at most 4300 digits" in refused(event)


@pytest.mark.parametrize("value", [Decimal("1" * 4_300), Decimal("1" * 5_000 + ".0"), Decimal("1E+5000")])
def test_a_decimal_of_as_many_digits_as_can_be_read_comes_back(value: Decimal) -> None:
    codec = json_codec(Priced)
    assert codec.decode(Stored(type="Priced", data=codec.encode(Priced(value)).data)) == Priced(value)


# Code of the classes


@dataclass(frozen=True)
class Counted:
    number: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "number", self.number + 1)


@dataclass(frozen=True)
class Nested:
    inner: tuple[Counted, ...]


@attrs.frozen
class Doubled:
    number: int = attrs.field(converter=lambda number: number * 2)


@dataclass
class Derived:
    number: int
    twice: int = field(init=False, default=0)


@dataclass
class Initialised:
    number: int
    secret: InitVar[int]


@dataclass
class Stripped:
    name: str

    def __post_init__(self) -> None:
        self.name = self.name.strip()


class Added(pydantic.BaseModel):
    number: Annotated[int, pydantic.AfterValidator(lambda number: number + 1)]


class Shouted(pydantic.BaseModel):
    name: str

    @pydantic.field_serializer("name")
    def _shout(self, name: str) -> str:
        return name.upper()


class Shortened(pydantic.BaseModel):
    numbers: Annotated[list[int], pydantic.AfterValidator(lambda numbers: numbers[:-1])]


class Unsigned(pydantic.BaseModel):
    number: Annotated[float, pydantic.PlainSerializer(abs)]


class Positive(pydantic.BaseModel):
    number: Annotated[Decimal, pydantic.PlainSerializer(lambda number: str(abs(number)))]


class Worded(pydantic.BaseModel):
    number: Annotated[int, pydantic.PlainSerializer(lambda number: f"number {number}")]


@pytest.mark.parametrize(
    ("event", "field_name"),
    [
        (Counted(1), "events.Counted.number"),
        (Nested((Counted(1),)), "events.Nested.inner.0.number"),
        (Doubled(1), "events.Doubled.number"),
        (Initialised(1, 2), "events.Initialised"),
        (Added(number=1), "events.Added.number"),
        (Shouted(name="ada"), "events.Shouted.name"),
        (Worded(number=1), "events.Worded.number"),
        (Shortened(numbers=[1, 2, 3]), "events.Shortened.numbers"),
        (Unsigned(number=-0.0), "events.Unsigned.number"),
        (Positive(number=Decimal("-0")), "events.Positive.number"),
        (Positive(number=Decimal("-0.00")), "events.Positive.number"),
    ],
    ids=lambda part: type(part).__name__,
)
def test_an_event_that_its_class_changes_on_the_way_back_is_refused(event: Any, field_name: str) -> None:
    assert refused(event).startswith(f"{field_name}: ")


def test_an_event_with_a_member_that_no_constructor_takes_is_refused_where_that_was_changed() -> None:
    derived = Derived(1)
    codec = json_codec(Derived)
    assert codec.read(codec.encode(derived)) == derived
    derived.twice = 2
    assert (
        refused(derived)
        == "events.Derived.twice: must not change when it is written as JSON and read back, got 2"
    )


@pytest.mark.parametrize("event", [Stripped(" a "), Shouted(name="ADA"), Derived(1)])
def test_an_event_that_its_class_does_not_change_again_comes_back(event: Any) -> None:
    codec: EventCodec[Any] = json_codec(type(event))
    assert codec.read(codec.encode(event)) == event


# Classes that are refused when the codec is made


class Revealed(pydantic.BaseModel):
    key: pydantic.SecretStr

    @pydantic.field_serializer("key", when_used="json")
    def _reveal(self, key: pydantic.SecretStr) -> str:
        return key.get_secret_value()


def _model(**fields: Any) -> type[pydantic.BaseModel]:
    return pydantic.create_model("Made", **fields)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (_model(key=pydantic.SecretStr), "Made.key is a secret"),
        (_model(key=pydantic.SecretBytes | None), "Made.key is a secret"),
        (_model(keys=list[pydantic.Secret[int]]), "Made.keys is a secret"),
        (_model(inner=_model(key=pydantic.SecretStr)), "Made.key is a secret"),
        (
            _model(a=Annotated[int, pydantic.Field(alias="x")], b=Annotated[int, pydantic.Field(alias="x")]),
            "Made.b and Made.a are both written as x",
        ),
        (
            _model(a=int, b=Annotated[int, pydantic.Field(alias="a")]),
            "Made.b and Made.a are both written as a",
        ),
        (_model(a=Annotated[int, pydantic.Field(alias="$v")]), r"Made.a is written as \$v"),
        (_model(at=list[pydantic.NaiveDatetime]), "Made.at accepts only times without a zone"),
        (msgspec.defstruct("Made", [("a", int, msgspec.field(name="$v"))]), r"Made.a is written as \$v"),
        (msgspec.defstruct("Made", [("a", int)], tag_field="$v", tag="x"), r"Made has the tag field \$v"),
        (
            msgspec.defstruct("Made", [("at", Annotated[datetime, msgspec.Meta(tz=False)] | None)]),
            "Made.at accepts only times without a zone",
        ),
        (msgspec.defstruct("Made", [("a", list[Text])]), "Made.a: .*Text.* has no form in JSON"),
        (attrs.make_class("Made", {"a": attrs.field(type=Literal[Gate.NORTH])}), "Made.a: .*use the enum"),
    ],
    ids=lambda part: type(part).__name__,
)
def test_a_class_that_could_never_be_read_back_is_refused_when_the_codec_is_made(
    kind: Any, message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        json_codec(kind)


def test_a_secret_is_stored_where_the_class_says_how_it_is_written() -> None:
    codec = json_codec(Revealed)
    event = codec.encode(Revealed(key=pydantic.SecretStr("made-up")))
    assert event.content == b'{"key":"made-up"}'
    assert codec.read(event) == Revealed(key=pydantic.SecretStr("made-up"))


def test_a_member_named_as_the_version_is_refused() -> None:
    class Open(pydantic.BaseModel, extra="allow"):
        number: int

    assert refused(Open.model_validate({"number": 1, "$v": 2})) == (
        "events.Open: must not have the member $v, which is reserved for the version"
    )


def test_a_refused_type_is_told_what_has_a_form_and_no_path_of_the_repository() -> None:
    with pytest.raises(TypeError, match=r"a field may be str, bool, int, float, Decimal, datetime") as raised:
        shape_of(bytes)
    assert "docs/" not in str(raised.value)


# Times without an offset


@dataclass(frozen=True)
class Due:
    at: datetime
    days: tuple[date, ...] = ()


@attrs.frozen
class DueByAttrs:
    at: datetime | None


class DueByPydantic(pydantic.BaseModel):
    at: datetime | None


class DueByMsgspec(msgspec.Struct):
    at: datetime | None


class Timers(msgspec.Struct):
    times: dict[str, list[datetime]]


NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001


@pytest.mark.parametrize(
    ("event", "path"),
    [
        (Due(NAIVE), "at"),
        (DueByAttrs(NAIVE), "at"),
        (DueByPydantic(at=NAIVE), "at"),
        (DueByMsgspec(NAIVE), "at"),
        (Timers({"a": [NOW, NAIVE]}), "times.a.1"),
    ],
    ids=lambda part: type(part).__name__,
)
def test_a_time_without_an_offset_is_refused_in_an_event(event: Any, path: str) -> None:
    rule = "must have a time zone: datetime.now(UTC), for instance"
    assert refused(event) == f"events.{type(event).__name__}.{path}: {rule}, got {NAIVE!r}"


@pytest.mark.parametrize("kind", [Due, DueByAttrs, DueByPydantic, DueByMsgspec])
def test_a_stored_time_without_an_offset_is_still_read_and_may_be_in_a_state(kind: Any) -> None:
    form = form_of(kind)
    value = form.parse(b'{"at":"2026-01-01T00:00:00"}')
    assert value.at == NAIVE
    assert form.read(form.write(value)) == value


def test_a_time_with_any_offset_comes_back() -> None:
    codec = json_codec(Due)
    for hours in (-12, 0, 14):
        due = Due(NOW + timedelta(hours=hours), (NOW.date(),))
        assert codec.read(codec.encode(due)) == due


@pytest.mark.parametrize("hint", [int, str])
def test_an_integer_of_more_digits_than_python_writes_is_refused_and_not_shown(hint: Any) -> None:
    for made in (
        attrs.make_class("Made", {"value": attrs.field(type=hint)}),
        msgspec.defstruct("Made", [("value", hint)]),
        pydantic.create_model("Made", value=hint).model_construct,
    ):
        message = refused(made(value=10**5_000))
        assert message.startswith("events.Made")
        assert len(message) < 200


def test_a_list_in_a_sequence_is_written_and_comes_back_as_a_tuple() -> None:
    @dataclass(frozen=True)
    class Packed:
        items: Sequence[str]

    codec = json_codec(Packed)
    event = codec.encode(Packed(["lamp", "rug"]))
    stored = Stored(type=event.type, data=event.content)
    assert codec.decode(stored) == Packed(("lamp", "rug"))
