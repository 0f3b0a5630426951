from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochal.errors import CorruptData, InvalidInput
from epochal.model.bodies import Claim
from epochal.model.events import Event, Recorded
from epochal.model.moments import format_ticks, parse_time
from epochal.model.stream_names import TIMER_CANCELLED, TIMER_FIRED, TIMER_SET
from epochal.scheduling import after, cancel, later, pending, query_of, timer_of
from epochal.store.context import metadata
from epochal.store.streams import Streams
from epochal.testing.stores import memory_deployment, memory_streams

REMINDED = Event.json("Reminded", {"times": 1})
START = "2026-03-01T08:00:00.0000000+00:00"


def at_start(store: Streams) -> Streams:
    return replace(store, now=lambda: 1_772_352_000 * 10**9)


def recorded(event: Event, index: int, **more: object) -> Recorded:
    fields = {"stream": "Loan-17", "index": index, "timestamp": event.timestamp or START, **more}
    return Recorded(type=event.type, data=event.data, meta=event.meta, tags=event.tags, **fields)


def history(*events: Event) -> list[Recorded]:
    return [recorded(event, index) for index, event in enumerate(events)]


def fired(name: str, index: int) -> Event:
    return Event.json(TIMER_FIRED, {"name": name, "set": index})


# The format.


def test_a_timer_is_stored_as_the_page_of_formats_has_it() -> None:
    event = later("reminder", [REMINDED], at=after(days=14))
    assert (event.type, event.data) == (
        TIMER_SET,
        b'{"name":"reminder","in":1209600,"events":[{"type":"Reminded","data":{"times":1}}]}',
    )
    moment = later("reminder", [Event(type="Reminded")], at="2026-03-15T09:00:00+01:00")
    assert moment.data == (
        b'{"name":"reminder","due":"2026-03-15T08:00:00.0000000+00:00","events":[{"type":"Reminded"}]}'
    )
    off = cancel("reminder", tags=["loan:17"])
    assert (off.type, off.data, off.tags) == (TIMER_CANCELLED, b'{"name":"reminder"}', ("loan:17",))


def test_so_long_from_now_is_counted_from_the_time_of_the_setting() -> None:
    event = later("reminder", [REMINDED], at=after(days=14, seconds=0.5))
    assert timer_of(recorded(event, 3)).due == "2026-03-15T08:00:00.5000000+00:00"
    then = replace(event, timestamp="2020-01-01T00:00:00Z")
    assert timer_of(recorded(then, 3)).due == "2020-01-15T00:00:00.5000000+00:00"


@pytest.mark.parametrize(
    "at",
    [
        "2026-03-15T08:00:00Z",
        "2026-03-15T10:00:00+02:00",
        datetime(2026, 3, 15, 8, tzinfo=UTC),
        after(weeks=2),
    ],
)
def test_a_moment_is_named_in_any_way(at: object) -> None:
    timer = timer_of(recorded(later("reminder", [REMINDED], at=at), 0))
    assert timer.due == "2026-03-15T08:00:00.0000000+00:00"
    assert format_ticks(timer.ticks) == timer.due


@pytest.mark.parametrize("days", [1e20, float("nan"), float("inf"), "14"])
def test_a_span_that_is_none_is_refused_by_its_field(days: float) -> None:
    with pytest.raises(InvalidInput) as refused:
        after(days=days)
    assert refused.value.field == "at"


@pytest.mark.parametrize("at", ["2030-06-01T09:00:00", "2030-06-01 09:00"])
def test_text_without_a_zone_is_refused_and_one_that_is_stored_stays_readable(at: str) -> None:
    with pytest.raises(InvalidInput, match="at: must have a time zone"):
        later("reminder", [REMINDED], at=at)
    stored = set_as('{"name":"reminder","due":"2030-06-01T09:00:00","events":[EVENT]}')
    assert timer_of(recorded(stored, 0)).due == "2030-06-01T09:00:00.0000000+00:00"


def test_a_moment_before_the_year_1_is_refused_by_its_field() -> None:
    before = datetime.min.replace(tzinfo=timezone(timedelta(hours=5)))
    with pytest.raises(InvalidInput) as refused:
        later("reminder", [REMINDED], at=before)
    assert refused.value.field == "at"


