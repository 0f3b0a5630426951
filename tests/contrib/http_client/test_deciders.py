"""Deciders over HTTP: a decision is stored exactly once, on the state that it was made on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pytest

from epochal import AtVersion, Decider, Event, StreamDeleted, json_codec
from epochal.contrib.http_client.deciders import HttpDeciders
from epochal.deciders.loop import WithAlso
from epochal.errors import Contended, InvalidInput, UnknownType, WrongExpectedVersion
from epochal.model.timers import Later
from epochal.model.tokens import NO_EVENTS, Token
from epochal.store.also import put
from tests.contrib.http_client.memory_api import MemoryApi
from tests.contrib.http_client.test_retries import lose_answer, with_faults


@dataclass(frozen=True)
class Counted:
    n: int


CODEC = json_codec(Counted)
COUNTER = Decider[int, int, Counted](
    initial=lambda: 0,
    evolve=lambda state, event: state + event.n,
    decide=lambda command, state: [Counted(command)] if state < 10 else [],
)


@pytest.fixture
def memory() -> MemoryApi:
    return MemoryApi()


def counters(memory: MemoryApi, attempts: int = 10) -> HttpDeciders[int, int, Counted]:
    return HttpDeciders(streams=memory.streams, decider=COUNTER, codec=CODEC, attempts=attempts)


def test_a_decision_is_made_on_the_state_and_appended(memory: MemoryApi) -> None:
    deciders = counters(memory)
    first = deciders.handle("Counter-1", 4, metadata={"user": "ada"})
    assert (first.state, first.events, first.version) == (4, (Counted(4),), 1)
    assert deciders.handle("Counter-1", 7).state == 11
    nothing = deciders.handle("Counter-1", 1)
    assert (nothing.state, nothing.events, nothing.version) == (11, (), 2)
    assert deciders.query("Counter-1", lambda state: state * 2) == 22
    assert next(memory.streams.read("Counter-1")).meta == b'{"user":"ada"}'
    result, done = deciders.handle(
        "Counter-2", decide=lambda state: ("seen", [Counted(state + 1)]), with_result=True
    )
    assert (result, done.state) == ("seen", 1)


def test_the_token_of_no_stream_is_met_where_there_is_no_stream(memory: MemoryApi) -> None:
    first = counters(memory).handle("Counter-1", 4, expected=NO_EVENTS)
    assert first.version == 1


def test_a_token_names_a_state_by_its_version_and_etag(memory: MemoryApi) -> None:
    """The token of a repeated append has no sizes."""
    deciders = counters(memory)
    deciders.handle("Counter-1", 4)
    token = memory.streams.load("Counter-1").token  # type: ignore[union-attr]
    bare = Token(version=token.version, etag=token.etag)
    assert deciders.handle("Counter-1", 5, expected=bare).state == 9
    with pytest.raises(WrongExpectedVersion):
        deciders.handle("Counter-1", 1, expected=bare)


def test_a_decision_that_was_overtaken_is_made_again_on_what_is_new(memory: MemoryApi) -> None:
    deciders, seen = counters(memory), list[int]()

    def decide(state: int) -> list[Counted]:
        seen.append(state)
        if len(seen) <= 3:
            memory.api.streams.append("Counter-1", [CODEC.encode(Counted(1))])
        return [Counted(5)]

    assert deciders.handle("Counter-1", decide=decide).state == 8
    assert seen == [0, 1, 2, 3]
    assert len(memory.clock.pauses) == 2


def test_a_decision_whose_answer_is_lost_is_stored_once(memory: MemoryApi) -> None:
    memory.around = with_faults([lambda send, request: send(request), lose_answer])
    assert counters(memory).handle("Counter-1", 4).state == 4
    assert len([*memory.api.streams.read("Counter-1")]) == 1


def test_a_decision_is_given_up_after_so_many_attempts(memory: MemoryApi) -> None:
    def decide(_: int) -> list[Counted]:
        memory.api.streams.append("Counter-1", [CODEC.encode(Counted(1))])
        return [Counted(5)]

    with pytest.raises(Contended):
        counters(memory, attempts=3).handle("Counter-1", decide=decide)


def test_a_stream_must_be_what_the_caller_expects_and_readable(memory: MemoryApi) -> None:
    deciders = counters(memory)
    token = deciders.handle("Counter-1", 4).token
    assert token is not None
    deciders.handle("Counter-1", 1, expected=token)
    for expected in (token, AtVersion(1)):
        with pytest.raises(WrongExpectedVersion):
            deciders.handle("Counter-1", 1, expected=expected)
    memory.api.streams.append("Counter-3", [Event(type="Other")])
    with pytest.raises(UnknownType):
        deciders.handle("Counter-3", 1)
    memory.streams.delete("Counter-1")
    with pytest.raises(StreamDeleted):
        deciders.handle("Counter-1", 1)


def test_a_timer_is_set_and_what_the_api_has_not_is_refused(memory: MemoryApi) -> None:
    deciders = counters(memory)
    later = Later("late", [Counted(1)], at=timedelta(days=1))
    assert deciders.handle("Counter-1", decide=lambda _: [Counted(1), later]).version == 2
    assert deciders.query("Counter-1", lambda state: state) == 1
    also = [put("table", {"id": "1"})]
    with pytest.raises(InvalidInput, match="no other tables"):
        deciders.handle("Counter-1", decide=lambda _: WithAlso([Counted(1)], also))
