"""The routes of tagged events: what is written, what is answered, and what stands in the way."""

from __future__ import annotations

import json
from base64 import b64encode
from random import Random
from typing import Any
from uuid import UUID

import pytest

from epochal.contrib.sekiban import reading as sekiban_reading
from epochal.layout import query_reads
from epochal.model.position_text import read_position
from epochal.pages.tags import reading as tag_reading
from epochal.plan.ops import Op, Put
from epochal.settings import RESPONSE_BYTES
from tests.support.api import Answer, Api, losing_one_answer

ID = "1f0c5f8e-6c1b-4b6a-9e3f-0d6b9f3f8a11"
COURSE = {"items": [{"tags": ["course:1"]}]}
EITHER = {"items": [{"tags": ["course:1"]}, {"types": ["Subscribed"], "tags": ["student:7"]}]}


@pytest.fixture(params=["pages", "dcb"])
def api(request: pytest.FixtureRequest) -> Api:
    return Api(pages=request.param == "pages")


def event(kind: str = "Subscribed", *tags: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "data": {}, "tags": list(tags or ("course:1",)), **more}


def append(api: Api, *events: dict[str, Any], **body: Any) -> Answer:
    return api.call("POST", "/dcb/events", {"events": list(events or (event(),)), **body})


def query(api: Api, asked: object = COURSE, **body: Any) -> Answer:
    return api.call("POST", "/dcb/query", {"query": asked, **body})


def read(api: Api, asked: object = COURSE, **body: Any) -> tuple[list[Any], str]:
    """All pages of a query: events, position."""
    found: list[Any] = []
    more: dict[str, Any] = {}
    while True:
        answer = query(api, asked, **body, **more)
        assert answer.status == 200, answer.text
        found += answer.json["events"]
        if answer.json["next"] is None:
            return found, answer.json["position"]
        assert answer.json["position"] is None
        more = {"from": answer.json["next"]}


def test_an_append_answers_with_ids_and_cost(api: Api) -> None:
    answer = append(api, event("Defined", "course:1", id=ID), event("Defined", "course:2"))
    assert answer.status == 201
    first, second = answer.json["events"]
    assert first["id"] == ID
    assert first["place"] < second["place"]
    assert answer.json["capacity"]["write"] > 0
    assert answer.json["versions"] == {"course:1": 1, "course:2": 1}
    assert answer.json["replayed"] is False


def test_a_key_makes_a_repeat_the_success_that_it_was(api: Api) -> None:
    def send(*events: dict[str, Any], key: str = "k") -> Answer:
        sent = {"events": list(events), "failIf": COURSE}
        return api.call("POST", "/dcb/events", sent, headers={"Idempotency-Key": key})

    first, again = send(event(), event()), send(event(), event())
    assert (first.status, again.status) == (201, 201)
    assert again.json["events"] == first.json["events"]
    assert (first.json["replayed"], again.json["replayed"]) == (False, True)
    assert again.json["versions"] == first.json["versions"] == {"course:1": 2}
    other = send(event("Other"))
    assert (other.status, other.json["field"]) == (400, "Idempotency-Key")
    assert send(event(), key="l").status == 409
    assert len(read(api)[0]) == 2


def test_without_a_condition_an_append_says_where_it_is_in_its_tags(api: Api) -> None:
    append(api, event())
    made = append(api, event())
    append(api, event("Later"))
    found, _ = read(api, after=made.json["position"])
    assert [each["type"] for each in found] == ["Later"]


@pytest.mark.parametrize(
    "bodies",
    [
        {},
        {"data64": "AP8="},
        {"data": 1, "meta": {"by": "ops"}},
        {"data": None, "meta64": "AA=="},
        {"meta": None},
    ],
    ids=repr,
)
def test_bodies_come_back_as_they_were_sent_and_nothing_as_nothing(api: Api, bodies: dict[str, Any]) -> None:
    append(api, {"type": "A", "tags": ["course:1"], **bodies})
    ((found,), _) = read(api)
    shown = {name: found[name] for name in ("data", "data64", "meta", "meta64", "payload") if name in found}
    assert shown == bodies


