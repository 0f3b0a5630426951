"""Snapshots of aggregates, sealed for the person whose data the state holds.

A snapshot stands beside events that are sealed, and holds what was in them. Once the person is forgotten it cannot be
read, and the state is made from the events, in which the codec has something else for the person. A state that has
something of a forgotten person in it is not stored: the snapshot is then `null`, and no state is read from it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from epochal.contrib.event_store_adapter.state_codecs import StateCodec
from epochal.contrib.subjects.sealing import Shredded, Subjects
from epochal.errors import CorruptData, EpochalError, InvalidInput, SubjectForgotten
from epochal.lazy_dataclasses import replace
from epochal.model.plain_functions import must_be_done, must_be_plain

S = TypeVar("S")

_NO_STATE: Final = b"null"


def sealed_state(
    codec: StateCodec[S], subjects: Subjects, *, subject_of: Callable[[S], str | None]
) -> StateCodec[S]:
    """Make a codec that encrypts states with the key of the person they are about, if there is one.

    Events are sealed by `sealed_codec`.

    Args:
        codec: codec of the states, as of `json_state(…)`.
        subjects: keys of the subjects.
        subject_of: function that returns the person whose data a state holds; None for nobody, whose state is stored as
            it is.

    Raises:
        InvalidInput: `subject_of` is no plain function.
    """
    must_be_plain(subject_of, "subject_of")

    def encode(state: S) -> bytes:
        """Encode a state, and seal it if it has a subject; return `null` if the subject is forgotten."""
        body = _encode_unquoted(codec, state)
        subject = must_be_done(subject_of(state), "subject_of")
        if subject is None:
            return body
        try:
            return subjects.seal(subject, body)
        except SubjectForgotten:
            return _NO_STATE

    def decode(data: bytes) -> S:
        """Unseal and decode a state; raise `ValueError` if its subject is forgotten."""
        body = subjects.unseal(data)
        if isinstance(body, Shredded) or data == _NO_STATE:
            raise ValueError("the state was sealed for a subject that is forgotten")
        return _decode_unquoted(codec, body)

    return replace(codec, encode=encode, decode=decode)


def _encode_unquoted(codec: StateCodec[S], state: S) -> bytes:
    """Encode a state with a codec whose errors may quote it; raise `InvalidInput` without the quotes.

    The quotes would outlive the key in logs and causes. So the codec's error is left out, and is not even the context
    of the new error, which is raised outside of `except` for that.
    """
    try:
        return must_be_done(codec.encode(state), "encode")
    except EpochalError as error:
        if not isinstance(error, InvalidInput):
            raise
    except Exception:  # noqa: BLE001, S110  # a codec of the user's own, which may raise and quote anything
        pass
    rule = "has a value that cannot be stored; encode it with the inner codec to see which"
    raise InvalidInput("snapshot", rule)


def _decode_unquoted(codec: StateCodec[S], body: bytes) -> S:
    """Decode an unsealed state with its codec; raise `CorruptData` that does not quote the state."""
    try:
        return codec.decode(body)
    except Exception:  # noqa: BLE001, S110  # a codec of the user's own, which may raise and quote anything
        pass
    raise CorruptData("a sealed snapshot does not match its class; unseal it to see why")
