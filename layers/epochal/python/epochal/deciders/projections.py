"""Projections: questions about past events, each a query and a fold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar, overload

from epochal.deciders.codecs import EventCodec
from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass
from epochal.model.events import Recorded
from epochal.model.plain_functions import must_be_plain
from epochal.model.tags import Query, QueryItem

E = TypeVar("E")
S = TypeVar("S")


# No slots: a frozen, slotted, generic class cannot be called with its parameters, `X[Y](...)`, on Python 3.11.
@dataclass(frozen=True, kw_only=True)
class Projection(Generic[S]):
    """A question about past events: a query and a fold.

    Attributes:
        query: the query that selects the events that answer the question.
        initial: function that returns the answer before any event.
        evolve: function that returns the new answer, from the answer so far, which it must not change, and one more
            event.
    """

    query: Query
    initial: Callable[[], S]
    evolve: Callable[[S, Recorded], S]

    def __post_init__(self) -> None:
        """Check that the functions are neither async nor generators."""
        must_be_plain(self.initial, "initial")
        must_be_plain(self.evolve, "evolve")


@overload
def projection(
    *, tags: Sequence[str], on: Mapping[str, Callable[[S, Recorded], S]], initial: S
) -> Projection[S]: ...


@overload
def projection(
    *, tags: Sequence[str], codec: EventCodec[E], evolve: Callable[[S, E], S], initial: S
) -> Projection[S]: ...


def projection(
    *,
    tags: Sequence[str],
    initial: S,
    on: Mapping[str, Callable[[S, Recorded], S]] | None = None,
    codec: EventCodec[Any] | None = None,
    evolve: Callable[[S, Any], S] | None = None,
) -> Projection[S]:
    """Build a projection of the events with all `tags`, folded by a function per type or by a codec.

    Args:
        tags: tags that the events have.
        initial: the answer before any event.
        on: a function for each event type, which takes stored events.
        codec: decodes events into those of the domain instead. Only this codec's types are queried, so a small codec of
            its own, `json_codec` of a class or two, keeps the boundary of a decision small.
        evolve: with a codec, returns the answer after one more event.

    Raises:
        InvalidInput: neither `on` nor `codec` with `evolve`.
    """
    if codec is None:
        if on is None:
            raise InvalidInput("on", "must be given, unless `codec` and `evolve` are given")
        return _of_functions(tags, on, initial)
    if evolve is None or on is not None:
        raise InvalidInput("evolve", "must be given with `codec`, and `on` must not")
    must_be_plain(evolve, "evolve")
    item = QueryItem(types=codec.types, tags=tags)

    def typed(state: S, event: Recorded) -> S:
        """Decode an event and fold it into the state."""
        read = codec.read(event)
        return state if read is None else evolve(state, read)

    return Projection(query=Query(items=(item,)), initial=lambda: initial, evolve=typed)


def _of_functions(
    tags: Sequence[str], on: Mapping[str, Callable[[S, Recorded], S]], initial: S
) -> Projection[S]:
    """Build a projection from a function for each event type."""
    for kind, function in on.items():
        must_be_plain(function, f"on[{kind!r}]")
    item = QueryItem(types=on, tags=tags)
    return Projection(
        query=Query(items=(item,)),
        initial=lambda: initial,
        evolve=lambda state, event: on[event.type](state, event),
    )
