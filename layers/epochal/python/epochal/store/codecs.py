"""Codecs between a domain's events and stored ones.

A codec is two functions. `encode` turns a domain event into an `Event`; `decode` turns what is stored into a domain
event, or None where the type is not one of its own. Unfolds pass through the same codec, since a snapshot is an event
to `evolve` like any other. `json_codec` makes one for dataclasses, from a register of their names. The register alone
names what is stored, so that moving or renaming a class renames nothing stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar, overload

from epochal.codec import json
from epochal.codec.hints import shape_of
from epochal.codec.shapes import Mismatch, Shape
from epochal.errors import CorruptData, InvalidInput
from epochal.model.events import Event
from epochal.model.plain import must_be_plain

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """An event or unfold as a codec is given it.

    Attributes:
        index: of the event; of an unfold, the version that it was made from.
    """

    type: str
    data: bytes
    meta: bytes = b""
    timestamp: str = ""
    index: int = 0


# No slots: a frozen, slotted, generic class cannot be called with its parameters, `X[Y](...)`, on Python 3.11.
@dataclass(frozen=True, kw_only=True)
class EventCodec(Generic[E]):
    """How a domain's events are stored.

    Attributes:
        encode: the event to store; its type, data and whatever else an `Event` carries.
        decode: the domain's event, or None for a type that the codec does not know.
        skips_unknown: events of unknown types are no part of a state. Otherwise they are an error, because a state
            that leaves out what it does not understand may decide wrongly. Unfolds of unknown types are always skipped
            where events can stand in for them.
    """

    encode: Callable[[E], Event]
    decode: Callable[[Stored], E | None]
    skips_unknown: bool = False

    def __post_init__(self) -> None:
        """Refuse what nothing would await."""
        must_be_plain(self.encode, "encode")
        must_be_plain(self.decode, "decode")


# Several classes are one type to a checker only if they are told apart here; else it takes what they have in common.
@overload
def json_codec(one: type[A], two: type[B], /, *, skips_unknown: bool = False) -> EventCodec[A | B]: ...


@overload
def json_codec(
    one: type[A], two: type[B], three: type[C], /, *, skips_unknown: bool = False
) -> EventCodec[A | B | C]: ...


@overload
def json_codec(
    one: type[A], two: type[B], three: type[C], four: type[D], /, *, skips_unknown: bool = False
) -> EventCodec[A | B | C | D]: ...


@overload
def json_codec(
    *types: type[E], named: Mapping[str, type[E]] | None = None, skips_unknown: bool = False
) -> EventCodec[E]: ...


def json_codec(
    *types: type[E], named: Mapping[str, type[E]] | None = None, skips_unknown: bool = False
) -> EventCodec[E]:
    """A codec of JSON objects over dataclasses; `codec.hints` lists what their fields may be.

    Args:
        types: dataclasses, each stored under its class's name.
        named: dataclasses by the names they are stored under. A class may have several, for what older programs
            wrote: the first is the one that is written.

    Raises:
        TypeError: a field whose type has no form in JSON, or a name that stands for two classes.
    """
    register = _register(types, named or {})
    shapes = {kind: shape_of(kind) for kind in register.values()}
    names = {kind: name for name, kind in reversed(register.items())}

    def encode(event: E) -> Event:
        if type(event) not in names:
            raise InvalidInput("events", f"{type(event).__name__} is not registered with the codec")
        return Event(type=names[type(event)], data=_written(shapes[type(event)], event))

    def decode(stored: Stored) -> E | None:
        kind = register.get(stored.type)
        return None if kind is None else _read(shapes[kind], stored)

    return EventCodec(encode=encode, decode=decode, skips_unknown=skips_unknown)


def _register(types: tuple[type[E], ...], named: Mapping[str, type[E]]) -> dict[str, type[E]]:
    """Classes by stored name."""
    register = dict(named)
    for kind in types:
        if register.setdefault(kind.__name__, kind) is not kind:
            raise TypeError(f"two classes are named {kind.__name__}; name them apart with `named`")
    return register


def _written(shape: Shape, event: object) -> bytes:
    name = f"events.{type(event).__name__}"
    try:
        return json.dumps(shape.write(event))
    except Mismatch as mismatch:
        raise InvalidInput(f"{name}.{mismatch.path}".rstrip("."), mismatch.rule) from None
    except (ValueError, TypeError) as error:
        raise InvalidInput(name, str(error)) from error


def _read(shape: Shape, stored: Stored) -> E | None:
    try:
        event: E = shape.read(json.loads(stored.data))
    except ValueError as error:
        raise CorruptData(f"{stored.type} (index {stored.index}): {error}") from error
    return event
