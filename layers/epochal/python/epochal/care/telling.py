"""What of an event tells of a person, and what is only how its category's events are written.

A dictionary is kept for ever (FORMATS §8), so nothing that a person could be told by may be in it. No rule knows a name
from a word, so each kind of text has a rule of its own, and what no rule lets through is blanked:

    schema    types, names of members, punctuation, `true`, `false`, `null`, how dates are written
    word      of a value: a word in lower case, or a code of up to three capitals; no rarer than `training` says
    blank     all else: numbers, whatever has a digit, an `@` or a dot in it, capital letters, scripts without case

Blank, too, is every value of a member whose name says that it is a person's (`PERSONAL`); every word that is part of a
blank value or of a stream's id, wherever else it occurs; and a name of a member that few objects of its place have,
since that is a map, whose names are values.

Whose an event is, its values say: those of one customer have his number, address and phone in common. They are links:
streams that share one are of one holder, as those are that share a subject.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from epochal.lazy_dataclasses import dataclass, field

SCHEMA: Final = 0
WORD: Final = 1
BLANK: Final = 2

_PERSONAL: Final = """
    account actor address adr agent applicant approver assigned assignee attendee attendees author avatar
    bearer beneficiary bic billing birth birthday birthdate born buyer by caller candidate card cashier
    cell child claimant client clerk coach colleague contact counsel courier creator creditor customer
    debtor defendant director dob doctor driver editor email employee employer executive father fax
    firstname forename friend fullname gender guardian guest guests handle holder husband iban initials
    inspector ip judge lastname lawyer login mail manager member members mentor mobile mother name names
    nick nickname nurse officer operator owner parent participant participants partner passenger
    passengers passport patient payee payer person phone pilot plaintiff plate player postal postcode
    processor recipient referrer reporter representative requester requestor resident reviewer salutation
    secretary sender seller signature signed sold spouse ssn staff street student subject submitter
    subscriber supervisor surname tax teacher technician tel telephone tenant traveler traveller user
    userid username vat vendor visitor wife witness witnesses worker zip zipcode anschrift adresse
    bearbeiter benutzer fahrer kunde kundin kunden nachname strasse straße telefon vorname apellido calle
    cliente correo nombre nom prenom prénom rue cognome indirizzo nome
"""
PERSONAL: Final = frozenset(_PERSONAL.split())
"""Words of which one in a member's name, or in that of what holds it, makes its values blank."""

RARE_MEMBER: Final = 4
"""A name that not one in so many objects of its place has is a map's, and so a value."""

_STREAM_PART: Final = 8
"""Characters of a part of a stream's id from which on streams that share it are of one holder."""

_LONG_NUMBER: Final = 6
"""Digits of a phone number, an IBAN or an id at least."""

_LEX: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*|[a-z]+|.', re.DOTALL)
_TOKEN: Final = re.compile(rb"[A-Za-z_\x80-\xff]+|[0-9]+|[^A-Za-z0-9_\x80-\xff]", re.DOTALL)
_CHUNK: Final = re.compile(rb"[ ]|[^ ]+")
_MOMENT: Final = re.compile(
    rb"[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?(Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
_YEAR: Final = 4
_PART: Final = re.compile(r"[^\W\d_]{2,}")
_SHORT: Final = 2
_CODE: Final = re.compile(rb"[A-Z]{2,3}")
_DIGIT: Final = re.compile(rb"[0-9]")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-zÀ-ÿ]+")


class Piece(NamedTuple):
    """A piece of an event as it is stored.

    Attributes:
        role: `SCHEMA`, `WORD` or `BLANK`.
        member: the place and name of the member whose name this is part of.
    """

    text: bytes
    role: int
    member: tuple[str, str] | None = None


class Link(NamedTuple):
    """A value that may say whose a stream is.

    Attributes:
        place: names of members down to it.
        sure: it may be a person's by its place or its form; others are where they differ from stream to stream.
    """

    place: str
    value: str
    sure: bool


