"""Reading everything back over HTTP: each stream, each aggregate, each tag, and the feed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from bench.load.aggregate_writers import TYPE, path
from bench.load.api import Api
from bench.load.ledger import digest
from bench.load.samples import body_of
from bench.load.verification import Found


class Unreadable(Exception):
    """A read was answered with a problem, whose document is the message."""


def read_back(api: Api, name: str) -> list[Found]:
    """Read all events of a stream, an aggregate or a tag, by its name in the feed."""
    if ":" in name:
        return list(_tag(api, name))
    if name.startswith(f"{TYPE}-"):
        return list(_pages(api, f"{path(name)}/events", lambda view: view["seqNr"] - 1))
    return list(_pages(api, f"/streams/{quote(name, safe='')}/events", lambda view: view["index"]))


def read_feed(api: Api, starts: Mapping[int, str], marker: str) -> dict[str, list[Found]]:
    """Read all events of the streams whose names contain this marker, from checkpoints to the tails."""
    events: dict[str, list[Found]] = {}
    for partition, start in starts.items():
        at, at_tail = start, False
        while not at_tail:
            query = {"from": at, "limit": 500, "data": "true"}
            page = _read(api, "GET", f"/feed/{partition}", query=query)
            for item in page["items"]:
                if marker in item["stream"]:
                    events.setdefault(item["stream"], []).append(_found(api, item, item["index"]))
            at, at_tail = page["next"], page["atTail"]
    return events


def tails(api: Api) -> dict[int, str]:
    """Return the checkpoint of the end of each partition of the feed."""
    return {
        partition["partition"]: partition["tail"] for partition in _read(api, "GET", "/feed")["partitions"]
    }


def _pages(api: Api, place: str, index: Callable[[Any], int]) -> Iterator[Found]:
    start: int | None = None
    while True:
        query = {"limit": 500} if start is None else {"limit": 500, "from": start}
        page = _read(api, "GET", place, query=query)
        yield from (_found(api, view, index(view)) for view in page["events"])
        start = page["next"]
        if start is None:
            return


def _tag(api: Api, tag: str) -> Iterator[Found]:
    """Read the events of a tag in their order; they do not contain their index in the tag."""
    body: dict[str, Any] = {"query": {"items": [{"tags": [tag]}]}}
    count = 0
    while True:
        page = _read(api, "POST", "/dcb/query", body=body)
        for view in page["events"]:
            yield _found(api, view, count)
            count += 1
        if page["next"] is None:
            return
        body["from"] = page["next"]


def _found(api: Api, view: Any, index: int) -> Found:
    return Found(index, digest(view["type"], body_of(view, api)))


def _read(api: Api, method: str, place: str, **request: Any) -> Any:
    answer = api("reading back", method, place, **request)
    if answer.status != HTTPStatus.OK:
        raise Unreadable(f"{method} {place} was answered {answer}")
    return answer.json
