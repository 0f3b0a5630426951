"""One stream of each layout, written and read through the library or over HTTP, so that one check serves for all.

An event is a number in `{"n": …}`. The expected version is opaque: `at` returns it, `append` takes it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, Literal, Protocol

from epochal.contrib.proving.proof import CATEGORY, Broken, ProofRun
from epochal.layout.registry import layouts_in
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.events import Event
from epochal.model.expected_version import ANY, NO_STREAM
from epochal.model.outcomes import Appended, Undetermined
from epochal.model.tags import Query, QueryItem
from epochal.plugins import NATIVE
from epochal.store.streams import Streams
from epochal.store.tagged import TaggedStore

KIND: Final = "Proved"

_NEW: Final = "*"
"""Version over HTTP of a stream that does not exist yet."""

Outcome = Literal["made", "again", "refused"]
"""Outcome of an append; `again` is a repeat of an idempotency key, which wrote nothing."""


class ProofWriter(Protocol):
    """A stream that a check writes, reads and removes.

    Attributes:
        label: layout of the stream and how it is reached, for reports.
        stream: name of the stream in the feed.
    """

    label: str
    stream: str

    def at(self) -> Any:
        """Return the current version or position of the stream, for `append` to expect."""

    def append(self, numbers: Sequence[int], *, state: Any = None, key: str | None = None) -> Outcome:
        """Append an event for each number; with None for `state` at any version."""

    def read(self) -> list[int]:
        """Return the numbers of the stream's events, in order."""

    def remove(self) -> str:
        """Remove the stream, and return in words what is left of it."""


def writers_of(proof: ProofRun) -> Iterator[ProofWriter]:
    """Yield writers of a stream in each layout of the stage, through the library and over HTTP."""
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
        if layout.plugin.open_writers is not None:
            yield from layout.plugin.open_writers(proof, library, served)


@dataclass
class StreamWriter:
    """Writer of a named stream through the library."""

    label: str
    stream: str
    store: Streams

    def at(self) -> Any:
        """Return a token of the stream's version, `NO_STREAM` where there is no stream."""
        state = self.store.load(self.stream, events=False)
        return NO_STREAM if state is None else state.token

    def append(self, numbers: Sequence[int], *, state: Any = None, key: str | None = None) -> Outcome:
        """Append an event for each number, at the version `state` if given; return the outcome.

        Raises:
            Broken: the outcome is undetermined.
        """
        events = [Event(type=KIND, data=body(number)) for number in numbers]
        answer = self.store.try_append(self.stream, events, expected=state or ANY, idempotency_key=key)
        if isinstance(answer, Undetermined):
            raise Broken(f"{self.stream}: it is unknown whether an append was applied")
        return outcome(applied=isinstance(answer, Appended), replayed=getattr(answer, "replayed", False))

    def read(self) -> list[int]:
        """Return the numbers of the stream's events, in order."""
        return [event.json()["n"] for event in self.store.read(self.stream)]

    def remove(self) -> str:
        """Delete the stream, and return in words what is left: a tombstone and index entries."""
        pruned = self.store.delete(self.stream, leave_open=not self.store.tombstones)
        while not pruned.done:
            pruned = self.store.prune(self.stream, pruned.low_water, unarchived=True) or pruned
        return _tombstone(self.stream)


@dataclass
class TaggedWriter:
    """Writer of the events of a tag through the library."""

    label: str
    stream: str
    store: TaggedStore

    def _query(self) -> Query:
        """Make the query for the events with the tag."""
        return Query(items=(QueryItem(tags=frozenset({self.stream})),))

    def at(self) -> Any:
        """Return the position of the query for the tag."""
        return self.store.read(self._query()).position

    def append(self, numbers: Sequence[int], *, state: Any = None, key: str | None = None) -> Outcome:
        """Append a tagged event per number, with `state` only if none came after it; return the outcome."""
        events = [
            Event(type=KIND, data=body(number), tags=(self.stream,), id=_event_id(key, number))
            for number in numbers
        ]
        answer = self.store.try_append(events, fail_if=None if state is None else self._query(), after=state)
        return outcome(applied=hasattr(answer, "replayed"), replayed=getattr(answer, "replayed", False))

    def read(self) -> list[int]:
        """Return the numbers of the events with the tag, in order."""
        return [event.json()["n"] for event in self.store.read(self._query()).events]

    def remove(self) -> str:
        """Remove nothing, and say so in words: tagged events cannot be deleted."""
        return kept(self.stream)