EVENTS = st.builds(
    Event,
    type=st.text(st.characters(codec="utf-8"), min_size=1, max_size=9),
    data=st.one_of(
        st.binary(max_size=9),
        st.sampled_from(
            [
                b"",
                b"null",
                b'{"a":1.10}',
                b'{"a": 1}',
                b'{"a":1,"a":2}',
                b'"\\ud800"',
                b"\xef\xbb\xbf{}",
                b"1e999",
            ]
        ),
    ),
    meta=st.one_of(st.binary(max_size=9), st.just(b'{"by":"ada"}')),
    timestamp=st.one_of(st.none(), st.just("2026-01-01T00:00:00Z")),
    correlation_id=st.one_of(st.none(), st.text(min_size=1, max_size=9)),
    causation_id=st.one_of(st.none(), st.text(min_size=1, max_size=9)),
    tags=st.one_of(st.just(()), st.just(("b:2", "a:1"))),
)


@given(st.lists(EVENTS, min_size=1, max_size=4))
def test_the_events_of_a_timer_come_back_to_the_byte(events: list[Event]) -> None:
    event = later("reminder", events, at=after(days=1))
    assert timer_of(recorded(event, 0)).events == tuple(events)


def test_numbers_of_a_setting_that_came_as_json_stay_exact() -> None:
    data = b'{"name":"r","in":60,"events":[{"type":"Charged","data":{"sum":1.10}}]}'
    streams = memory_streams()
    streams.append("Loan-17", [Event(type=TIMER_SET, data=data)])
    (timer,) = pending(streams.read("Loan-17"))
    assert timer.events == (Event(type="Charged", data=b'{"sum":1.10}'),)


# The fold.


def names(*events: Event) -> list[tuple[str, int | str]]:
    return [(timer.name, timer.setting) for timer in pending(history(*events))]


SET, OTHER, OFF = (
    later("reminder", [REMINDED], at=after(days=14)),
    later("fine", [REMINDED], at=after(days=7)),
    cancel("reminder"),
)


def test_a_timer_is_pending_until_it_is_called_off_set_anew_or_fired() -> None:
    assert names(REMINDED, SET) == [("reminder", 1)]
    assert names(SET, OFF) == []
    assert names(SET, SET) == [("reminder", 1)]
    assert names(SET, fired("reminder", 0)) == []


def test_what_was_set_anew_is_not_fired_by_what_it_replaced() -> None:
    assert names(SET, SET, fired("reminder", 0)) == [("reminder", 1)]
    assert names(SET, OFF, SET, fired("reminder", 0)) == [("reminder", 2)]


def test_calling_off_concerns_one_name_and_what_was_set_before_it() -> None:
    assert names(SET, OTHER, OFF) == [("fine", 1)]
    assert names(OFF, SET) == [("reminder", 1)]
    assert names(OFF, fired("reminder", 4)) == []


def test_pending_timers_come_in_the_order_of_their_due_times() -> None:
    assert names(SET, OTHER) == [("fine", 1), ("reminder", 0)]


def test_timers_of_tags_are_of_exactly_these_tags() -> None:
    one, both = (
        later("r", [REMINDED], at=after(days=1), tags=["a:1"]),
        later("r", [REMINDED], at=after(days=1), tags=["b:1", "a:1"]),
    )
    deployment = memory_deployment()
    made = deployment.tagged.append([one, both]).events
    deployment.tagged.append([cancel("r", tags=["b:1", "a:1"])])
    (left,) = pending(deployment.tagged.read(query_of(["a:1"])).events)
    assert (left.setting, left.tags, left.stream) == (made[0].id, ("a:1",), "")


def test_a_timer_of_a_stream_is_the_streams_though_its_setting_has_tags() -> None:
    deployment = memory_deployment()
    tagged = later("r", [REMINDED], at=after(days=1), tags=["a:1"])
    deployment.streams.append("Loan-17", [tagged])
    deployment.tagged.append([cancel("r", tags=["a:1"])])
    (timer,) = pending(deployment.tagged.read(query_of(["a:1"])).events)
    assert (timer.stream, timer.setting, timer.firing()[1].tags) == ("Loan-17", 0, ())
    assert pending(deployment.streams.read("Loan-17")) == (timer,)


# Firing.


def test_a_firing_is_the_events_and_that_it_has_fired() -> None:
    streams = at_start(memory_streams())
    with metadata(correlation_id="talk", by="ada"):
        streams.append("Loan-17", [later("reminder", [REMINDED], at=after(days=14))])
    (timer,) = pending(streams.read("Loan-17"))
    event, last = timer.firing()
    assert event == replace(REMINDED, meta=b'{"by":"ada"}', correlation_id="talk", causation_id="Loan-17@0")
    assert (last.type, last.data, last.tags) == (TIMER_FIRED, b'{"name":"reminder","set":0}', ())
    streams.append("Loan-17", timer.firing())
    assert pending(streams.read("Loan-17")) == ()


