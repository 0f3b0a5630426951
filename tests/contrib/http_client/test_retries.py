"""What becomes of a request whose answer is lost, late, or asks for patience: nothing is ever appended twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest

from epochal import NO_STREAM, Event, StreamAppend
from epochal.contrib.http_client.exchange import HttpAnswer, HttpRequest, Send
from epochal.contrib.http_client.problems import PREFIX
from epochal.dynamo.wire.http import NoAnswer, Unsent
from epochal.errors import (
    CorruptData,
    EpochalError,
    InvalidInput,
    InvalidRequest,
    Refused,
    TooLarge,
    Unavailable,
)
from epochal.store.driver import UNREACHED, Patience
from tests.contrib.http_client.memory_api import MemoryApi, with_header

A = [Event.json("A", {"n": 1})]


def answered(status: int, text: str = "{}", **headers: str) -> HttpAnswer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpAnswer(status=status, headers={"content-length": str(len(text)), **named}, body=text.encode())


def problem(status: int, name: str, detail: str = "") -> HttpAnswer:
    return answered(status, f'{{"type":"{PREFIX}{name}","status":{status},"detail":"{detail}"}}')


Fault = Callable[[Send, HttpRequest], HttpAnswer]


def lose_answer(send: Send, request: HttpRequest) -> HttpAnswer:
    """The request is handled, and nobody learns of it."""
    send(request)
    raise NoAnswer("lost")


def cut_answer(send: Send, request: HttpRequest) -> HttpAnswer:
    """The connection ends within the headers, which then look like an answer without content."""
    answer = send(request)
    return replace(answer, headers={}, body=b"")


def cut_body(send: Send, request: HttpRequest) -> HttpAnswer:
    """As far as the headers say nothing of the length, a part of the body looks like all of it."""
    answer = send(request)
    return replace(answer, headers={"content-type": "application/json"}, body=answer.body[:-1])


def fail_after(send: Send, request: HttpRequest) -> HttpAnswer:
    """The request is handled, and the gateway says that the function failed."""
    send(request)
    return answered(502, '{"message":"Internal Server Error"}')


def not_sent(_: Send, __: HttpRequest) -> HttpAnswer:
    raise Unsent("refused", address="https://a", nowhere=True)


def with_faults(faults: Sequence[Fault | HttpAnswer]) -> Callable[[Send], Send]:
    """The first requests meet a fault each; those after them pass."""

    def around(send: Send) -> Send:
        left: Iterator[Fault | HttpAnswer] = iter(faults)

        def faulty(request: HttpRequest) -> HttpAnswer:
            fault = next(left, None)
            if fault is None:
                return send(request)
            return fault if isinstance(fault, HttpAnswer) else fault(send, request)

        return faulty

    return around


@pytest.mark.parametrize("fault", [lose_answer, cut_answer, cut_body, fail_after])
@pytest.mark.parametrize("times", [1, 3])
def test_an_append_whose_answer_is_lost_is_made_once(fault: Fault, times: int) -> None:
    memory = MemoryApi(around=with_faults([fault] * times))
    done = memory.streams.append("Cart-1", A, expected=NO_STREAM)
    assert (done.version, done.replayed) == (1, True)
    assert len({*(request.headers["Idempotency-Key"] for request in memory.requests)}) == 1
    assert len([*memory.api.streams.read("Cart-1")]) == 1


@pytest.mark.parametrize("fault", [lose_answer, fail_after])
def test_appends_to_several_streams_are_made_once_together_each_and_tagged(fault: Fault) -> None:
    memory = MemoryApi(around=with_faults([fault]))
    both = [StreamAppend(stream=f"Cart-{number}", events=A, expected=NO_STREAM) for number in (1, 2)]
    assert memory.streams.append_all(both).replayed
    memory = MemoryApi(around=with_faults([fault]))
    done = memory.streams.tagged.append([replace(A[0], tags=("cart:1",))])
    assert (done.replayed, dict(done.versions)) == (True, {"cart:1": 1})


def test_what_carries_no_key_is_not_repeated_and_says_that_it_may_have_been_applied() -> None:
    hundred = [StreamAppend(stream=f"Cart-{number}", events=A) for number in range(100)]
    for act in (
        lambda memory: memory.streams.append_all(hundred),
        lambda memory: memory.streams.delete("Cart-1"),
    ):
        memory = MemoryApi()
        memory.streams.append("Cart-1", A)
        memory.requests.clear()
        memory.around = with_faults([lose_answer])
        with pytest.raises(Unavailable) as caught:
            act(memory)
        assert caught.value.maybe_applied
        assert len(memory.requests) == 1


def test_retry_after_is_waited_for() -> None:
    throttled = answered(429, '{"message":"Too Many Requests"}', retry_after="7")
    memory = MemoryApi(around=with_faults([throttled, problem(503, "unavailable"), throttled]))
    assert not memory.streams.append("Cart-1", A).replayed
    assert [pause >= 7 for pause in memory.clock.pauses] == [True, False, True]


@pytest.mark.parametrize(
    ("faults", "maybe"),
    [
        ([answered(429)], False),
        ([not_sent], False),
        ([lose_answer], True),
        ([problem(500, "internal")], True),
    ],
)
def test_after_the_time_is_over_the_error_says_whether_it_may_have_been_applied(
    faults: list[Fault | HttpAnswer], maybe: bool
) -> None:
    memory = MemoryApi(around=with_faults(faults * 99), patience=Patience(seconds=1.0))
    with pytest.raises(Unavailable) as caught:
        memory.streams.append("Cart-1", A)
    assert caught.value.maybe_applied is maybe
    assert memory.clock.now <= 1.0


def test_a_read_that_found_no_answer_has_applied_nothing() -> None:
    memory = MemoryApi(around=with_faults([lose_answer] * 99), patience=Patience(retries=2))
    with pytest.raises(Unavailable) as caught:
        memory.streams.load("Cart-1")
    assert not caught.value.maybe_applied
    assert len(memory.requests) == 3


def test_an_address_at_which_nobody_ever_answered_is_given_up_soon() -> None:
    memory = MemoryApi(around=with_faults([not_sent] * 99))
    with pytest.raises(Unavailable):
        memory.streams.append("Cart-1", A)
    assert memory.clock.pauses == sorted(memory.clock.pauses)
    assert len(memory.clock.pauses) == UNREACHED - 1


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (answered(403, '{"message":"Forbidden"}'), Refused, "Forbidden"),
        (answered(401, ""), Refused, "401"),
        (answered(404, '{"message":"Not Found"}'), InvalidInput, "check the address"),
        (problem(404, "route-not-found"), InvalidInput, "check the address"),
        (answered(413, '{"message":"Request Entity Too Large"}'), TooLarge, "bytes"),
        (answered(404, "<html>", content_type="text/html"), InvalidInput, "404 with text/html"),
        (problem(500, "corrupt-data", "cart"), CorruptData, "cart"),
        (problem(422, "novel", "what a later version says"), InvalidRequest, "novel: what a later"),
    ],
)
def test_an_answer_that_no_retry_mends_is_an_error_at_once(
    answer: HttpAnswer, kind: type[EpochalError], words: str
) -> None:
    memory = MemoryApi(around=with_faults([answer]))
    with pytest.raises(kind, match=words):
        memory.streams.append("Cart-1", A)
    assert memory.clock.pauses == []


def test_each_attempt_is_authorized_anew() -> None:
    memory = MemoryApi(around=with_faults([lose_answer]))
    streams, seen = memory.streams, list[str]()

    def auth(request: HttpRequest) -> dict[str, str]:
        seen.append(request.method)
        return {"Authorization": "known"}

    replace_api = replace(streams.api, auth=auth)
    replace(streams, api=replace_api).append("Cart-1", A)
    assert seen == ["POST", "POST"]


def test_a_late_retry_after_of_a_date_is_passed_over() -> None:
    late = with_header(answered(503), "retry-after", "Wed, 21 Oct 2026 07:28:00 GMT")
    memory = MemoryApi(around=with_faults([late]))
    memory.streams.append("Cart-1", A)
    assert memory.clock.now < 1
