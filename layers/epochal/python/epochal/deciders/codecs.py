"""Codecs between a domain's events and stored ones.

A codec is two functions. `encode` turns a domain event into an `Event`; `decode` turns a stored event into a domain
event, or into None if the codec does not have its type. Unfolds pass through the same codec, since to `evolve` a
snapshot is an event like any other. `json_codec` builds a codec for dataclasses and for classes of attrs, Pydantic and
msgspec, from a register of their names. Only the register names what is stored, so a class can be moved or renamed
without changing any stored name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, TypeVar, overload

from epochal.codec import json
from epochal.deciders.mismatch import MISSING, Mismatch
from epochal.deciders.round_trips import unwritable_in
from epochal.deciders.upcasting import Upcast, Versions, versions_of
from epochal.deciders.value_forms import ValueForm, form_of
from epochal.errors import CorruptData, InvalidInput, UnknownType
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.bodies import Claim, content_of
from epochal.model.body_marks import VERSION
from epochal.model.events import Event
from epochal.model.plain_functions import must_be_done, must_be_plain
from epochal.model.plain_json import read_json
from epochal.model.stream_names import TIMERS

if TYPE_CHECKING:
    from epochal.model.events import Event

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """An event or unfold in the form that a codec decodes.

    Attributes:
        type: type under which the event is stored.
        data: body of the event or unfold.
        meta: metadata of the event or unfold.
        timestamp: when the event happened.
        index: index of the event; for an unfold, the version that it was made from.
        stream: stream or aggregate of the event; empty if that is unknown.
    """

    type: str
    data: bytes
    meta: bytes = b""
    timestamp: str = ""
    index: int = 0
    stream: str = field(default="", compare=False)

    @property
    def where(self) -> str:
        """Stream, type and index of the event as text, for error messages."""
        return f"{self.stream}: {self.type} (index {self.index})".removeprefix(": ")

    def json(self) -> Any:
        """Parse `data` as plain JSON; raise `InvalidInput` if a codec with upcasts wrote it."""
        return read_json(self.data, self.where)


class StoredEvent(Protocol):
    """An event or unfold as any reader returns it: `Recorded`, `FeedEvent` and the like."""

    @property
    def type(self) -> str:
        """Type of the event or unfold; empty if the event is gone."""

    @property
    def data(self) -> bytes | str | Claim:
        """Body of the event or unfold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealing:
    """The functions by which a codec encrypts and decrypts what is stored about a person.

    Attributes:
        seal: function that encrypts a body for a person; raises `SubjectForgotten` if the person's key was destroyed.
        unseal: function that decrypts a body; returns None if the person's key was destroyed.
    """

    seal: Callable[[str, bytes], bytes]
    unseal: Callable[[bytes], bytes | None]


