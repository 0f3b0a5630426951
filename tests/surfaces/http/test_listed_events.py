"""The routes that list and count tagged events: all of them or a tag's, since a position."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.api import Api


@pytest.fixture(params=["pages", "dcb"])
def api(request: pytest.FixtureRequest) -> Api:
    """Five events of a course, two of which a student has too, and one without tags."""
    api = Api(pages=request.param == "pages", everything=True)
    for number in range(5):
        append(api, "course:1", *(["student:7"] if number % 2 else []))
    append(api)
    return api


def append(api: Api, *tags: str) -> dict[str, Any]:
    answer = api.call(
        "POST", "/dcb/events", {"events": [{"type": "A", "data": {"n": 1}, "tags": list(tags)}]}
    )
    assert answer.status == 201, answer.text
    made: dict[str, Any] = answer.json["events"][0]
    return made


def listed(api: Api, query: str = "") -> list[dict[str, Any]]:
    """Every page; the answers are held to the document by `Api`."""
    found: list[dict[str, Any]] = []
    since = ""
    while True:
        page = api.call("GET", "/dcb/events", query=f"{query}{since}")
        assert page.status == 200, page.text
        found += page.json["events"]
        if page.json["next"] is None:
            return found
        since = f"&from={page.json['next']}"


@pytest.mark.parametrize("limit", [1, 2, 5, 6, 1000])
def test_all_events_come_in_order_and_once_however_long_a_page_is(api: Api, limit: int) -> None:
    found = listed(api, f"limit={limit}")
    assert len(found) == len({event["id"] for event in found}) == 6
    assert [event["place"] for event in found] == sorted(event["place"] for event in found)
    assert found[0]["data"] == {"n": 1}


@pytest.mark.parametrize("limit", [1, 2, 1000])
def test_a_tags_events_are_those_that_have_it(api: Api, limit: int) -> None:
    assert [event["tags"] for event in listed(api, f"tag=student:7&limit={limit}")] == [
        ["course:1", "student:7"],
        ["course:1", "student:7"],
    ]
    assert listed(api, "tag=nobody:1") == []


def test_what_came_since_a_position_is_listed_and_counted(api: Api) -> None:
    first, *later = listed(api)
    since = first["place"]
    assert listed(api, f"from={since}") == later
    assert listed(api, f"tag=course:1&from={since}") == [event for event in later if event["tags"]]
    assert api.call("GET", "/dcb/count").json == {"events": 6}
    assert api.call("GET", "/dcb/count", query=f"from={since}").json == {"events": 5}
    assert api.call("GET", "/dcb/count", query=f"from={later[-1]['place']}").json == {"events": 0}


@pytest.mark.parametrize(
    ("path", "query", "field"),
    [
        ("/dcb/events", "from=1", "from"),
        ("/dcb/events", "limit=0", "limit"),
        ("/dcb/events", "limit=1001", "limit"),
        ("/dcb/events", "tag=$all", "tag"),
        ("/dcb/events", "type=A", "type"),
        ("/dcb/count", "from=0@1", "from"),
        ("/dcb/count", "tag=course:1", "tag"),
    ],
)
def test_a_request_that_makes_no_sense_names_the_parameter(
    api: Api, path: str, query: str, field: str
) -> None:
    answer = api.call("GET", path, query=query)
    assert (answer.status, answer.problem, answer.json["field"]) == (400, "invalid-input", field)