@dataclass(slots=True)
class Told:
    """An event's tokens, and what they tell of whose it is.

    Attributes:
        objects: places of its objects, to know how many of them have a member.
        names: words that are part of blank values, in lower case.
    """

    tokens: list[Piece] = field(default_factory=list)
    links: set[Link] = field(default_factory=set)
    objects: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def framing(self, text: bytes) -> None:
        """Bytes of a frame about what follows."""
        self.tokens += (Piece(bytes([each]), SCHEMA) for each in text)

    def schema(self, text: bytes) -> None:
        """A type, or a time: its digits alone are blank."""
        self.tokens += (Piece(each, BLANK if each.isdigit() else SCHEMA) for each in _TOKEN.findall(text))

    def body(self, text: bytes, where: str) -> None:
        """A body, which is JSON.

        Args:
            where: the event's type, or what else tells its places from those of other bodies.
        """
        path: list[str] = []
        in_objects: list[bool] = []
        name_next = False
        for match in _LEX.finditer(text):
            lexeme = match.group()
            mark = lexeme[:1]
            if mark == b'"' and name_next:
                path[-1] = _text(lexeme[1:-1])
                self._name(lexeme, f"{where}/{'/'.join(path[:-1])}", path[-1])
                name_next = False
            elif mark == b'"':
                self._string(lexeme[1:-1], path)
            elif mark in b"-0123456789":
                self.tokens.append(Piece(lexeme, BLANK))
                self._link(path, lexeme, person=_is_personal(path))
            else:
                self.tokens.append(Piece(lexeme, SCHEMA))
            if mark in b"{[":
                path.append("")
                in_objects.append(mark == b"{")
                if mark == b"{":
                    self.objects.append(f"{where}/{'/'.join(path[:-1])}")
            elif mark in b"}]":
                path.pop()
                in_objects.pop()
            if mark in b"{,":
                name_next = bool(in_objects) and in_objects[-1]

    def of_stream(self, stream: str) -> None:
        """What the name of its stream says."""
        _, _, name = stream.partition("-")
        for part in re.split(r"[^\w]+|_", name):
            self.names.update(_names(part))
            if len(part) >= _STREAM_PART:
                self.links.add(Link("$stream", part.lower(), sure=True))

    def _name(self, lexeme: bytes, place: str, name: str) -> None:
        self.tokens.append(Piece(b'"', SCHEMA))
        for each in _TOKEN.findall(lexeme[1:-1]):
            self.tokens.append(Piece(each, BLANK if each.isdigit() else SCHEMA, (place, name)))
        self.tokens.append(Piece(b'"', SCHEMA))

    def _string(self, inner: bytes, path: list[str]) -> None:
        person = _is_personal(path)
        self.tokens.append(Piece(b'"', SCHEMA))
        for chunk in _CHUNK.findall(inner):
            if chunk == b" ":
                self.tokens.append(Piece(chunk, SCHEMA))
            elif person:
                self._blank(chunk)
            elif _MOMENT.fullmatch(chunk):
                self.tokens.append(Piece(chunk[:_YEAR], WORD))
                self.schema(chunk[_YEAR:])
            elif _CODE.fullmatch(chunk) or _is_lower(chunk):
                self.tokens += (Piece(each, WORD) for each in _TOKEN.findall(chunk))
            else:
                self._blank(chunk)
        self.tokens.append(Piece(b'"', SCHEMA))
        if inner:
            self._link(path, inner, person=person)

    def _blank(self, chunk: bytes) -> None:
        self.tokens.append(Piece(chunk, BLANK))
        self.names.update(_names(_text(chunk)))

    def _link(self, path: list[str], value: bytes, *, person: bool) -> None:
        text = _text(value)
        named = sum(word[:1].isupper() for word in text.split()) > 1
        form = named or b"@" in value or len(_DIGIT.findall(value)) >= _LONG_NUMBER
        sure = person or (form and not _MOMENT.match(value))
        self.links.add(Link("/".join(path), text.lower(), sure))


