"""When a decision on an aggregate also stores its state, and how.

The first append always does. Afterwards a snapshot makes replays shorter; the events since it make them longer. The
head that holds it is written by every append, and paid for whole, whatever the policy: so a snapshot is left out to
save the work of making it, and what is sent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from epochal.codec import json
from epochal.codec.hints import shape_of
from epochal.codec.shapes import Mismatch
from epochal.errors import CorruptData, InvalidInput
from epochal.model.kinds import must_be_whole
from epochal.model.plain import must_be_plain
from epochal.plan.limits import BATCH_KEYS

S = TypeVar("S")


# No slots: a frozen, slotted, generic class cannot be called with its parameters, `X[Y](...)`, on Python 3.11.
@dataclass(frozen=True, kw_only=True)
class StateCodec(Generic[S]):
    """How a state is stored: as UTF-8 JSON, and back. What it restores must be the state it was given."""

    encode: Callable[[S], bytes]
    decode: Callable[[bytes], S]

    def __post_init__(self) -> None:
        """Refuse what nothing would await."""
        must_be_plain(self.encode, "encode")
        must_be_plain(self.decode, "decode")


@dataclass(frozen=True, kw_only=True)
class Since(Generic[S]):
    """What an append leaves after the snapshot if it stores none.

    Attributes:
        state: with the new events folded in.
        events: after the snapshot, the new ones included.
        size: bytes of their data.
    """

    state: S
    events: int
    size: int


Policy = Callable[[Since[Any]], bool]
"""Whether an append is to store a snapshot."""


def every(events: int) -> Policy:
    """A snapshot once so many events have come since the last; 1 for every append."""
    must_be_whole(events, "events", 1)
    return lambda since: since.events >= events


ONE_BATCH: Final = every(BATCH_KEYS)
"""The events after the snapshot can be read in one request, so that a replay is two."""


def by_size(size: int) -> Policy:
    """A snapshot once the events since the last have so many bytes."""
    must_be_whole(size, "size", 1)
    return lambda since: since.size >= size


def json_state(kind: type[S]) -> StateCodec[S]:
    """A codec of a dataclass as a JSON object; `codec.hints` lists what its fields may be.

    Raises:
        TypeError: a field whose type has no form in JSON.
    """
    shape = shape_of(kind)

    def encode(state: S) -> bytes:
        try:
            return json.dumps(shape.write(state))
        except Mismatch as mismatch:
            raise InvalidInput(f"snapshot.{mismatch.path}".rstrip("."), mismatch.rule) from None
        except (ValueError, TypeError) as error:
            raise InvalidInput("snapshot", str(error)) from error

    def decode(data: bytes) -> S:
        try:
            state: S = shape.read(json.loads(data))
        except ValueError as error:
            raise CorruptData(f"a snapshot of {kind.__name__}: {error}") from error
        return state

    return StateCodec(encode=encode, decode=decode)
