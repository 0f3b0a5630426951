"""Answers that are lost on the way from a page, and what others have made of it since."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from epochal.model.events import Event, Unfold
from epochal.model.outcomes import Appended, Conflict, Undetermined
from epochal.pages.items import STREAMS, state_of
from epochal.pages.layout import Pages
from epochal.pages.reading import load_head
from epochal.plan.failures import Lost
from epochal.plan.ops import Op, Put, Reply, Update
from epochal.plan.values import text
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from tests.core.layout.test_page_appends import STREAM, event, filled, pages_of

NOW = 1_357_000_000_000_000_000
ONE = [Event(type="E", data=b"1")]
STATE = [Unfold(type="State", data=b"1")]


@pytest.fixture
def store() -> Streams:
    tables = MemoryTables({"streams": STREAMS})
    return Streams(
        driver=Driver(execute=tables.execute, meter=Meter(), sleep=lambda _: None),
        table="streams",
        layout=Pages(),
    )


def unanswered(store: Streams, then: Callable[[], object] = lambda: None) -> Streams:
    """The store, the answer to whose first write of a page is lost; others do something before it is tried again."""
    first, execute = iter([True]), store.driver.execute

    def lose(op: Op) -> Reply:
        reply = execute(op)
        if _is_of_a_page(op) and next(first, False):
            then()
            raise Lost("on its way back")
        return reply

    return replace(store, driver=replace(store.driver, execute=lose))


def _is_of_a_page(op: Op) -> bool:
    return isinstance(op, Put | Update) and (op.item if isinstance(op, Put) else op.key)["p"] == text(STREAM)


LARGE = [Event(type="E", data=random.Random(1).randbytes(403_000))]
"""Nothing that has events takes it, though a page of its own does."""


def test_a_page_that_was_closed_unheard_is_gone_on_from(store: Streams) -> None:
    token = store.append(STREAM, ONE).token

    assert isinstance(unanswered(store).try_append(STREAM, LARGE, expected=token), Appended)
    assert pages_of(store) == [0, 1]


def test_a_page_is_closed_and_another_begun_above_its_last_stamp_whatever_the_clock_says(
    store: Streams,
) -> None:
    ahead, behind = replace(store, now=lambda: NOW), replace(store, now=lambda: NOW - 1_000_000_000)
    token = ahead.append(STREAM, ONE).token
    last = behind.append(STREAM, LARGE, expected=token).token

    assert [event.data for event in store.read(STREAM)] == [b"1", LARGE[0].data]
    closed, begun = (state_of(str(each.etag)) for each in (token, last))
    assert closed is not None
    assert begun is not None
    assert begun.time > closed.time + 1, "the write that closed the first page is between them"


def test_what_is_made_under_a_key_by_this_call_is_no_repeat_though_its_answer_was_lost(
    store: Streams,
) -> None:
    appended = unanswered(store).append(STREAM, ONE, idempotency_key="k")

    assert not appended.replayed
    assert store.append(STREAM, ONE, idempotency_key="k").replayed
    assert len(list(store.read(STREAM))) == 1


def test_a_key_whose_events_may_have_been_pruned_is_in_doubt(store: Streams) -> None:
    store.append(STREAM, ONE, idempotency_key="k")
    store.append(STREAM, ONE)
    store.prune(STREAM, 2)

    assert store.try_append(STREAM, ONE, idempotency_key="k") == Undetermined(first=0)


def test_unfolds_alone_that_a_deletion_may_have_taken_are_in_doubt(store: Streams) -> None:
    store.append(STREAM, ONE)
    other = unanswered(store, lambda: store.delete(STREAM))

    assert isinstance(other.try_append(STREAM, [], unfolds=STATE), Undetermined)


def test_unfolds_alone_that_others_may_have_replaced_are_written_again_where_any_version_will_do(
    store: Streams,
) -> None:
    store.append(STREAM, ONE)
    other = unanswered(store, lambda: store.append(STREAM, [], unfolds=[Unfold(type="State", data=b"2")]))
    other.append(STREAM, [], unfolds=STATE)
    state = store.load(STREAM)

    assert state is not None
    assert [unfold.data for unfold in state.unfolds] == [b"1"]


def test_an_append_is_told_the_token_that_it_left_and_not_that_of_unfolds_written_since(
    store: Streams,
) -> None:
    store.append(STREAM, ONE)
    other = unanswered(store, lambda: store.append(STREAM, [], unfolds=STATE))
    token = other.append(STREAM, ONE).token

    assert isinstance(store.try_append(STREAM, ONE, expected=token), Conflict)
    head = store.driver.run(load_head("streams", STREAM))
    assert head is not None
    assert head.unfolds


def test_what_another_call_made_under_a_key_is_found_however_much_later_it_was_made(store: Streams) -> None:
    def interrupted(op: Op) -> Reply:
        if _is_of_a_page(op):
            raise KeyboardInterrupt
        return store.driver.execute(op)

    with pytest.raises(KeyboardInterrupt):
        replace(store, driver=replace(store.driver, execute=interrupted)).append(
            STREAM, ONE, idempotency_key="k"
        )
    filled(store, 2)
    first = store.append(STREAM, ONE, idempotency_key="k").first
    while len(pages_of(store)) < 4:
        store.append(STREAM, [event()])
    again = store.append(STREAM, ONE, idempotency_key="k")

    assert (again.replayed, again.first) == (True, first)
