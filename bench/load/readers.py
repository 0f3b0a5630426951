"""Who reads while others write: states and events as they stand, and the feed as it grows."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import quote

from bench.load.aggregate_writers import path
from bench.load.api import Answer, Api
from bench.load.ledger import Ledger
from bench.load.measures import Lag

WAIT_SECONDS = 1
"""Of a long poll: short, so that following ends soon after it is told to."""


@dataclass(slots=True, kw_only=True)
class Reader:
    """Reads streams, aggregates and tags, and checks that they contain everything acknowledged before the read."""

    api: Api
    ledger: Ledger
    streams: Sequence[str]
    aggregates: Sequence[str]
    tags: Sequence[str]
    luck: random.Random

    def step(self) -> None:
        """Make one read."""
        self.luck.choice((self._state, self._page, self._aggregate, self._tag))()

    def _state(self) -> None:
        stream, least = self._chosen(self.streams)
        answer = self.api("stream: state", "GET", _stream(stream))
        self._hold(stream, least, answer, "version")

    def _page(self) -> None:
        stream, least = self._chosen(self.streams)
        query = {"direction": "backward", "limit": self.luck.choice((1, 10, 100))}
        answer = self.api("stream: read", "GET", f"{_stream(stream)}/events", query=query)
        self._hold(stream, least, answer, "version")

    def _aggregate(self) -> None:
        aggregate, least = self._chosen(self.aggregates)
        answer = self.api("aggregate: read", "GET", path(aggregate))
        self._hold(aggregate, least, answer, "lastSeqNr")

    def _tag(self) -> None:
        tag, least = self._chosen(self.tags)
        answer = self.api("tag: state", "GET", "/dcb/tags", query={"tag": tag})
        if answer.status == HTTPStatus.OK:
            count = sum(page["events"] for page in answer.json["tags"])
            self._compare(tag, least, count)

    def _chosen(self, names: Sequence[str]) -> tuple[str, int]:
        name = self.luck.choice(names)
        return name, self.ledger.least(name)

    def _hold(self, name: str, least: int, answer: Answer, member: str) -> None:
        if answer.status == HTTPStatus.OK:
            self._compare(name, least, answer.json[member])
        elif answer.status == HTTPStatus.NOT_FOUND:
            self._compare(name, least, 0)
        elif answer.status:
            self.ledger.note(f"{name}: a read was answered {answer}")

    def _compare(self, name: str, least: int, count: int) -> None:
        if count < least:
            self.ledger.note(f"{name}: read with {count} events, after {least} had been acknowledged")


@dataclass(slots=True, kw_only=True)
class Follower:
    """Follows one partition of the feed by long polling, and records the events in order of arrival.

    Attributes:
        at: checkpoint to continue from.
        marker: part of the name of every stream of this run.
        seen: indices of the received events, by stream.
    """

    api: Api
    ledger: Ledger
    lag: Lag
    partition: int
    at: str
    marker: str
    seen: dict[str, list[int]] = field(default_factory=dict)

    def step(self) -> None:
        """Read one page."""
        query = {"from": self.at, "limit": 1_000, "wait": WAIT_SECONDS}
        answer = self.api("feed: page", "GET", f"/feed/{self.partition}", query=query)
        if answer.status != HTTPStatus.OK:
            if answer.status not in (0, HTTPStatus.SERVICE_UNAVAILABLE):
                self.ledger.note(f"feed {self.partition}: a page was answered {answer}")
            return
        page = answer.json
        for item in page["items"]:
            if self.marker in item["stream"]:
                self.seen.setdefault(item["stream"], []).append(item["index"])
                self.lag.arrived(item["stream"], item["index"])
        self.at = page["next"]


def _stream(name: str) -> str:
    return f"/streams/{quote(name, safe='')}"
