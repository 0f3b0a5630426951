"""What a tagged event says of itself, in the place of its metadata (FORMATS §8). This outlives the code.

    flags (1 byte)   number   tags   id (16)   user   page   metadata: encoding (1 byte), bytes

    number    of the event within its append
    tags      how many, and each: those besides the tag whose stream the page is of
    flags     1 the id is a caller's   2 there is a user   4 the body is elsewhere   8 there are metadata
              16 the data are text   32 so are the metadata
    page      where the body is: on the page of the first tag's stream that begins at this index

An id that the store chose is not stored: it follows from the append's stamp and the number.
"""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass
from typing import Final

from epochal.codec.bodies import DIRECT, EMPTY, Encoded
from epochal.errors import CorruptData
from epochal.layout.pages.frames import time_of
from epochal.layout.pages.values import ByteReader, Writer
from epochal.model.dcb import RANDOM_DIGITS, SortableId

_ID: Final = 1
_USER: Final = 2
_ELSEWHERE: Final = 4
_META: Final = 8
_DATA_TEXT: Final = 16
_META_TEXT: Final = 32
_ALL: Final = 63

_ID_BYTES: Final = 16
_NUMBER_DIGITS: Final = 5
"""Of a sortable id: an append has fewer events than these can tell apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What is said of an event.

    Attributes:
        others: its tags, without that of the stream.
        id: a caller's.
        page: where its body is, if that is not here.
    """

    number: int
    others: tuple[str, ...] = ()
    id: str | None = None
    user: str | None = None
    page: int | None = None
    meta: Encoded = EMPTY
    data_text: bool = False
    meta_text: bool = False

    def encoded(self) -> Encoded:
        """As stored."""
        out = Writer()
        given = (
            (_ID, self.id is not None),
            (_USER, self.user is not None),
            (_ELSEWHERE, self.page is not None),
        )
        kinds = ((_META, self.meta != EMPTY), (_DATA_TEXT, self.data_text), (_META_TEXT, self.meta_text))
        out.byte(sum(flag for flag, there in (*given, *kinds) if there))
        out.number(self.number)
        out.number(len(self.others))
        for tag in self.others:
            out.text(tag)
        if self.id is not None:
            out.add(uuid.UUID(self.id).bytes)
        if self.user is not None:
            out.text(self.user)
        if self.page is not None:
            out.number(self.page)
        if self.meta != EMPTY:
            out.byte(self.meta.encoding)
            out.add(self.meta.data)
        return Encoded(DIRECT, out.written())


def read_label(encoded: Encoded) -> Label:
    """The inverse. Raises `CorruptData`."""
    if encoded.encoding != DIRECT:
        raise CorruptData("what a tagged event says of itself is not as it is stored")
    source = ByteReader(encoded.data)
    flags = source.byte()
    if flags & ~_ALL:
        raise CorruptData(f"flags {flags:#x} mean nothing")
    label = Label(
        number=source.number(),
        others=tuple(source.text() for _ in range(source.number())),
        id=str(uuid.UUID(bytes=source.take(_ID_BYTES))) if flags & _ID else None,
        user=source.text() if flags & _USER else None,
        page=source.number() if flags & _ELSEWHERE else None,
        meta=Encoded(source.byte(), source.rest()) if flags & _META else EMPTY,
        data_text=bool(flags & _DATA_TEXT),
        meta_text=bool(flags & _META_TEXT),
    )
    if not source.at_end:
        raise CorruptData("something follows the last of it")
    return label


def event_id(stamp: bytes, label: Label) -> str:
    """The event's id: a caller's, or one that follows from its append and its number there."""
    if label.id is not None:
        return label.id
    digest = hashlib.sha256(stamp + label.number.to_bytes(4, "big")).digest()
    return str(uuid.UUID(bytes=digest[:_ID_BYTES], version=5))


def sortable_id_of(stamp: bytes, number: int) -> SortableId:
    """Its place: the append's time, what tells the append from others of that moment, its number there."""
    others = int.from_bytes(stamp[8:], "big") % 10 ** (RANDOM_DIGITS - _NUMBER_DIGITS)
    return SortableId(f"{time_of(stamp):019d}{others:06d}{number:0{_NUMBER_DIGITS}d}")