def blanked(told: Iterable[Told]) -> list[list[Piece]]:
    """The tokens of events of a category, with what only all of them together tell to be a value made blank."""
    events = list(told)
    objects = Counter(place for each in events for place in each.objects)
    having = Counter(
        member for each in events for member in {token.member for token in each.tokens} if member is not None
    )
    maps = {member for member, count in having.items() if count * RARE_MEMBER < objects[member[0]]}
    names = {name for each in events for name in each.names}
    names.update(word for _, name in maps for word in _names(name))
    return [[_strict(token, maps, names) for token in each.tokens] for each in events]


def _strict(token: Piece, maps: set[tuple[str, str]], names: set[str]) -> Piece:
    named = token.role == WORD and not names.isdisjoint(_words(_text(token.text)))
    return Piece(token.text, BLANK) if named or token.member in maps else token


class Holders:
    """Of streams, how many holders they have, as links say.

    A holder has several streams. Counted are streams no two of which share a link of the same place, and of all places
    the one counts by which they are fewest. So a value that comes with the same phone number in all of its streams has
    one holder, though the streams be eight.
    """

    def __init__(self, links: Mapping[str, Iterable[Link]], least: int) -> None:
        """
        Args:
            links: of each stream.
            least: values from which on those of a place tell holders apart, where neither name nor form says so.
        """
        by_place: dict[str, dict[str, set[str]]] = {}
        sure: set[str] = set()
        for stream, of_stream in links.items():
            for link in of_stream:
                by_place.setdefault(link.place, {}).setdefault(stream, set()).add(link.value)
                if link.sure:
                    sure.add(link.place)
        self._known: dict[tuple[frozenset[str], int], bool] = {}
        self._places: list[tuple[int, dict[str, set[str]]]] = []
        for place, values in by_place.items():
            counts = Counter(value for of_stream in values.values() for value in of_stream)
            telling = {value for value, count in counts.items() if 1 < count <= len(links) / 2}
            kept = {stream: found & telling for stream, found in values.items() if found & telling}
            varying = sum(len(found) > 1 for found in values.values()) * 4 > len(values)
            if kept and (place in sure or (len(counts) >= least and not varying)):
                self._places.append((_apart(links, kept), kept))

    def are(self, streams: Collection[str], wanted: int) -> bool:
        """Whether streams have so many holders; of a place that has few of them, three in four are enough."""
        if len(streams) < wanted:
            return False
        asked = frozenset(streams), wanted
        if asked not in self._known:
            self._known[asked] = all(
                _apart(streams, values) >= min(wanted, max(2, count * 3 // 4))
                for count, values in self._places
            )
        return self._known[asked]


def _apart(streams: Iterable[str], values: Mapping[str, set[str]]) -> int:
    """Streams no two of which share a value, as many as are found in one pass; one without a value is by itself."""
    count, met = 0, set[str]()
    for stream in sorted(streams):
        of_stream = values.get(stream)
        if of_stream is None or met.isdisjoint(of_stream):
            count += 1
        if of_stream is not None:
            met |= of_stream
    return count


def _is_personal(path: Iterable[str]) -> bool:
    words = (word.lower() for name in path for word in _CAMEL.split(name))
    return any(word in PERSONAL or word.removesuffix("s") in PERSONAL for word in words)


def _is_lower(chunk: bytes) -> bool:
    """Whether it is words in lower case, with what is written at their ends and between them."""
    text = _text(chunk)
    inner = text.strip(".,;:!?()'")
    return not any(
        each.isdigit() or each in "@.\\" or (each.isalpha() and not each.islower()) for each in inner
    )


def _names(text: str) -> Iterator[str]:
    """Words that may be names. Of what has digits, as an IBAN or a flight's number, and behind an `@`, two letters are
    none: they would make the codes of countries blank.
    """
    name, _, rest = text.partition("@")
    short = not any(map(str.isdigit, name))
    yield from (word for word in _words(name) if short or len(word) > _SHORT)
    yield from (word for word in _words(rest) if len(word) > _SHORT)


def _words(text: str) -> Iterator[str]:
    return (match.group().lower() for match in _PART.finditer(text))


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
