"""One stream of each layout, written and read through the library or over HTTP: so that one check is asked of all.

An event is a number in `{"n": …}`. What a writer expects is opaque: `at` answers it, `append` takes it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, Literal, Protocol

from epochal.layout.registry import layouts_in
from epochal.model.events import Event
from epochal.model.tags import Query, QueryItem
from epochal.model.versions import ANY, NO_STREAM, Appended, Undetermined
from epochal.plugins import NATIVE
from epochal.proving.proof import CATEGORY, Broken, ProofRun
from epochal.store.streams import Streams
from epochal.store.tagged_store import TaggedStore

KIND: Final = "Proved"

_NEW: Final = "*"
"""Where a stream is that is not there yet."""

Outcome = Literal["made", "again", "refused"]
"""`again`: a repeat of its key, which wrote nothing."""


class ProofWriter(Protocol):
    """A stream.

    Attributes:
        label: its layout, and how it is reached.
        stream: what it is called in the feed.
    """

    label: str
    stream: str

    def at(self) -> Any:
        """Where it is now."""

    def append(self, numbers: Sequence[int], *, at: Any = None, key: str | None = None) -> Outcome:
        """Append an event for each number; None appends wherever it is."""

    def read(self) -> list[int]:
        """The numbers of its events, in order."""

    def remove(self) -> str:
        """Remove it; what is left of it."""


def writers_of(proof: ProofRun) -> Iterator[ProofWriter]:
    """Of each layout that the stage has, through the library and over HTTP."""
    store = proof.store
    for layout in layouts_in(store.settings):
        name = layout.name
        library, served = proof.name(f"{name}-library"), proof.name(f"{name}-http")
        if layout.plugin.streams:
            streams: Streams = getattr(store, layout.plugin.streams)
            path = f"/{layout.plugin.streams}/{served}"
            deletion = "" if streams.tombstones else "?leaveOpen=true"
            yield StreamWriter(f"{name} by the library", library, streams)
            yield NamedOverHttp(f"{name} over HTTP", served, proof, path, deletion=deletion)
        if layout.plugin.tagged:
            tag, tagged = f"{CATEGORY}:{proof.marker}-{name}", layout.plugin.tagged
            base = "" if name == NATIVE else f"/{tagged}"
            yield TaggedWriter(f"tags in {name} by the library", f"{tag}-library", getattr(store, tagged))
            yield TaggedOverHttp(f"tags in {name} over HTTP", f"{tag}-http", proof, base)
        if (writers := layout.part("proofs")) is not None:
            yield from writers(proof, library, served)


@dataclass
class StreamWriter:
    """A named stream."""

    label: str
    stream: str
    store: Streams

    def at(self) -> Any:  # noqa: D102  as of `Writer`, and so below
        found = self.store.load(self.stream, fetch=False)
        return NO_STREAM if found is None else found.token

    def append(self, numbers: Sequence[int], *, at: Any = None, key: str | None = None) -> Outcome:  # noqa: D102
        events = [Event(type=KIND, data=body(number)) for number in numbers]
        made = self.store.try_append(self.stream, events, expected=at or ANY, idempotency_key=key)
        if isinstance(made, Undetermined):
            raise Broken(f"{self.stream}: nobody knows whether an append was made")
        return outcome(made=isinstance(made, Appended), replayed=getattr(made, "replayed", False))

    def read(self) -> list[int]:  # noqa: D102
        return [event.json()["n"] for event in self.store.read(self.stream)]

    def remove(self) -> str:  # noqa: D102
        done = self.store.delete(self.stream, leave_open=not self.store.tombstones)
        while not done.done:
            done = self.store.prune(self.stream, done.low_water, unarchived=True) or done
        return _tombstone(self.stream)


@dataclass
class TaggedWriter:
    """A tag."""

    label: str
    stream: str
    store: TaggedStore

    def _query(self) -> Query:
        return Query(items=(QueryItem(tags=frozenset({self.stream})),))

    def at(self) -> Any:  # noqa: D102
        return self.store.read(self._query()).position

    def append(self, numbers: Sequence[int], *, at: Any = None, key: str | None = None) -> Outcome:  # noqa: D102
        events = [
            Event(type=KIND, data=body(number), tags=(self.stream,), id=_event_id(key, number))
            for number in numbers
        ]
        made = self.store.try_append(events, fail_if=None if at is None else self._query(), after=at)
        return outcome(made=hasattr(made, "replayed"), replayed=getattr(made, "replayed", False))

    def read(self) -> list[int]:  # noqa: D102
        return [event.json()["n"] for event in self.store.read(self._query()).events]

    def remove(self) -> str:  # noqa: D102
        return kept(self.stream)


@dataclass
class NamedOverHttp:
    """A named stream or an aggregate, over HTTP.

    Attributes:
        more: of the document of an append.
        deletion: the query of its deletion; None where it cannot be deleted.
        left_out: why the API of this stage does not serve it; empty where it does.
    """

    label: str
    stream: str
    proof: ProofRun
    path: str
    more: Mapping[str, Any] = field(default_factory=dict)
    deletion: str | None = None
    left_out: str = ""

    def at(self) -> Any:  # noqa: D102
        answer = self.proof.call("GET", self.path)
        if answer.status == HTTPStatus.NOT_FOUND:
            return _NEW
        if answer.status != HTTPStatus.OK:
            raise Broken(f"GET {self.path} was answered {answer}")
        return answer.headers["etag"]

    def append(self, numbers: Sequence[int], *, at: Any = None, key: str | None = None) -> Outcome:  # noqa: D102
        events = [{"type": KIND, "data": {"n": number}} for number in numbers]
        expected = {} if at is None else {"If-None-Match": "*"} if at == _NEW else {"If-Match": at}
        headers = expected | ({"Idempotency-Key": key} if key else {})
        return _posted(self.proof, f"{self.path}/events", {"events": events, **self.more}, headers)

    def read(self) -> list[int]:  # noqa: D102
        found, start = list[int](), ""
        while True:
            answer = self.proof.call("GET", f"{self.path}/events{start}")
            if answer.status != HTTPStatus.OK:
                raise Broken(f"GET {self.path}/events was answered {answer}")
            found += [each["data"]["n"] for each in answer.json["events"]]
            if answer.json["next"] is None:
                return found
            start = f"?from={answer.json['next']}"

    def remove(self) -> str:  # noqa: D102
        if self.deletion is None:
            return kept(self.stream)
        while True:
            answer = self.proof.call("DELETE", self.path + self.deletion)
            if answer.status != HTTPStatus.OK:
                return f"{self.stream}: all of it: its deletion was answered {answer}"
            if answer.json["done"]:
                return _tombstone(self.stream)


@dataclass
class TaggedOverHttp:
    """A tag, over HTTP."""

    label: str
    stream: str
    proof: ProofRun
    base: str
    _query: Mapping[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self._query = {"items": [{"tags": [self.stream]}]}

    def _ask(self, method: str, path: str, body: Any) -> Any:
        answer = self.proof.call(method, f"{self.base}{path}", body)
        if answer.status != HTTPStatus.OK:
            raise Broken(f"{method} {self.base}{path} was answered {answer}")
        return answer.json

    def _pages(self) -> Iterator[Any]:
        sent: dict[str, Any] = {"query": self._query}
        path = "/query" if self.base else "/events/query"
        while True:
            page = self._ask("POST", path, sent)
            yield page
            if page["next"] is None:
                return
            sent["from"] = page["next"]

    def at(self) -> Any:  # noqa: D102
        return [page["position"] for page in self._pages()][-1]

    def append(self, numbers: Sequence[int], *, at: Any = None, key: str | None = None) -> Outcome:  # noqa: D102
        events = [
            {"type": KIND, "data": {"n": number}, "tags": [self.stream]}
            | ({"id": _event_id(key, number)} if key else {})
            for number in numbers
        ]
        condition = {"failIf": self._query, "after": at} if at else {}
        return _posted(self.proof, f"{self.base}/events", {"events": events, **condition}, {})

    def read(self) -> list[int]:  # noqa: D102
        return [event["data"]["n"] for page in self._pages() for event in page["events"]]

    def remove(self) -> str:  # noqa: D102
        return kept(self.stream)


def body(number: int) -> bytes:
    """The data of an event."""
    return b'{"n":%d}' % number


def _tombstone(stream: str) -> str:
    return f"{stream}: a tombstone, and its entries in the index"


def kept(stream: str) -> str:
    """What is left of a stream that cannot be deleted."""
    return f"{stream}: its events, which cannot be deleted, and their entries in the index"


def _event_id(key: str | None, number: int) -> str | None:
    """Repeats of tagged events are known by their ids."""
    return None if key is None else str(uuid.uuid5(uuid.UUID(key), str(number)))


def outcome(*, made: bool, replayed: bool) -> Outcome:
    """What an append came to."""
    return ("again" if replayed else "made") if made else "refused"


def _posted(proof: ProofRun, path: str, body: Any, headers: Mapping[str, str]) -> Outcome:
    answer = proof.call("POST", path, body, headers=headers)
    if answer.status in (HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED):
        return "refused"
    if answer.status != HTTPStatus.CREATED:
        raise Broken(f"POST {path} was answered {answer}")
    capacity = answer.json["capacity"]
    proof.used.update(
        {"write units": round(float(capacity["write"])), "read units": round(float(capacity["read"]))}
    )
    return outcome(made=True, replayed=answer.json["replayed"])
