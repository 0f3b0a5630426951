"""Leases on messages: for how long a running function hides them, and when what has failed comes again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from epochal.errors import Unavailable
from epochal.hosting.leases import (
    GRACE_SECONDS,
    LEASE_SECONDS,
    MAX_RECEIVES,
    RENEW_SECONDS,
    Beat,
    Leases,
    hidden_seconds,
    in_thread,
    pause_after,
)
from tests.core.reactions.world import World
from tests.support.leases import Visibility, once
from tests.surfaces.hosting.test_wakeups import Context, Sent, function, message

DONE: dict[str, Any] = {"batchItemFailures": []}


class Log:
    """A log that keeps warnings."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, Any]]] = []

    def warning(self, message: str, **fields: Any) -> None:
        self.lines.append((message, fields))


def leases(client: Any, log: Log | None = None, **more: Any) -> Leases:
    return Leases(client=client, url="queue", logger=log or Log(), **{"beats": once, **more})  # type: ignore[arg-type]


def failing(*ids: str) -> Callable[[Beat], dict[str, Any]]:
    return lambda _: {"batchItemFailures": [{"itemIdentifier": each} for each in ids]}


@pytest.mark.parametrize(
    ("left", "seconds"), [(900.0, LEASE_SECONDS), (30.9, 30 + GRACE_SECONDS), (0.5, GRACE_SECONDS)]
)
def test_messages_are_hidden_for_a_lease_and_no_longer_than_the_function_may_run(
    left: float, seconds: int
) -> None:
    client = Visibility()
    assert (
        leases(client).hold([message(0, 1, id_="a"), message(1, 1, id_="b")], lambda: left, lambda _: DONE)
        == DONE
    )
    assert client.hidden == [{"receipt a": seconds, "receipt b": seconds}]


@pytest.mark.parametrize("left", [0.0, -0.5, -60.0])
def test_no_lease_is_renewed_once_the_time_of_the_function_is_over(left: float) -> None:
    """Its messages are to come again, and SQS takes no negative time."""
    client, log = Visibility(), Log()
    assert leases(client, log).hold([message(0, 1, id_="a")], lambda: left, lambda _: DONE) == DONE
    assert (client.hidden, log.lines) == ([], [])


def test_what_failed_is_put_back_after_the_last_renewal_which_would_hide_it_again() -> None:
    client = Visibility()

    def beats(renew: Callable[[], object]) -> Beat:
        return Beat(wait=lambda: None, stop=renew)

    leases(client, beats=beats).hold([message(0, 1, id_="a")], lambda: 60.0, failing("a"))
    assert client.hidden == [{"receipt a": LEASE_SECONDS}, {"receipt a": pause_after(1)}]


def test_what_failed_comes_again_after_a_pause_that_doubles_and_the_rest_does_not() -> None:
    client = Visibility()
    records = [
        message(0, 1, id_="a"),
        message(1, 1, id_="b", receives=4),
        message(2, 1, id_="c", receives=99),
    ]
    log = Log()
    leases(client, log).hold(records, lambda: 60.0, failing("b", "c"))
    assert client.hidden[1:] == [{"receipt b": 16, "receipt c": LEASE_SECONDS}]
    assert log.lines == [
        ("wake-ups failed and will be retried", {"messages": 2, "receives": 99, "seconds": LEASE_SECONDS})
    ]


@pytest.mark.parametrize("error", [Unavailable("no"), SystemExit(1)], ids=["exception", "exit"])
def test_of_a_run_that_raises_all_comes_again_in_seconds(error: BaseException) -> None:
    client = Visibility()

    def work(_: Beat) -> dict[str, Any]:
        raise error

    with pytest.raises(type(error)):
        leases(client).hold([message(0, 1, id_="a"), message(1, 1, id_="b")], lambda: 60.0, work)
    assert client.hidden[-1] == {"receipt a": 2, "receipt b": 2}


def test_pauses_are_seconds_at_first_and_less_than_a_minute_for_ever() -> None:
    assert [pause_after(receives) for receives in (1, 2, 3, 6, MAX_RECEIVES)] == [2, 4, 8, 45, 45]


def test_an_outage_of_two_hours_is_shorter_than_the_receives_that_a_message_has() -> None:
    """A process that dies leaves its messages hidden for what a lease has left after its last renewal."""
    assert MAX_RECEIVES * (LEASE_SECONDS - RENEW_SECONDS) >= 2 * 3_600


@pytest.mark.parametrize("timeout", [1, 45, 60, 900])
def test_a_queue_hides_messages_for_no_less_than_aws_takes_and_no_longer_than_it_must(timeout: int) -> None:
    assert timeout <= hidden_seconds(timeout) <= max(timeout, LEASE_SECONDS)


class Refusing(Visibility):
    """SQS takes nothing, or does not answer."""

    def __init__(self, error: Exception | None) -> None:
        super().__init__()
        self.error = error

    def change_message_visibility_batch(self, **asked: Any) -> dict[str, Any]:
        if self.error is not None:
            raise self.error
        return {"Failed": [{"Id": each["Id"], "Code": "ReceiptHandleIsInvalid"} for each in asked["Entries"]]}


@pytest.mark.parametrize("error", [Unavailable("no answer"), OSError("broken"), None], ids=str)
def test_without_a_lease_work_is_done_all_the_same_and_the_log_says_what_that_means(
    error: Exception | None,
) -> None:
    log = Log()
    assert leases(Refusing(error), log).hold([message(0, 1)], lambda: 60.0, lambda _: DONE) == DONE
    ((line, fields),) = log.lines
    assert "visibility timeout" in line
    assert fields["error"].startswith("Unavailable" if error is None else type(error).__name__)


def test_the_lease_is_taken_before_a_handler_is_called() -> None:
    client, world = Sent(), World()
    world.append("A-1")
    order: list[str] = []

    def beats(renew: Callable[[], object]) -> Beat:
        def wait() -> None:
            order.append("taken")
            renew()

        return Beat(wait=wait, stop=lambda: order.append("over"))

    world.told.during = lambda _: order.append("called")
    one = replace(function(world, client), beats=beats)
    assert one.handle({"Records": [message(0, 1)]}, Context(60.0)) == DONE  # type: ignore[arg-type]
    assert order == ["taken", "called", "over"]
    assert client.hidden == [{"receipt m": LEASE_SECONDS}]


def test_a_thread_renews_at_once_and_again_until_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("epochal.hosting.leases.RENEW_SECONDS", 0.001)
    enough, renewals = threading.Event(), list[str]()

    def renew() -> None:
        renewals.append(threading.current_thread().name)
        if len(renewals) == 3:
            enough.set()

    beat = in_thread(renew)
    beat.wait()
    assert renewals[0] == "lease"
    assert enough.wait(60)
    beat.stop()
    count = len(renewals)
    assert "lease" not in [each.name for each in threading.enumerate()]
    assert len(renewals) == count
