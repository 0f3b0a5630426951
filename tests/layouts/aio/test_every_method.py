"""Of every method for tasks: its arguments reach the store; a write ends although its caller is cancelled, a read at
once.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields
from typing import Any

import pytest

from epochal.aio.bridge import wait
from epochal.aio.stores import (
    AsyncDeciders,
    AsyncDecisions,
    AsyncFeed,
    AsyncReadModel,
    AsyncReadModels,
    AsyncStreams,
    AsyncTaggedEvents,
)
from epochal.contrib.event_store_adapter.aio import AsyncAggregateDeciders, AsyncAggregates
from epochal.contrib.subjects.aio import AsyncSubjects
from epochal.contrib.timers.aio import AsyncStreamTimers, AsyncTagTimers

READS: dict[type, set[str]] = {
    AsyncStreams: {"load", "page"},
    AsyncStreamTimers: {"pending"},
    AsyncTagTimers: {"pending"},
    AsyncTaggedEvents: {"read", "event", "events", "appended"},
    AsyncAggregates: {"lock", "latest_snapshot", "replay", "events_after"},
    AsyncDeciders: {"query"},
    AsyncAggregateDeciders: {"load", "query"},
    AsyncDecisions: {"model"},
    AsyncReadModel: {"get", "list", "find", "count", "place", "wait_for"},
    AsyncReadModels: {"live"},
    AsyncSubjects: {"seal", "unseal", "is_forgotten"},
    AsyncFeed: {
        "partitions",
        "find_checkpoint",
        "newest",
        "wait_for",
        "streams",
        "streams_by_name",
        "page",
        "items",
        "spans",
        "end_of",
    },
}


class Slow:
    """Any store: each of its methods waits, and then has been."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.ended = False

    def __getattr__(self, _: str) -> Callable[..., None]:
        def method(*_: object, **__: object) -> None:
            self.begun.set()
            wait(asyncio.sleep(0.01))
            self.ended = True

        return method


class Told:
    """Any store, which keeps what it is given."""

    def __init__(self) -> None:
        self.given: list[object] = []

    def __getattr__(self, _: str) -> Callable[..., Iterator[None]]:
        def method(*positional: object, **named: object) -> Iterator[None]:
            self.given += [*positional, *named.values()]
            return iter(())

        return method


def around(kind: type, store: object) -> Any:
    """An asynchronous store around a blocking one, in whichever field it keeps that."""
    made = object.__new__(kind)
    for field in fields(kind):
        object.__setattr__(made, field.name, store)
    return made


def _named(kind: type) -> Iterator[tuple[str, Any]]:
    return ((name, each) for name, each in vars(kind).items() if not name.startswith("_"))


def _methods() -> Iterator[tuple[type, str]]:
    for kind in READS:
        for name, method in _named(kind):
            if inspect.iscoroutinefunction(method):
                yield kind, name


def _all() -> Iterator[tuple[type, str]]:
    yield from _methods()
    for kind in READS:
        for name, method in _named(kind):
            if inspect.isasyncgenfunction(method):
                yield kind, name


def test_what_is_said_to_read_is_there() -> None:
    assert {(kind, name) for kind, names in READS.items() for name in names} <= set(_methods())


@pytest.mark.parametrize(("kind", "name"), list(_methods()), ids=lambda each: getattr(each, "__name__", each))
def test_a_write_ends_although_its_caller_is_cancelled_and_a_read_does_not(kind: type, name: str) -> None:
    store = Slow()
    method = getattr(around(kind, store), name)
    needed: list[Any] = [
        "A-1"
        for each in inspect.signature(method).parameters.values()
        if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD
    ]

    async def cancelled() -> None:
        call = asyncio.ensure_future(method(*needed))
        await store.begun.wait()
        call.cancel()
        with suppress(asyncio.CancelledError):
            await call
        assert call.cancelled()
        assert store.ended == (name not in READS[kind])

    asyncio.run(cancelled())


@pytest.mark.parametrize(("kind", "name"), list(_all()), ids=lambda each: getattr(each, "__name__", each))
def test_every_argument_reaches_the_store(kind: type, name: str) -> None:
    store = Told()
    method = getattr(around(kind, store), name)
    positional: list[object] = []
    named: dict[str, object] = {}
    for each in inspect.signature(method).parameters.values():
        match each.kind:
            case each.POSITIONAL_OR_KEYWORD:
                positional.append(object())
            case each.VAR_KEYWORD:
                named["limit"] = object()
            case _:
                named[each.name] = object()

    async def called() -> None:
        found = method(*positional, **named)
        if inspect.isasyncgen(found):
            assert [each async for each in found] == []
        else:
            await found

    asyncio.run(called())
    assert {*positional, *named.values()} <= set(store.given)
