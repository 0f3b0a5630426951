"""Errors go from one process to another whole: a worker that raises one must not break the pool that it works for."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator

import pytest

import epochal
from epochal import errors
from epochal.contrib.equinox import memory_tips
from epochal.contrib.sekiban import memory_dcb_events
from epochal.errors import EpochalError
from epochal.model.events import Event
from epochal.model.expected_version import NO_STREAM
from epochal.model.tags import Query, QueryItem


def sent(error: EpochalError) -> EpochalError:
    """The error as another process gets it."""
    twin: EpochalError = pickle.loads(pickle.dumps(error))  # noqa: S301  # our own bytes
    return twin


def kinds(root: type[EpochalError] = EpochalError) -> Iterator[type[EpochalError]]:
    """Every error there is."""
    yield root
    for kind in root.__subclasses__():
        if kind.__module__ == errors.__name__:
            yield from kinds(kind)


def made(kind: type[EpochalError]) -> EpochalError:
    """An error of a kind, each of its arguments another number."""
    code = kind.__init__.__code__ if kind.__init__ is not Exception.__init__ else None
    names = code.co_varnames[1 : code.co_argcount] if code is not None else ("message",)
    return kind(*range(1, len(names) + 1))


@pytest.mark.parametrize("kind", list(kinds()), ids=lambda kind: kind.__name__)
def test_every_error_is_pickled_and_copied_with_its_words_and_fields(kind: type[EpochalError]) -> None:
    error = made(kind)

    for twin in (sent(error), copy.copy(error)):
        assert type(twin) is kind
        assert (str(twin), twin.args, vars(twin)) == (str(error), error.args, vars(error))


def test_a_conflict_takes_its_outcome_along() -> None:
    streams, tagged = memory_tips(), memory_dcb_events()
    tagged.append([Event(type="Made", tags=("a:1",))])
    asked = Query(items=(QueryItem(tags=frozenset({"a:1"})),))
    streams.append("a-1", [Event(type="Made", data=b"{}")])

    with pytest.raises(epochal.ConflictError) as of_stream:
        streams.append("a-1", [Event(type="Made", data=b"{}")], expected=NO_STREAM)
    with pytest.raises(epochal.ConflictError) as of_tags:
        tagged.append([Event(type="Made", tags=("a:1",))], fail_if=asked)

    for error in (of_stream.value, of_tags.value):
        assert error.outcome is not None
        assert vars(sent(error))["outcome"] == error.outcome
