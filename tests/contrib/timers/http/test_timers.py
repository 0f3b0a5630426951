"""Timers over HTTP: set and cancelled by events of an append; `GET` and `DELETE /streams/{stream}/timers`."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from epochal.contrib.timers.stores import timers_of
from epochal.model.events import Event
from epochal.model.stream_names import TIMER_CANCELLED
from epochal.plan.ops import Execute, Op, Reply
from epochal.scheduling import after, later
from tests.support.api import Api

SET = {
    "type": "$timer-set",
    "data": {
        "name": "reminder",
        "in": 1_209_600,
        "events": [{"type": "Reminded", "data": {"sum": Decimal("1.10")}}],
    },
}
OFF = {"type": "$timer-cancelled", "data": {"name": "reminder"}}


@pytest.fixture(params=["streams", "tips"])
def api(request: pytest.FixtureRequest) -> Api:
    return Api(store=request.param)


def post(api: Api, *events: object, status: int = 201) -> dict[str, object]:
    answer = api.call("POST", "/streams/Loan-17/events", {"events": list(events)})
    assert answer.status == status
    return answer.json


def timers(api: Api) -> list[dict[str, object]]:
    return api.call("GET", "/streams/Loan-17/timers").json["timers"]


def test_a_timer_is_set_by_an_event_of_an_append_and_listed_until_it_is_called_off(api: Api) -> None:
    post(api, {"type": "Lent"}, SET)
    answer = api.call("GET", "/streams/Loan-17/timers")
    (timer,) = answer.json["timers"]
    (setting,) = timers_of(api.streams).pending("Loan-17")
    assert timer == {
        "name": "reminder",
        "due": setting.due,
        "set": 1,
        "events": [{"type": "Reminded", "data": {"sum": Decimal("1.10")}}],
    }
    assert (answer.json["stream"], answer.json["more"]) == ("Loan-17", False)
    assert '"sum":1.10' in answer.text
    post(api, {"type": "Returned"}, OFF)
    assert timers(api) == []


def test_a_timer_of_a_copy_says_so(api: Api) -> None:
    post(api, {**SET, "data": {"copied": True, **SET["data"]}})
    assert [each["copied"] for each in timers(api)] == [True]


def test_a_stream_that_is_not_there_has_no_timers(api: Api) -> None:
    assert api.call("GET", "/streams/Loan-17/timers").json == {
        "stream": "Loan-17",
        "timers": [],
        "more": False,
    }


def test_a_timer_is_called_off_once_and_the_answer_has_it(api: Api) -> None:
    post(api, SET)
    answer = api.call("DELETE", "/streams/Loan-17/timers/reminder")
    assert (answer.status, answer.json["name"], answer.json["set"]) == (200, "reminder", 0)
    assert (timers(api), api.streams.load("Loan-17").version) == ([], 2)
    again = api.call("DELETE", "/streams/Loan-17/timers/reminder")
    assert (again.status, again.problem) == (404, "timer-not-found")
    assert api.streams.load("Loan-17").version == 2


def test_a_timer_that_has_fired_is_not_called_off(api: Api) -> None:
    post(api, SET)
    api.streams.append("Loan-17", timers_of(api.streams).pending("Loan-17")[0].firing())
    assert api.call("DELETE", "/streams/Loan-17/timers/reminder").problem == "timer-not-found"


def test_who_is_overtaken_all_the_time_is_told_to_try_again() -> None:
    def overtaking(execute: Execute) -> Execute:
        def run(op: Op) -> Reply:
            if TIMER_CANCELLED in repr(op):
                quiet.append("Loan-17", [Event(type="Seen")])
            return execute(op)

        return run

    api = Api(around=overtaking)
    quiet = replace(api.streams, driver=replace(api.driver, execute=api.tables.execute))
    post(api, SET)
    answer = api.call("DELETE", "/streams/Loan-17/timers/reminder")
    assert (answer.status, answer.problem) == (409, "version-conflict")


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({}, "name"),
        ({"name": "a b", "in": 1, "events": [{"type": "A"}]}, "name"),
        ({"name": "a", "in": 1, "events": []}, "events"),
        ({"name": "a", "in": 1, "events": [{"type": ""}]}, "events[0].type"),
        ({"name": "a", "in": 1.5e300, "events": [{"type": "A"}]}, "in"),
        ({"name": "a", "due": "tomorrow", "events": [{"type": "A"}]}, "due"),
        ({"name": "a", "in": 1, "events": [{"type": "A", "claim": {}}]}, "events[0].claim"),
    ],
)
def test_a_malformed_timer_is_refused_by_its_field_and_nothing_is_written(
    api: Api, data: object, field: str
) -> None:
    refused = post(api, {"type": "Lent"}, {"type": "$timer-set", "data": data}, status=400)
    assert refused["field"] == f"events[1].data.{field}"
    assert api.streams.load("Loan-17") is None


@pytest.mark.parametrize("name", ["a%20b", "%2E%2E", "x" * 129, "a%2Fb"])
def test_a_malformed_name_is_refused(api: Api, name: str) -> None:
    answer = api.call("DELETE", f"/streams/Loan-17/timers/{name}")
    assert (answer.status, answer.json.get("field")) in {(400, "timer"), (404, None)}


def test_tagged_events_take_timers_too(api: Api) -> None:
    lapsed = {"type": "Lapsed", "tags": ["seat:1"]}
    setting = {"type": "$timer-set", "data": {"name": "hold", "in": 600, "events": [lapsed]}}
    body = {"events": [{**setting, "tags": ["seat:1"]}]}
    assert api.call("POST", "/events", body).status == 201
    assert [timer.name for timer in timers_of(api.deployment.tagged).pending(["seat:1"])] == ["hold"]
    assert api.call("POST", "/events", {"events": [setting]}).status == 400


@pytest.mark.slow
def test_more_timers_than_an_answer_holds_are_cut_and_said_so(api: Api) -> None:
    big = Event(type="Reminded", data=b'"%s"' % (b"x" * 90_000))
    for number in range(60):
        api.streams.append("Loan-17", [later(f"r{number}", [big], at=after(days=1 + number))])
    answer = api.call("GET", "/streams/Loan-17/timers")
    shown = [timer["name"] for timer in answer.json["timers"]]
    assert answer.json["more"]
    assert 0 < len(shown) < 60
    assert shown == [f"r{number}" for number in range(len(shown))]
    assert answer.json["timers"][0]["events"][0]["type"] == "Reminded"


TAGS = ["seat:4A", "show:1"]
HOLD = {
    "type": "$timer-set",
    "tags": TAGS,
    "data": {"name": "hold", "in": 600, "events": [{"type": "Lapsed", "tags": ["seat:4A"]}]},
}


def held(api: Api, *tags: str) -> list[dict[str, object]]:
    return api.call("POST", "/timers/query", {"tags": list(tags)}).json["timers"]


def test_a_timer_of_tags_is_listed_until_it_is_called_off_once() -> None:
    api = Api()
    api.call("POST", "/events", {"events": [{"type": "Held", "tags": ["seat:4A"]}, HOLD]})
    (pending,) = timers_of(api.streams.tagged).pending(TAGS)
    shown = {
        "name": "hold",
        "due": pending.due,
        "set": pending.setting,
        "tags": TAGS,
        "events": [{"type": "Lapsed", "tags": ["seat:4A"]}],
    }
    assert held(api, "seat:4A") == held(api, *reversed(TAGS)) == [shown]
    assert held(api, "seat:4B") == []
    off = {"tags": TAGS, "timer": "hold"}
    only_one = api.call("POST", "/timers/cancel", {**off, "tags": ["seat:4A"]})
    assert (only_one.status, only_one.json["type"]) == (404, "urn:epochal:problem:timer-not-found")
    assert api.call("POST", "/timers/cancel", off).json == shown
    assert (held(api, *TAGS), timers_of(api.streams.tagged).pending(TAGS)) == ([], ())
    assert api.call("POST", "/timers/cancel", off).status == 404


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"timer": "hold"}, "tags"),
        ({"tags": [], "timer": "hold"}, "tags"),
        ({"tags": ["a", "a\n"], "timer": "hold"}, "tags[1]"),
        ({"tags": TAGS}, "timer"),
        ({"tags": TAGS, "timer": ".."}, "timer"),
        ({"tags": TAGS, "timer": "hold", "stream": "Loan-17"}, "stream"),
    ],
)
def test_what_names_no_timer_of_tags_is_refused_by_its_field(sent: dict[str, object], field: str) -> None:
    answer = Api().call("POST", "/timers/cancel", sent)
    assert (answer.status, answer.json["field"]) == (400, field)