def test_each_event_tells_its_position_where_that_is_asked_for(api: Api) -> None:
    append(api, *(event(data=number) for number in range(5)))
    events, position = read(api, positions=True)
    assert "position" not in read(api)[0][0]
    assert read_position(events[-1]["position"]) == read_position(position)
    after = events[1]["position"]
    assert [each["data"] for each in read(api, after=after)[0]] == [2, 3, 4]
    refused = append(api, event(), failIf=COURSE, after=after)
    assert (refused.status, [each["data"] for each in refused.json["events"]]) == (409, [2, 3, 4])
    assert append(api, event(), failIf=COURSE, after=events[-1]["position"]).status == 201


@pytest.mark.parametrize("limit", [1, 2, 5, 6, 1000])
def test_backward_the_newest_come_first_page_by_page_with_the_position_of_the_whole(
    api: Api, limit: int
) -> None:
    append(api, *(event(data=number) for number in range(6)))
    _, position = read(api)
    found: list[int] = []
    more: dict[str, Any] = {}
    while True:
        page = query(api, COURSE, direction="backward", limit=limit, **more).json
        found += [each["data"] for each in page["events"]]
        assert len(page["events"]) <= limit
        assert page["position"] == position
        if page["next"] is None:
            break
        more = {"from": page["next"]}
    assert found == [5, 4, 3, 2, 1, 0]
    assert append(api, event(), failIf=COURSE, after=position).status == 201


def test_where_a_page_backward_goes_on_is_no_place_of_one_forward(api: Api) -> None:
    append(api, *(event(data=number) for number in range(4)))
    for direction, other in (("forward", "backward"), ("backward", "forward")):
        place = query(api, COURSE, direction=direction, limit=1).json["next"]
        answer = query(api, COURSE, **{"direction": other, "limit": 1, "from": place})
        assert (answer.status, answer.json["field"]) == (400, "from")
    for field, value in (("direction", "up"), ("direction", True), ("positions", "yes")):
        answer = query(api, COURSE, **{field: value})
        assert (answer.status, answer.json["field"]) == (400, field)


def test_an_event_comes_back_as_it_was_sent(api: Api) -> None:
    sent = {
        "id": ID,
        "type": "Größe",
        "tags": ["course:1", "a/b c%2F: ä"],
        "data": {"to": "Zürich ✈", "none": None},
        "causationId": "c",
        "correlationId": "d",
    }
    user = {} if api.pages else {"executedUser": "e"}
    expiry = {} if api.pages else {"expires": 4_000_000_000}
    made = append(api, {**sent, **user, **expiry}).json["events"][0]
    whole = {**sent, **user, "tags": sorted(sent["tags"]), **made}
    one = api.call("GET", f"/dcb/events/{ID.upper()}").json
    assert ("position" in one) == api.pages
    assert {name: shown for name, shown in one.items() if name != "position"} == whole
    assert query(api).json["events"] == [whole]


@pytest.mark.parametrize("number", ["1.10", "-0.0", "1E+400", "123456789012345678901234567890"])
def test_a_number_comes_back_to_the_digit(api: Api, number: str) -> None:
    body = f'{{"events":[{{"type":"N","data":[{number}],"id":"{ID}"}}]}}'.encode()
    assert api.call("POST", "/dcb/events", body).status == 201
    assert f'"data":[{number}]' in api.call("GET", f"/dcb/events/{ID}").text


def test_an_event_that_does_not_exist_is_404(api: Api) -> None:
    answer = api.call("GET", f"/dcb/events/{ID}")
    assert (answer.status, answer.problem) == (404, "event-not-found")


def test_a_read_decides_an_append_and_who_comes_second_is_told_what_came_between(api: Api) -> None:
    append(api)
    _, position = read(api)
    first = append(api, event("Subscribed", "course:1", "student:7"), failIf=COURSE, after=position)
    assert first.status == 201
    before = api.stored
    second = append(api, event("Subscribed", "course:1", "student:8"), failIf=COURSE, after=position)
    assert (second.status, second.problem, second.json["more"]) == (409, "condition-failed", False)
    assert [each["tags"] for each in second.json["events"]] == [["course:1", "student:7"]]
    assert api.stored == before
    assert append(api, event(), failIf=COURSE, after=second.json["position"]).status == 201