# No slots: a frozen, slotted, generic class cannot be called with its parameters, `X[Y](...)`, on Python 3.11.
@dataclass(frozen=True, kw_only=True)
class EventCodec(Generic[E]):
    """Converts a domain's events to stored events, and stored events back.

    Attributes:
        encode: function that returns the event to store: its type, data and whatever else an `Event` carries.
        decode: function that returns the domain's event, or None for a type that the codec does not know.
        skips_unknown: whether events of unknown types are skipped when a state is folded. Otherwise they are an error,
            because a state that leaves out what it does not understand may decide wrongly. Unfolds of unknown types are
            always skipped if events can stand in for them.
        types: every type under which events of the codec may be stored, earlier names included; empty if the codec does
            not say.
        classes: the classes given to `json_codec`, by the names that their events are stored under.
        sealing: how `sealed_codec` encrypts bodies; None if the codec stores them as they are.
    """

    encode: Callable[[E], Event]
    decode: Callable[[Stored], E | None]
    skips_unknown: bool = False
    types: frozenset[str] = frozenset()
    classes: Mapping[str, StoredClass] = field(default_factory=lambda: _NOTHING, repr=False, compare=False)
    sealing: Sealing | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check that both functions are neither async nor generators."""
        must_be_plain(self.encode, "encode")
        must_be_plain(self.decode, "decode")

    def read(self, event: StoredEvent) -> E | None:
        """Decode an event as it was read; None if gone, a timer's or skipped; raise `UnknownType` if unknown.

        It is for what readers, reactions and read models receive. None if its type is unknown and `skips_unknown`, if
        it belongs to a timer, or if the feed says that it is gone.

        Args:
            event: event as it was read: `Recorded`, or `FeedEvent`.

        Raises:
            UnknownType: a type that the codec does not know.
            InvalidInput: its body was left in the bucket.
            CorruptData: its body does not fit its type.
        """
        if getattr(event, "gone", None) is not None or event.type in TIMERS:
            return None
        stored = _stored(event)
        decoded = must_be_done(self.decode(stored), "decode")
        if decoded is None and not self.skips_unknown:
            raise UnknownType(str(getattr(event, "stream", "")), stored.index, event.type)
        return decoded

    def tagged(self, event: E, *tags: str) -> Event:
        """Encode an event with tags, for a store of tagged events or for the answer of `decide`.

        Args:
            event: event of the domain.
            tags: tags of the stored event.

        Raises:
            InvalidInput: an event that the codec has no form for.
        """
        return replace(self.encode(event), tags=tags, untagged=event)

    def keeping(self) -> EventCodec[E | Stored]:
        """Return a codec that decodes events of unknown types as `Stored` instead of failing."""

        def encode(event: E | Stored) -> Event:
            """Encode an event; refuse one of a type that the codec does not know."""
            if isinstance(event, Stored):
                raise InvalidInput("events", f"the codec does not know the type {event.type}")
            return self.encode(event)

        def decode(stored: Stored) -> E | Stored:
            """Decode an event, or return it as `Stored` if its type is unknown."""
            decoded = must_be_done(self.decode(stored), "decode")
            return stored if decoded is None else decoded

        return EventCodec[E | Stored](
            encode=encode, decode=decode, classes=self.classes, sealing=self.sealing
        )


def _stored(event: StoredEvent) -> Stored:
    """Convert any layout's event into the form that codecs decode.

    An aggregate's events are counted from 1.
    """
    data, meta = event.data, getattr(event, "meta", b"")
    index = getattr(event, "index", getattr(event, "seq_nr", 0))
    return Stored(
        type=event.type,
        data=data.encode() if isinstance(data, str) else content_of(data),
        meta=meta.encode() if isinstance(meta, str) else b"" if isinstance(meta, Claim) else meta,
        timestamp=getattr(event, "timestamp", getattr(event, "occurred_at", "")),
        index=index,
        stream=getattr(event, "stream", ""),
    )


# Several classes are one type to a checker only if they are told apart here; else it takes what they have in common.
@overload
def json_codec(
    one: type[A], two: type[B], /, *, skips_unknown: bool = False, upcasts: Iterable[Upcast] = ()
) -> EventCodec[A | B]: ...


@overload
def json_codec(
    one: type[A],
    two: type[B],
    three: type[C],
    /,
    *,
    skips_unknown: bool = False,
    upcasts: Iterable[Upcast] = (),
) -> EventCodec[A | B | C]: ...


@overload
def json_codec(
    one: type[A],
    two: type[B],
    three: type[C],
    four: type[D],
    /,
    *,
    skips_unknown: bool = False,
    upcasts: Iterable[Upcast] = (),
) -> EventCodec[A | B | C | D]: ...


@overload
def json_codec(
    *types: type[E],
    named: Mapping[str, type[E]] | None = None,
    skips_unknown: bool = False,
    upcasts: Iterable[Upcast] = (),
) -> EventCodec[E]: ...


def json_codec(
    *types: type[E],
    named: Mapping[str, type[E]] | None = None,
    skips_unknown: bool = False,
    upcasts: Iterable[Upcast] = (),
) -> EventCodec[E]:
    """Build a codec that stores events of these classes as JSON objects.

    `deciders.type_hints` lists what fields of dataclasses and of attrs may be.

    Args:
        types: dataclasses, or classes of attrs, Pydantic or msgspec, each stored under its class's name.
        named: classes by the names under which they are stored. A class may have several, for what older programs
            wrote: the first is the one that is written.
        skips_unknown: whether events of unknown types are skipped instead of being an error.
        upcasts: steps that bring events of older versions to the current one (`upcast`). An event of a newer version
            than is known here is `CorruptData`, whatever `skips_unknown` says: to skip it would be to misread its type.

    Raises:
        TypeError: a field whose type has no form in JSON, a name that stands for two classes, or upcasts with a gap.
    """
    register = _register(types, named or {})
    forms = {kind: form_of(kind, event=True) for kind in register.values()}
    versions = versions_of(upcasts, register)
    classes = {name: StoredClass(name, kind, forms[kind], versions[name]) for name, kind in register.items()}
    written = {register[name]: kind for name, kind in reversed(classes.items())}

    def encode(event: E) -> Event:
        """Encode an event under the name of its class; refuse one of another class."""
        kind = written.get(type(event))
        if kind is None:
            raise InvalidInput("events", f"{type(event).__name__} is not registered with the codec")
        return Event(type=kind.name, data=kind.write(event))

    def decode(stored: Stored) -> E | None:
        """Decode a stored event; return None if its type is unknown."""
        kind = classes.get(stored.type)
        event: E | None = None if kind is None else kind.read(stored)
        return event

    return EventCodec(
        encode=encode,
        decode=decode,
        skips_unknown=skips_unknown,
        types=frozenset(classes),
        classes=MappingProxyType(classes),
    )


def _register(types: tuple[type[E], ...], classes_by_name: Mapping[str, type[E]]) -> dict[str, type[E]]:
    """Return classes by stored name; raise `TypeError` for a non-class, or two classes under one name."""
    register = dict(classes_by_name)
    for kind in types:
        if not isinstance(kind, type):
            raise TypeError(f"a codec takes classes, not {kind!r}")
        if register.setdefault(kind.__name__, kind) is not kind:
            raise TypeError(f"two classes are called {kind.__name__}; rename one with `named`")
    return register


class StoredClass(NamedTuple):
    """Events that are stored under one name: their class, how it is written, and its versions."""

    name: str
    kind: type
    form: ValueForm
    versions: Versions

    def write(self, event: object) -> bytes:
        """Encode an event as JSON, with any version mark; raise `InvalidInput` if a value cannot be stored."""
        name = f"events.{type(event).__name__}"
        try:
            return json.dumps(self.versions.mark(self.form.write(event)))
        except Mismatch as mismatch:
            raise InvalidInput(f"{name}.{mismatch.path}".rstrip("."), mismatch.with_value()) from None
        except (ValueError, TypeError) as error:
            unwritable = None if isinstance(error, json.TooDeep) else unwritable_in(event)
            if unwritable is None:
                raise InvalidInput(name, str(error)) from error
            raise InvalidInput(f"{name}.{unwritable.path}".rstrip("."), unwritable.with_value()) from None

    def read(self, stored: Stored) -> Any:
        """Decode a stored event, upcasting old versions; raise `CorruptData` if it does not fit its class."""
        try:
            if self.versions.steps or _MARK in stored.data:
                return self.form.read(self.versions.unmark(json.loads(stored.data)))
            return self.form.parse(stored.data)
        except ValueError as error:
            raise CorruptData(f"{stored.where}: {error}{_hint(error)}") from error


def _hint(error: ValueError) -> str:
    """Return advice for an error message if a class has a field that older events lack."""
    if not isinstance(error, Mismatch) or error.rule != MISSING:
        return ""
    return "; to read events stored before the field existed, give it a default, or add an upcast"


_MARK = json.dumps(VERSION)