@dataclass
class NamedOverHttp:
    """Writer of a named stream or an aggregate over HTTP.

    Attributes:
        path: path of the stream in the API.
        more: further members of the document of an append.
        deletion: query of the request that deletes the stream; None where it cannot be deleted.
        left_out: reason why the API of this stage does not serve the stream; empty where it does.
    """

    label: str
    stream: str
    proof: ProofRun
    path: str
    more: Mapping[str, Any] = field(default_factory=dict)
    deletion: str | None = None
    left_out: str = ""

    def at(self) -> Any:
        """Return the ETag of the stream; `_NEW` where there is no stream.

        Raises:
            Broken: the request fails.
        """
        answer = self.proof.call("GET", self.path)
        if answer.status == HTTPStatus.NOT_FOUND:
            return _NEW
        if answer.status != HTTPStatus.OK:
            raise Broken(f"GET {self.path} returned {answer}")
        return answer.headers["etag"]

    def append(self, numbers: Sequence[int], *, state: Any = None, key: str | None = None) -> Outcome:
        """Post an event for each number, with `state` as the expected version and `key` for idempotency."""
        events = [{"type": KIND, "data": {"n": number}} for number in numbers]
        expected = {} if state is None else {"If-None-Match": "*"} if state == _NEW else {"If-Match": state}
        headers = expected | ({"Idempotency-Key": key} if key else {})
        return _posted(self.proof, f"{self.path}/events", {"events": events, **self.more}, headers)

    def read(self) -> list[int]:
        """Read all pages of the stream, and return the numbers of its events in order.

        Raises:
            Broken: a request fails.
        """
        numbers, start = list[int](), ""
        while True:
            answer = self.proof.call("GET", f"{self.path}/events{start}")
            if answer.status != HTTPStatus.OK:
                raise Broken(f"GET {self.path}/events returned {answer}")
            numbers += [event["data"]["n"] for event in answer.json["events"]]
            if answer.json["next"] is None:
                return numbers
            start = f"?from={answer.json['next']}"

    def remove(self) -> str:
        """Delete the stream, unless it cannot be deleted, and return in words what is left of it."""
        if self.deletion is None:
            return kept(self.stream)
        while True:
            answer = self.proof.call("DELETE", self.path + self.deletion)
            if answer.status != HTTPStatus.OK:
                return f"{self.stream}: all of it, because its deletion returned {answer}"
            if answer.json["done"]:
                return _tombstone(self.stream)


@dataclass
class TaggedOverHttp:
    """Writer of the events of a tag over HTTP."""

    label: str
    stream: str
    proof: ProofRun
    base: str
    _query: Mapping[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self._query = {"items": [{"tags": [self.stream]}]}

    def _ask(self, method: str, path: str, body: Any) -> Any:
        """Send a request to the API and return the response's JSON; raise `Broken` unless the status is 200.

        Raises:
            Broken: the status is not 200.
        """
        answer = self.proof.call(method, f"{self.base}{path}", body)
        if answer.status != HTTPStatus.OK:
            raise Broken(f"{method} {self.base}{path} returned {answer}")
        return answer.json

    def _pages(self) -> Iterator[Any]:
        """Yield the pages of the query for the tag."""
        sent: dict[str, Any] = {"query": self._query}
        path = "/query" if self.base else "/events/query"
        while True:
            page = self._ask("POST", path, sent)
            yield page
            if page["next"] is None:
                return
            sent["from"] = page["next"]

    def at(self) -> Any:
        """Return the position on the last page of the query for the tag."""
        return [page["position"] for page in self._pages()][-1]

    def append(self, numbers: Sequence[int], *, state: Any = None, key: str | None = None) -> Outcome:
        """Post a tagged event per number, with `state` only if none came after it; return the outcome."""
        events = [
            {"type": KIND, "data": {"n": number}, "tags": [self.stream]}
            | ({"id": _event_id(key, number)} if key else {})
            for number in numbers
        ]
        condition = {"failIf": self._query, "after": state} if state else {}
        return _posted(self.proof, f"{self.base}/events", {"events": events, **condition}, {})

    def read(self) -> list[int]:
        """Return the numbers of the events with the tag, in order."""
        return [event["data"]["n"] for page in self._pages() for event in page["events"]]

    def remove(self) -> str:
        """Remove nothing, and say so in words: tagged events cannot be deleted."""
        return kept(self.stream)


def body(number: int) -> bytes:
    """Return the data of an event as JSON that holds its number."""
    return b'{"n":%d}' % number


def _tombstone(stream: str) -> str:
    return f"{stream}: a tombstone, and its entries in the index"


def kept(stream: str) -> str:
    """Say in words what is left of a stream that cannot be deleted."""
    return f"{stream}: its events, which cannot be deleted, and their entries in the index"


def _event_id(key: str | None, number: int) -> str | None:
    """Make the id of a tagged event from an idempotency key and its number; None without a key.

    Repeats of tagged events are recognised by their ids.
    """
    return None if key is None else str(uuid.uuid5(uuid.UUID(key), str(number)))


def outcome(*, applied: bool, replayed: bool) -> Outcome:
    """Return the outcome of an append that was made or not, and that was a repeat of its key or not."""
    return ("again" if replayed else "made") if applied else "refused"


def _posted(proof: ProofRun, path: str, body: Any, headers: Mapping[str, str]) -> Outcome:
    """Post an append to a path of the API, meter its capacity, and return its outcome.

    Raises:
        Broken: the status is neither 201 nor that of a conflict.
    """
    answer = proof.call("POST", path, body, headers=headers)
    if answer.status in (HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED):
        return "refused"
    if answer.status != HTTPStatus.CREATED:
        raise Broken(f"POST {path} returned {answer}")
    capacity = answer.json["capacity"]
    proof.used.update(
        {"write units": round(float(capacity["write"])), "read units": round(float(capacity["read"]))}
    )
    return outcome(applied=True, replayed=answer.json["replayed"])