def test_the_position_of_an_append_is_good_for_the_next(api: Api) -> None:
    position = append(api, event(), failIf=COURSE).json["position"]
    for _ in range(3):
        answer = append(api, event(), failIf=COURSE, after=position)
        assert answer.status == 201
        position = answer.json["position"]
    assert append(api, event(), failIf=COURSE).status == 409


def test_a_chain_of_positions_does_not_grow(api: Api) -> None:
    position = append(api, event(), failIf=COURSE).json["position"]
    for number in range(5):
        answer = append(api, event("A", "course:1", f"only:{number}"), failIf=COURSE, after=position)
        position = answer.json["position"]
    assert set(read_position(position).heads) == {"only:4"}


def test_unrelated_appends_are_nobodys_conflict(api: Api) -> None:
    asked = {"items": [{"types": ["Subscribed"], "tags": ["course:1"]}]}
    _, position = read(api, asked)
    for number in range(4):
        append(api, event("Renamed", "course:1", f"x:{number}"))
    assert append(api, event(), failIf=asked, after=position).status == 201


def test_a_repeat_with_the_same_ids_is_answered_like_the_first_whatever_came_since(api: Api) -> None:
    _, position = read(api)
    sent = event("Subscribed", "course:1", id=ID)
    first = append(api, sent, failIf=COURSE, after=position)
    append(api, event())
    for body in ({"failIf": COURSE, "after": position}, {"failIf": COURSE}, {}):
        again = append(api, sent, **body)
        assert (again.status, again.json["replayed"]) == (201, True)
        assert again.json["events"] == first.json["events"]
    assert len(read(api)[0]) == 2


def test_an_append_whose_response_was_lost_is_made_once() -> None:
    lost: list[Op] = []
    api = Api(around=losing_one_answer(lost))
    assert append(api, event(), failIf=COURSE).status == 201
    assert lost
    assert len(read(api)[0]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 3, 1000])
def test_pages_join_to_one_read_and_only_the_last_has_a_position(api: Api, limit: int) -> None:
    for number in range(12):
        append(
            api, event("Subscribed", *(["course:1"], ["student:7"], ["course:1", "student:7"])[number % 3])
        )
    whole, end = read(api, EITHER)
    found, position = read(api, EITHER, limit=limit)
    assert (found, position) == (whole, end)
    assert len(found) == 12
    assert read(api, EITHER, after=position) == ([], position)


def test_what_comes_between_two_pages_is_on_neither_and_in_the_way(api: Api) -> None:
    append(api, event(), event())
    first = query(api, limit=1).json
    append(api, event("Late", "course:1"))
    second = query(api, limit=1, **{"from": first["next"]}).json
    assert (second["next"], len(second["events"])) == (None, 1)
    answer = append(api, event(), failIf=COURSE, after=second["position"])
    assert [each["type"] for each in answer.json["events"]] == ["Late"]


@pytest.mark.slow
def test_a_page_and_a_conflict_end_at_four_megabytes_and_go_on(api: Api) -> None:
    for _ in range(20):
        assert append(api, event(data="x" * 300_000)).status == 201
    page, conflict = query(api), append(api, event(), failIf=COURSE)
    for answer in (page, conflict):
        assert 1 < len(answer.json["events"]) < 20
        assert len(json.dumps(answer.text)) < RESPONSE_BYTES + 10_000
    assert conflict.json["more"] is True
    rest, position = read(api, after=conflict.json["position"])
    assert [*conflict.json["events"], *rest] == read(api)[0]
    assert append(api, event(), failIf=COURSE, after=position).status == 201


@pytest.mark.slow
def test_quotes_count_twice_where_an_answer_is_measured(api: Api) -> None:
    for _ in range(16):
        append(api, event(data='"' * 150_000))
    answer = query(api)
    assert answer.json["next"] is not None
    assert len(json.dumps(answer.text)) < RESPONSE_BYTES + 10_000