def test_what_an_event_of_a_timer_says_itself_wins_over_its_setting() -> None:
    own = replace(REMINDED, meta=b'{"by":"clock"}', correlation_id="mine", causation_id="me")
    setting = replace(later("r", [own], at=after(days=1)), meta=b'{"by":"ada","at":"desk"}')
    event, _ = timer_of(recorded(setting, 0)).firing()
    assert event == replace(own, meta=b'{"by":"clock","at":"desk"}')


def test_a_setting_without_a_conversation_begins_one() -> None:
    event, _ = timer_of(recorded(SET, 4)).firing()
    assert (event.correlation_id, event.causation_id) == ("Loan-17@4", "Loan-17@4")


def test_a_firing_of_tags_says_so_under_these_tags() -> None:
    tagged = memory_deployment().tagged
    tagged.append([later("r", [replace(REMINDED, tags=("b:1",))], at=after(days=1), tags=["a:1"])])
    (timer,) = pending(tagged.read(query_of(["a:1"])).events)
    event, last = timer.firing()
    assert (event.tags, last.tags, event.causation_id) == (("b:1",), ("a:1",), timer.setting)
    tagged.append(timer.firing(), fail_if=timer.query, after=tagged.read(timer.query).position)
    assert pending(tagged.read(timer.query).events) == ()


def test_a_timer_may_set_the_next_one() -> None:
    streams = at_start(memory_streams())
    again = later("weekly", [REMINDED, later("weekly", [REMINDED], at=after(weeks=1))], at=after(weeks=1))
    streams.append("Loan-17", [again])
    (timer,) = pending(streams.read("Loan-17"))
    streams.append("Loan-17", timer.firing())
    (following,) = pending(streams.read("Loan-17"))
    assert (following.setting, following.events) == (2, (REMINDED,))


# What could not fire is refused when it is set.


def set_as(body: str) -> Event:
    return Event(type=TIMER_SET, data=body.replace("EVENT", '{"type":"Reminded"}').encode())


@pytest.mark.parametrize(
    ("event", "field"),
    [
        (set_as(""), "events[0].data"),
        (set_as("[]"), "events[0].data"),
        (set_as("{}"), "events[0].data.name"),
        (set_as('{"name":"a b","in":1,"events":[EVENT]}'), "events[0].data.name"),
        (set_as('{"name":"..","in":1,"events":[EVENT]}'), "events[0].data.name"),
        (set_as('{"name":"' + "a" * 129 + '","in":1,"events":[EVENT]}'), "events[0].data.name"),
        (set_as('{"name":"a","events":[EVENT]}'), "events[0].data.due"),
        (
            set_as('{"name":"a","in":1,"due":"2026-03-15T08:00:00Z","events":[EVENT]}'),
            "events[0].data.due",
        ),
        (set_as('{"name":"a","due":"soon","events":[EVENT]}'), "events[0].data.due"),
        (set_as('{"name":"a","due":"9999-01-01T00:00:00Z","events":[EVENT]}'), "events[0].data.due"),
        (set_as('{"name":"a","in":-1,"events":[EVENT]}'), "events[0].data.in"),
        (set_as('{"name":"a","in":true,"events":[EVENT]}'), "events[0].data.in"),
        (set_as('{"name":"a","in":1e99,"events":[EVENT]}'), "events[0].data.in"),
        (set_as('{"name":"a","in":1,"events":[]}'), "events[0].data.events"),
        (set_as('{"name":"a","in":1,"events":[1]}'), "events[0].data.events[0]"),
        (set_as('{"name":"a","in":1,"events":[{}]}'), "events[0].data.events[0].type"),
        (set_as('{"name":"a","in":1,"events":[{"type":""}]}'), "events[0].data.events[0].type"),
        (set_as('{"name":"a","in":1,"events":[{"type":"a","x":1}]}'), "events[0].data.events[0].x"),
        (
            set_as('{"name":"a","in":1,"events":[{"type":"a","data64":"?"}]}'),
            "events[0].data.events[0].data64",
        ),
        (
            set_as('{"name":"a","in":1,"events":[{"type":"a","data":1,"data64":""}]}'),
            "events[0].data.events[0].data64",
        ),
        (set_as('{"name":"a","in":1,"events":[{"type":"a","tags":"a"}]}'), "events[0].data.events[0].tags"),
        (
            set_as('{"name":"a","in":1,"events":[{"type":"a","tags":["$a"]}]}'),
            "events[0].data.events[0].tags",
        ),
        (set_as('{"name":"a","in":1,"events":[{"type":"a","id":"x"}]}'), "events[0].data.events[0].id"),
        (
            set_as('{"name":"a","in":1,"events":[{"type":"a","timestamp":"x"}]}'),
            "events[0].data.events[0].timestamp",
        ),
        (
            set_as('{"name":"a","in":1,"events":[{"type":"$timer-cancelled","data":{}}]}'),
            "events[0].data.events[0].data.name",
        ),
        (set_as('{"name":"a","in":1,"events":[EVENT],"more":1}'), "events[0].data.more"),
        (Event(type=TIMER_CANCELLED), "events[0].data"),
        (Event(type=TIMER_FIRED, data=b'{"name":"a","set":-1}'), "events[0].data.set"),
        (Event(type=TIMER_FIRED, data=b'{"name":"a","set":"x"}'), "events[0].data.set"),
        (Event(type=TIMER_SET, data=Claim(key="k", sha256="0" * 64, size=1)), "events[0].claim"),
        (replace(SET, timestamp="2996-01-01T00:00:00Z"), "events[0].data.due"),
    ],
)
def test_an_append_with_a_malformed_timer_is_refused_by_its_field(event: Event, field: str) -> None:
    streams = at_start(memory_streams())
    with pytest.raises(InvalidInput) as refused:
        streams.append("Loan-17", [event])
    assert refused.value.field == field
    assert streams.load("Loan-17") is None
    with pytest.raises(InvalidInput):
        streams.tagged.append([replace(event, tags=("a:1",))])


