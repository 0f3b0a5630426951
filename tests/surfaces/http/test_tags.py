"""The routes that list tags."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from epochal.plan.ops import Delete
from tests.support.api import Api


@pytest.fixture(params=["pages", "dcb"])
def api(request: pytest.FixtureRequest) -> Api:
    """Three courses with one to three events, and a student."""
    api = Api(pages=request.param == "pages")
    for number in (1, 2, 2, 3, 3, 3):
        append(api, f"course:{number}", *(["student:7"] if number == 1 else []))
    return api


def append(api: Api, *tags: str) -> dict[str, Any]:
    answer = api.call("POST", "/dcb/events", {"events": [{"type": "A", "data": 1, "tags": list(tags)}]})
    assert answer.status == 201, answer.text
    made: dict[str, Any] = answer.json["events"][0]
    return made


def pages(api: Api, query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    start = ""
    while True:
        page = api.call("GET", "/dcb/tags", query=f"{query}{start}").json
        found += page["tags"]
        if page["next"] is None:
            return found
        start = f"&from={quote(page['next'], safe='')}"


@pytest.mark.parametrize("limit", [1, 2, 3, 1000])
def test_the_tags_of_a_group_come_in_order_with_their_counts(api: Api, limit: int) -> None:
    assert pages(api, f"group=course&limit={limit}") == [
        {"tag": "course:1", "events": 1},
        {"tag": "course:2", "events": 2},
        {"tag": "course:3", "events": 3},
    ]


@pytest.mark.parametrize("limit", [1, 3, 1000])
def test_without_a_group_all_tags_come_once_and_no_reserved_ones(api: Api, limit: int) -> None:
    append(api)
    found = sorted(each["tag"] for each in pages(api, f"limit={limit}"))
    assert found == ["course:1", "course:2", "course:3", "student:7"]


def test_a_group_without_tags_is_an_empty_page(api: Api) -> None:
    assert api.call("GET", "/dcb/tags", query="group=nothing").json == {"tags": [], "next": None}


def test_a_tag_has_its_count_and_its_latest_event(api: Api) -> None:
    made = append(api, "course:2")
    assert api.call("GET", "/dcb/tags/course:2").json == {
        "tag": "course:2",
        "group": "course",
        "events": 3,
        "latest": {**made, "type": "A"},
    }


def test_a_tag_without_events_is_404(api: Api) -> None:
    answer = api.call("GET", "/dcb/tags/course:9")
    assert (answer.status, answer.problem) == (404, "tag-not-found")
    assert api.call("GET", "/dcb/tags", query="tag=course:9").json == {"tags": [], "next": None}


@pytest.mark.slow
@pytest.mark.parametrize("tag", ["a/b", "100%", "%2F", "a b", "ä:ö", "a?b#c&d=e", '"', "a:b:c"])
def test_any_tag_is_found_by_the_query_string_whatever_it_holds(api: Api, tag: str) -> None:
    append(api, tag)
    found = api.call("GET", "/dcb/tags", query=f"tag={quote(tag, safe='')}")
    assert found.json == {"tags": [{"tag": tag, "events": 1}], "next": None}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "query", "field"),
    [
        ("", "group=", "group"),
        ("", "group=$type", "group"),
        ("", "group=a:b", "group"),
        ("", "tag=", "tag"),
        ("", "tag=$all", "tag"),
        ("", "tag=a&group=a", "tag"),
        ("", "tag=a&from=x", "tag"),
        ("", "limit=0", "limit"),
        ("", "limit=1001", "limit"),
        ("", "from=x", "from"),
        ("", "from=", "from"),
        ("", "from=bnVsbA", "from"),
        ("", "group=course&from=student:7", "from"),
        ("", "group=a&group=b", "group"),
        ("", "since=1", "since"),
        ("/$all", "", "tag"),
        ("/", "", "tag"),
        ("/a\n", "", "tag"),
        (f"/{'x' * 513}", "", "tag"),
        ("/a", "limit=1", "limit"),
    ],
)
def test_malformed_input_is_refused_by_its_parameter(api: Api, path: str, query: str, field: str) -> None:
    answer = api.call("GET", f"/dcb/tags{path}", query=query)
    assert (answer.status, answer.json["field"]) == (400, field), answer.text
    assert answer.json["detail"] == f"{field}: {answer.json['rule']}"


def test_a_body_is_refused(api: Api) -> None:
    for path in ("/dcb/tags", "/dcb/tags/course:1"):
        assert api.call("GET", path, {}).json["field"] == "body"


@pytest.mark.parametrize("limit", [1, 2, 1000])
def test_a_tag_s_entries_are_all_that_are_counted_in_order_page_by_page(api: Api, limit: int) -> None:
    found, start = list[dict[str, Any]](), ""
    while True:
        page = api.call("GET", "/dcb/tags/course:3/entries", query=f"limit={limit}{start}")
        assert page.status == 200, page.text
        found += page.json["entries"]
        if page.json["next"] is None:
            break
        start = f"&from={page.json['next']}"
    assert [each["index"] for each in found] == [0, 1, 2]
    assert [each["type"] for each in found] == ["A"] * 3
    listed = api.call("GET", "/dcb/events", query="tag=course:3").json["events"]
    assert [each["id"] for each in found] == [each["id"] for each in listed]


def test_a_tag_that_no_event_has_has_no_entries(api: Api) -> None:
    assert api.call("GET", "/dcb/tags/none/entries").json == {"entries": [], "next": None}


def test_what_expired_is_listed_as_an_entry_as_it_is_counted() -> None:
    api = Api(pages=False)
    kept, gone = append(api, "a:1"), append(api, "a:1")
    for item in list(api.tables.items("events")):
        if item["eventId"] == {"S": gone["id"]}:
            api.tables.execute(Delete(table="events", key={name: item[name] for name in ("pk", "sk")}))
    counted = api.call("GET", "/dcb/tags/a:1").json["events"]
    entries = api.call("GET", "/dcb/tags/a:1/entries").json["entries"]
    assert counted == len(entries) == 2
    assert [each["id"] for each in api.call("GET", "/dcb/events", query="tag=a:1").json["events"]] == [
        kept["id"]
    ]