def test_a_page_may_be_empty_and_still_have_moved_on(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    for paging in (sekiban_reading, tag_reading, query_reads):
        monkeypatch.setattr(paging, "ENTRIES", 2)
    for number in range(9):
        tag = "rare" if number == 8 else "x"
        append(api, event("A", "course:1", tag, data=Random(number).randbytes(600).hex()))
    asked = {"items": [{"tags": ["course:1", "rare"]}]}
    first = query(api, asked, limit=1).json
    assert (first["events"], first["position"]) == ([], None)
    assert len(read(api, asked)[0]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_a_page_of_one_event_reads_little_more_than_that_event(
    direction: str, capsys: pytest.CaptureFixture[str]
) -> None:
    api = Api(pages=True)
    for number in range(120):
        append(api, event(data=Random(number).randbytes(300).hex()))
    capsys.readouterr()
    assert len(query(api, limit=1, direction=direction).json["events"]) == 1
    assert json.loads(capsys.readouterr().out)["ReadUnits"] <= 2


def test_with_type_heads_a_query_may_name_types_alone_or_nothing() -> None:
    api = Api(type_heads=True)
    append(api, event("A", "t:1"), event("B", "t:2"))
    for asked, types in (({"types": ["A"]}, ["A"]), ({}, ["A", "B"]), ({"types": []}, ["A", "B"])):
        found, position = read(api, {"items": [asked]})
        assert [each["type"] for each in found] == types
        assert append(api, event("A"), failIf={"items": [asked]}, after=position).status == 201
        assert append(api, event("A"), failIf={"items": [asked]}, after=position).status == 409
        api = Api(type_heads=True)
        append(api, event("A", "t:1"), event("B", "t:2"))


def test_what_another_library_stored_that_is_no_json_is_shown_as_bytes() -> None:
    api = Api()
    append(api, event(id=ID))
    (item,) = api.tables.items("events")
    _store(api, {**item, "payload": {"S": "{not json"}})
    shown = api.call("GET", f"/dcb/events/{ID}").json
    assert shown["data64"] == b64encode(b"{not json").decode()
    assert "data" not in shown


def test_what_is_in_the_bucket_is_a_link_and_no_page_is_filled_by_it() -> None:
    api = Api(pages=True)
    large = Random(1).randbytes(600_000).hex()
    made = append(api, event(data=large, id=ID), event(data="small"))
    assert made.status == 201, made.text
    conflict = append(api, event(), failIf=COURSE)
    for shown in (
        query(api).json["events"],
        conflict.json["events"],
        api.call("GET", "/events", query="tag=course:1").json["events"],
        [api.call("GET", f"/events/{ID}").json, event(data="small")],
    ):
        assert [each.get("data") for each in shown] == [None, "small"]
        link = shown[0]["dataUrl"]
        assert (link["encoding"], len(link["sha256"])) == ("br", 64)


@pytest.mark.slow
def test_one_event_that_no_answer_can_hold_is_shown_without_its_bodies() -> None:
    api = Api(pages=True)
    for body in ("x" * 5_600_000, "small"):
        assert append(api, event(data=body, id=ID if body != "small" else str(UUID(int=1)))).status == 201
    listed = api.call("GET", "/events", query="tag=course:1").json
    for shown in (query(api).json["events"][0], listed["events"][0], api.call("GET", f"/events/{ID}").json):
        assert (shown["omitted"], "data" in shown) == (True, False)
    assert [each.get("data") for each in read(api)[0]] == [None, "small"]


def _store(api: Api, item: Any) -> None:
    api.tables.execute(Put(table="events", item=item))


def test_an_event_of_pages_says_where_it_is_so_that_one_goes_on_from_there() -> None:
    api = Api(pages=True)
    append(api, event("First", id=ID))
    append(api, event("Second"))
    one = api.call("GET", f"/dcb/events/{ID}").json
    found, _ = read(api, after=one["position"])
    assert [each["type"] for each in found] == ["Second"]
