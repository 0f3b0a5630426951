"""How payloads of the `journal` layout hold a type and its data: as one of event-store-adapter's libraries writes them.
The JavaScript library's form is here, the others' are in `bare`, which is loaded where one is named.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from epochal.codec.wrapped import unwrap, wrap
from epochal.errors import CorruptData, InvalidInput
from epochal.settings import PAYLOADS

_UNREADABLE: Final = (CorruptData, ValueError, TypeError, KeyError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One form of payload.

    Attributes:
        write: a payload from a type and its data; raises `InvalidInput` for data that it cannot hold.
        read: type, empty where it names none, and data; raises `ValueError` or `CorruptData` for another form.
    """

    write: Callable[[str, bytes], bytes]
    read: Callable[[bytes], tuple[str, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Serializer:
    """Payloads of one library.

    Attributes:
        name: by which errors call it.
        events, snapshots: the form of each. The type of a snapshot is its aggregate's.
        text: payloads are stored as text, not as bytes; either is read.
    """

    name: str
    events: Form
    snapshots: Form
    text: bool = False

    def event(self, payload: bytes) -> tuple[str, bytes]:
        """Type and data of an event; raises `CorruptData`."""
        return self._read(self.events, payload)

    def snapshot(self, payload: bytes) -> bytes:
        """Data of a snapshot; raises `CorruptData`."""
        return self._read(self.snapshots, payload)[1]

    def type_of(self, payload: bytes) -> str:
        """Type of an event; empty where it tells none that could be stored: JSON can hold half of a surrogate pair,
        UTF-8 cannot.
        """
        try:
            kind = self.events.read(payload)[0]
            kind.encode()
        except _UNREADABLE:
            return ""
        return kind

    def _read(self, form: Form, payload: bytes) -> tuple[str, bytes]:
        try:
            return form.read(payload)
        except _UNREADABLE as error:
            cause = str(error) or type(error).__name__
            raise CorruptData(
                f"a payload that the serializer {self.name!r} cannot read: {cause}; libraries write other forms, which "
                f"`serializer` chooses: {', '.join(PAYLOADS)}"
            ) from error


_WRAPPED: Final = Form(write=wrap, read=unwrap)

JAVASCRIPT: Final = Serializer(name="javascript", events=_WRAPPED, snapshots=_WRAPPED)
"""The default, and the JavaScript library's."""


def serializer_of(given: str | Serializer, field: str = "serializer") -> Serializer:
    """The serializer that a name stands for; raises `InvalidInput` of `field` for any other name."""
    if isinstance(given, Serializer):
        return given
    if given == JAVASCRIPT.name:
        return JAVASCRIPT
    if given not in PAYLOADS:
        raise InvalidInput(field, f"must be one of {', '.join(PAYLOADS)}, or a Serializer")
    from epochal.codec.bare import SERIALIZERS  # noqa: PLC0415  few need them, and functions start without

    return SERIALIZERS[given]
