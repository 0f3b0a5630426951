"""Codecs of states, which make snapshots of them and say what they were made with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from epochal.codec import json
from epochal.contrib.event_store_adapter.model import AggregateSnapshot
from epochal.deciders.fingerprints import fingerprint_of
from epochal.deciders.mismatch import Mismatch
from epochal.deciders.snapshot_marks import UNMARKED, check_version
from epochal.deciders.type_hints import shape_of
from epochal.errors import CorruptData, InvalidInput
from epochal.lazy_dataclasses import dataclass
from epochal.model.kinds import must_be, must_be_text
from epochal.model.plain_functions import must_be_plain

S = TypeVar("S")


# No slots: a frozen, slotted, generic class cannot be called with its parameters, `X[Y](...)`, on Python 3.11.
@dataclass(frozen=True, kw_only=True)
class StateCodec(Generic[S]):
    """Encodes a state as UTF-8 JSON for a snapshot, and decodes it to an equal state.

    Attributes:
        encode: function from a state to UTF-8 JSON.
        decode: function from UTF-8 JSON to the state; raises a `ValueError`, `TypeError`, `LookupError` or
            `AttributeError` for JSON that it cannot read, upon which the state is folded from all events.
        made_with: text of at most 64 bytes that changes with the form of the state, or with what the rules make of the
            events. A snapshot that has another text is not used. If it is empty, every snapshot is used that `decode`
            can read.
        trust_unmarked: whether to use also snapshots without a `made_with`, as other libraries write them.
    """

    encode: Callable[[S], bytes]
    decode: Callable[[bytes], S]
    made_with: str = ""
    trust_unmarked: bool = False

    def __post_init__(self) -> None:
        """Refuse functions that are async or generators, and a malformed `made_with`."""
        must_be_plain(self.encode, "encode")
        must_be_plain(self.decode, "decode")
        check_version(self.made_with, "made_with")
        must_be(bool, self.trust_unmarked, "trust_unmarked", "True or False")

    def misfit(self, snapshot: AggregateSnapshot) -> str | None:
        """Return why a snapshot cannot be used (another class or rules version made it), or None if it can.

        Args:
            snapshot: snapshot as it was read.
        """
        if not self.made_with or snapshot.made_with == self.made_with:
            return None
        if snapshot.made_with:
            return "its class, or the version of the rules, has changed since"
        return None if self.trust_unmarked else UNMARKED


def json_state(kind: type[S], *, version: str = "", trust_unmarked: bool = False) -> StateCodec[S]:
    """Make a codec of states of a dataclass as JSON objects, marked with the class's shape and `version`.

    `deciders.type_hints` lists what its fields may be. A snapshot is used as long as the class has the shape that the
    snapshot was made with; otherwise the state is made from the events.

    Args:
        kind: class of the states.
        version: version of the rules, at most 32 bytes. Change it if `evolve` or `initial` makes other states of the
            same class: snapshots of another version are not used.
        trust_unmarked: whether to use also snapshots that do not say what they were made with, as other libraries write
            them, as long as there is no `version`.

    Raises:
        TypeError: a field whose type has no form in JSON.
        InvalidInput: a version that is no short text.
    """
    shape = shape_of(kind)
    must_be(str, version, "version", "text")
    if version:
        must_be_text(version, 32, "version")

    def encode(state: S) -> bytes:
        """Encode a state as JSON; raise `InvalidInput` naming a field that does not fit the class."""
        try:
            return json.dumps(shape.write(state))
        except Mismatch as mismatch:
            raise InvalidInput(f"snapshot.{mismatch.path}".rstrip("."), mismatch.rule) from None
        except (ValueError, TypeError) as error:
            raise InvalidInput("snapshot", str(error)) from error

    def decode(data: bytes) -> S:
        """Decode a state from JSON; raise `CorruptData` if it does not fit the class."""
        try:
            state: S = shape.read(json.loads(data))
        except ValueError as error:
            raise CorruptData(f"a snapshot of {kind.__name__}: {error}") from error
        return state

    made_with = " ".join(filter(None, (fingerprint_of(kind), version)))
    return StateCodec(
        encode=encode, decode=decode, made_with=made_with, trust_unmarked=trust_unmarked and not version
    )