def test_tags_of_a_timers_events_are_refused_where_streams_have_none() -> None:
    tips = memory_deployment().tips
    with pytest.raises(InvalidInput, match=r"events\[0\]\.data\.events\[0\]\.tags"):
        tips.append("Loan-17", [later("r", [replace(REMINDED, tags=("a:1",))], at=after(days=1))])
    tips.append("Loan-17", [later("r", [REMINDED], at=after(days=1))])
    assert len(pending(tips.read("Loan-17"))) == 1


def test_a_timer_of_no_stream_needs_tags() -> None:
    with pytest.raises(InvalidInput, match=r"events\[0\]\.tags"):
        memory_deployment().tagged.append([SET])


def test_a_timer_has_no_more_tags_than_its_firing_may_have() -> None:
    tags = tuple(f"seat:{number}" for number in range(89))
    streams = memory_streams()
    streams.append("Loan-17", [later("r", [replace(REMINDED, tags=tags)], at=after(days=1), tags=["a:1"])])
    with pytest.raises(InvalidInput, match="90 different tags"):
        streams.append("Loan-17", [later("r", [replace(REMINDED, tags=(*tags, "b", "c"))], at=after(days=1))])


def test_later_refuses_at_once_what_it_can_tell() -> None:
    for events, at, field in (
        ([], after(days=1), "events"),
        ([Event(type="A", data=Claim(key="k", sha256="0" * 64, size=1))], after(days=1), "events.data"),
        ([replace(REMINDED, id="1f0c5f8e-6c1b-4b6a-9e3f-0d6b9f3f8a11")], after(days=1), "events[0].id"),
        ([REMINDED], after(days=1_831), "at"),
        ([REMINDED], after(days=-1), "at"),
        ([REMINDED], datetime(2026, 1, 1), "at"),  # noqa: DTZ001  which is the fault
        ([REMINDED], "soon", "at"),
    ):
        with pytest.raises(InvalidInput) as refused:
            later("reminder", events, at=at)
        assert refused.value.field == field


def test_a_setting_that_another_program_has_stored_badly_is_corruption() -> None:
    with pytest.raises(CorruptData, match="Loan-17@0"):
        pending([recorded(set_as('{"name":"a"}'), 0)])
    with pytest.raises(InvalidInput, match="fetch"):
        pending([recorded(Event(type=TIMER_SET, data=Claim(key="k", sha256="0" * 64, size=1)), 0)])


# A call that is repeated is the same call.


def test_a_setting_that_is_repeated_under_its_key_is_there_once_though_time_went_by() -> None:
    now = [1_772_352_000 * 10**9]
    streams = replace(memory_streams(), now=lambda: now[0])
    for _ in range(2):
        again = streams.append("Loan-17", [REMINDED, SET], idempotency_key="lend")
        now[0] += 60 * 10**9
    assert again.replayed
    (timer,) = pending(streams.read("Loan-17"))
    assert parse_time(timer.due) - parse_time(START) == timedelta(days=14).total_seconds() * 10**7


def test_a_setting_of_tags_that_is_repeated_under_its_key_is_there_once() -> None:
    now = [1_772_352_000 * 10**9]
    tagged = replace(memory_deployment().tagged, now=lambda: now[0])
    for _ in range(2):
        again = tagged.append([replace(SET, tags=("a:1",))], idempotency_key="lend")
        now[0] += 60 * 10**9
    assert again.replayed
    assert len(pending(tagged.read(query_of(["a:1"])).events)) == 1
