"""`GET /feed` and `GET /feed/{partition}`."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace

import pytest

from epochal.contrib.event_store_adapter.ids import aggregate_id
from epochal.contrib.event_store_adapter.model import AggregateEvent
from epochal.feed.results import FeedPage
from epochal.feed.waiting import LONGEST_POLL
from epochal.http.feed import again
from epochal.index.checkpoints import Checkpoint, tip_key
from epochal.model.events import Event
from epochal.model.stream_names import StreamName
from epochal.plan.ops import Delete, Put
from epochal.settings import WAIT_SECONDS
from tests.support.api import Answer, Api


@pytest.fixture
def api() -> Api:
    """Three entries in the index: two streams, then one of them again."""
    api = Api(store="tips")
    for stream, kinds in (("Cat-1", "AB"), ("Dog-1", "C"), ("Cat-1", "D")):
        api.append(stream, *kinds)
        api.index()
    return api


def read(api: Api, query: str = "", partition: int = 0) -> Answer:
    answer = api.call("GET", f"/feed/{partition}", query=query)
    assert answer.status == 200, answer.text
    return answer


def places(answer: Answer) -> list[tuple[str, int, str]]:
    return [(item["stream"], item["index"], item["type"]) for item in answer.json["items"]]


def test_an_event_that_cannot_be_read_is_shown_with_its_fault_and_the_page_goes_on(api: Api) -> None:
    key = tip_key(StreamName("Cat-1"))
    tip = next(item for item in api.tables.items("tips") if item["p"] == key["p"] and item["i"] == key["i"])
    events = list(tip["e"]["L"])
    events[1] = {"M": {**events[1]["M"], "d": {"B": b"x"}, "D": {"N": "3"}}}
    api.tables.execute(Put(table="tips", item={**tip, "e": {"L": events}}))

    answer = read(api, "data=true&limit=100")

    assert places(answer) == ALL
    assert answer.json["atTail"]
    assert [item.get("fault") for item in answer.json["items"]] == [
        None,
        {"type": "urn:epochal:problem:corrupt-data", "detail": "Cat-1 (index 1): unknown body encoding 3"},
        None,
        None,
    ]
    assert [item["type"] for item in answer.json["items"] if "timestamp" in item] == ["A", "C", "D"]


@pytest.mark.parametrize("changed", [{"encoding": 3}, {"key": ""}, {"key": "\ud800"}], ids=repr)
def test_a_claim_that_cannot_be_kept_is_a_fault_of_its_event_alone(
    api: Api, changed: dict[str, object]
) -> None:
    claim = json.dumps({"key": "bodies/1", "sha256": "0" * 64, "bytes": 5, **changed}).encode()
    key = tip_key(StreamName("Cat-1"))
    tip = next(item for item in api.tables.items("tips") if item["p"] == key["p"] and item["i"] == key["i"])
    events = list(tip["e"]["L"])
    events[1] = {"M": {**events[1]["M"], "d": {"B": claim}, "D": {"N": "64"}}}
    api.tables.execute(Put(table="tips", item={**tip, "e": {"L": events}}))

    answer = read(api, "data=true&limit=100")

    assert places(answer) == ALL
    assert ["fault" in item for item in answer.json["items"]] == [False, True, False, False]


def test_an_aggregate_whose_event_cannot_be_read_is_in_nobodys_way(api: Api) -> None:
    for name in ("alice", "bob"):
        api.aggregates.append(
            aggregate_id("order", name), [AggregateEvent(type="A", data=b"{}")], snapshot=b"{}"
        )
    api.index()
    item = next(item for item in api.tables.items("journal") if item["aid"]["S"] == "order-alice")
    marked = {**item, "payload": {"B": b'{"type":"A","data":{'}}
    api.tables.execute(Put(table="journal", item=marked))

    items = read(api, "data=true&limit=1", partition=10_000).json["items"]

    assert [(item["stream"], "fault" in item) for item in items] == [
        ("order-alice", True),
        ("order-bob", False),
    ]


ALL = [("Cat-1", 0, "A"), ("Cat-1", 1, "B"), ("Dog-1", 0, "C"), ("Cat-1", 2, "D")]


def test_the_feed_is_read_from_its_beginning_to_its_tail(api: Api) -> None:
    answer = read(api)
    assert places(answer) == ALL
    assert (answer.json["partition"], answer.json["next"], answer.json["atTail"]) == (0, "0@3", True)
    assert all(set(item) == {"stream", "index", "type"} for item in answer.json["items"])


def test_following_next_reads_every_item_once(api: Api) -> None:
    found, start = [], "0"
    for _ in range(3):
        page = read(api, f"from={start}&limit=1")
        found += places(page)
        start = page.json["next"]
    assert found == ALL
    assert places(read(api, f"from={start}")) == []


@pytest.mark.parametrize("start", ["0@2", "2"])
def test_a_checkpoint_may_be_text_or_a_number(api: Api, start: str) -> None:
    assert places(read(api, f"from={start}")) == ALL[3:]


def test_a_reader_may_begin_at_the_tail(api: Api) -> None:
    page = read(api, "from=tail")
    assert (places(page), page.json["next"]) == ([], "0@3")
    api.append("Dog-1", "E")
    api.index()
    assert places(read(api, f"from={page.json['next']}")) == [("Dog-1", 1, "E")]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("category=Dog", ALL[2:3]),
        ("category=Cat&category=Dog", ALL),
        ("category=Do", []),
        ("category=a%2Bb", []),
    ],
)
def test_a_feed_can_be_of_some_categories(api: Api, query: str, expected: list[tuple[str, int, str]]) -> None:
    page = read(api, query)
    assert places(page) == expected
    assert page.json["next"] == "0@3"


def test_events_come_with_their_data_where_asked(api: Api) -> None:
    shown = {(item["stream"], item["index"]): item for item in read(api, "data=true").json["items"]}
    for stream in ("Cat-1", "Dog-1"):
        for event in api.call("GET", f"/streams/{stream}/events").json["events"]:
            assert shown.pop((stream, event["index"])) == event
    assert not shown


def test_an_event_pruned_since_is_shown_as_that(api: Api) -> None:
    api.call("POST", "/streams/Cat-1/prune", {"before": 1})
    first, second, *_ = read(api, "data=true").json["items"]
    assert first == {"stream": "Cat-1", "index": 0, "type": "A", "pruned": True}
    assert second["data"] == {"n": 1}


def test_what_was_pruned_and_deleted_is_shown_where_that_is_asked_for_and_where_it_was(api: Api) -> None:
    api.call("POST", "/streams/Cat-1/prune", {"before": 1})
    api.call("DELETE", "/streams/Cat-1")
    api.index()
    assert places(read(api)) == ALL
    for query in ("removals=true", "removals=true&data=true"):
        *events, pruned, deleted = read(api, query).json["items"]
        assert [(each["stream"], each["index"], each["type"]) for each in events] == ALL
        common = {"stream": "Cat-1"}
        assert pruned == {
            **common,
            "index": 1,
            "type": "$pruned",
            "removed": {"from": 0, "to": 1, "next": pruned["removed"]["next"]},
        }
        assert (deleted["type"], deleted["removed"]["from"]) == ("$deleted", 1)
        assert deleted["index"] == deleted["removed"]["to"] == deleted["removed"]["next"]
    assert places(read(api, "removals=true&category=Dog")) == ALL[2:3]
    newest, older, *_ = read(api, "removals=true&direction=backward").json["items"]
    assert (newest["type"], older["type"]) == ("$deleted", "$pruned")


# Every quote and backslash counts twice in a function's answer.
@pytest.mark.parametrize(("character", "most"), [("x", 20), ('"', 6)])
@pytest.mark.slow
def test_a_page_with_data_ends_where_its_answer_is_full_and_the_next_goes_on(
    character: str, most: int
) -> None:
    api = Api(store="tips")
    for n in range(30):
        api.streams.append(f"Cat-{n}", [Event(type="A", data=json.dumps(character * 200_000).encode())])
        api.index()
    found, start, at_tail = [], "0", False
    while not at_tail:
        answer = read(api, f"data=true&from={start}")
        assert len(answer.json["items"]) <= most
        assert len(json.dumps(answer.text)) < 4.5 * 1024**2
        found += answer.json["items"]
        start, at_tail = answer.json["next"], answer.json["atTail"]
    assert [item["stream"] for item in found] == [f"Cat-{n}" for n in range(30)]
    assert all(item["data"] == character * 200_000 for item in found)


def test_events_of_an_entry_beyond_the_room_of_an_answer_are_marked_and_none_is_missing() -> None:
    api = Api(store="tips")
    for _ in range(30):
        api.streams.append("Cat-1", [Event(type="A", data=json.dumps("x" * 200_000).encode())])
    api.index()
    api.append("Dog-1", "B")
    api.index()
    page = read(api, "data=true").json
    assert [(item["index"], item.get("omitted", False)) for item in page["items"]] == [
        *((n, False) for n in range(20)),
        *((n, True) for n in range(20, 30)),
    ]
    assert all("data" not in item for item in page["items"][20:])
    assert (page["next"], page["atTail"]) == ("0@1", False)
    assert places(read(api, f"data=true&from={page['next']}")) == [("Dog-1", 0, "B")]


@pytest.mark.proof
@pytest.mark.parametrize("query", ["", "data=true&"])
def test_a_batch_of_many_small_events_fits_answers_as_large_ones_do(query: str) -> None:
    api = Api(store="tips")
    for n in range(25):
        api.streams.append(f"Cat-{n}-{'x' * 450}", [Event(type="SomethingHappened")] * 500)
    api.index()
    found, start, at_tail = Counter[str](), "0", False
    while not at_tail:
        page = read(api, f"{query}limit=10000&from={start}")
        assert len(json.dumps(page.text)) < 6_000_000
        found.update(item["stream"] for item in page.json["items"])
        start, at_tail = page.json["next"], page.json["atTail"]
    assert set(found.values()) == {500}
    assert len(found) == 25


def test_bodies_in_the_bucket_come_as_links_and_are_not_fetched() -> None:
    api = Api(store="tips")
    api.streams.append("Cat-1", [Event(type="A", data=random.Random(1).randbytes(500_000))])
    api.index()
    (shown,) = api.call("GET", "/streams/Cat-1/events").json["events"]
    api.bodies.objects.clear()
    assert read(api, "data=true").json["items"] == [shown]
    assert shown["dataUrl"]["bytes"] == 500_000


def test_a_long_poll_ends_as_soon_as_something_comes(api: Api) -> None:
    def something() -> None:
        if api.clock.now > 3:
            api.append("Dog-1", "E")
            api.index()

    api.clock.at_sleep = something
    page = read(api, "from=0@3&wait=20")
    assert ("Dog-1", 1, "E") in places(page)
    assert 3 < api.clock.now < 4


def test_a_long_poll_ends_empty_at_the_checkpoint_it_began_at(api: Api) -> None:
    page = read(api, "from=0@3&wait=5")
    assert (places(page), page.json["next"], page.json["atTail"]) == ([], "0@3", True)
    assert api.clock.now == pytest.approx(5)


def test_nobody_waits_longer_than_the_deployment_lets_him(api: Api) -> None:
    page = read(api, "from=0@3&wait=20")
    assert (places(page), page.json["next"]) == ([], "0@3")
    assert api.clock.now == pytest.approx(WAIT_SECONDS)


def test_where_nobody_may_wait_the_answer_comes_at_once(api: Api) -> None:
    unwilling = Api(store="tips", tables=api.tables, feed_wait_seconds=0)
    assert read(unwilling, "from=0@3&wait=20").json["atTail"]
    assert unwilling.clock.now == 0


@pytest.mark.parametrize("query", ["from=0@3", "from=0@3&wait=5", "from=tail", "from=0@3&category=Dog"])
def test_an_empty_page_at_the_tail_says_when_to_ask_again(api: Api, query: str) -> None:
    page = read(api, query)
    assert (places(page), page.headers["Retry-After"]) == ([], str(int(LONGEST_POLL)))


@pytest.mark.parametrize("query", ["from=0@2", "from=0@0&direction=backward", "limit=1"])
def test_a_page_that_has_items_or_reads_back_does_not(api: Api, query: str) -> None:
    assert "Retry-After" not in read(api, query).headers


def test_an_empty_page_before_the_tail_does_not() -> None:
    page = FeedPage(items=(), next=Checkpoint(5), at_tail=False)
    assert (again(page), again(replace(page, at_tail=True))) == ({}, {"Retry-After": "2"})


def test_an_empty_page_in_order_says_when_to_ask_again(api: Api) -> None:
    found = api.call("POST", "/feed/ordered", {"within": 0, "from": "tail"})
    assert (found.json["items"], found.headers["Retry-After"]) == ([], "2")
    full = api.call("POST", "/feed/ordered", {"within": 0})
    assert full.json["items"]
    assert "Retry-After" not in full.headers


def test_a_long_poll_ends_in_time_for_its_function(api: Api) -> None:
    api = Api(store="tips", tables=api.tables, feed_wait_seconds=20)
    answer = api.call("GET", "/feed/0", query="from=0@3&wait=20", seconds=12.0)
    assert answer.status == 200
    assert api.clock.now <= 11


def test_a_feed_without_events_is_empty_and_at_its_tail() -> None:
    page = read(Api())
    assert (places(page), page.json["next"], page.json["atTail"]) == ([], "0@0", True)


def test_every_partition_is_listed_with_its_tail(api: Api) -> None:
    assert api.call("GET", "/feed").json == {
        "partitions": [
            {"partition": 0, "tail": "0@3"},
            {"partition": 10_000, "tail": "0@0"},
            {"partition": 20_000, "tail": "0@0"},
            {"partition": 30_000, "tail": "0@0"},
        ]
    }


def test_partitions_that_nothing_was_indexed_in_are_listed_too() -> None:
    listed = Api(store="tips", partitions=3).call("GET", "/feed").json["partitions"]
    assert listed == [{"partition": number, "tail": "0@0"} for number in (0, 1, 2, 10_000, 20_000, 30_000)]


def test_streams_are_spread_over_partitions_and_none_is_in_two() -> None:
    api = Api(store="tips", partitions=3)
    for n in range(20):
        api.append(f"Cat-{n}", "A")
    api.index()
    found = [stream for number in range(3) for stream, _, _ in places(read(api, partition=number))]
    assert sorted(found) == sorted(f"Cat-{n}" for n in range(20))
    tails = {each["partition"]: each["tail"] for each in api.call("GET", "/feed").json["partitions"]}
    assert [tails[number] for number in range(3)] == ["0@1"] * 3


def test_aggregates_and_tagged_events_are_in_partitions_of_their_own(api: Api) -> None:
    api.aggregates.append(
        aggregate_id("order", "1"), [AggregateEvent(type="Placed", data=b'{"n":1}')], snapshot=b"{}"
    )
    api.tagged.append([Event(type="Enrolled", data=b'{"n":2}', tags=("student:7", "course:1"))])
    api.tagged.append([Event(type="Token", data=b"{}", tags=("course:1",))])
    api.index()
    for item in [item for item in api.tables.items("events") if item["eventType"]["S"] == "Token"]:
        api.tables.execute(Delete(table="events", key={name: item[name] for name in ("pk", "sk")}))
    (placed,) = read(api, "data=true", 10_000).json["items"]
    assert (placed["stream"], placed["index"], placed["data"]) == ("order-1", 0, {"n": 1})
    course, student, token = read(api, "data=true", 20_000).json["items"]
    assert (course["stream"], student["stream"]) == ("course:1", "student:7")
    assert course["tags"] == student["tags"] == ["course:1", "student:7"]
    assert course["id"] == student["id"]
    assert token == {"stream": "course:1", "index": 1, "type": "Token", "expired": True}
    assert places(read(api, "category=student", 20_000)) == [("student:7", 0, "Enrolled")]


def test_a_category_may_be_of_tags_that_are_streams_and_a_declared_type_that_holds_a_hyphen() -> None:
    api = Api(pages=True)
    account = aggregate_id("user-account", "1")
    api.aggregates.append(account, [AggregateEvent(type="Created", data=b"{}")], snapshot=b"{}")
    api.aggregates.append(
        aggregate_id("order", "1"), [AggregateEvent(type="Placed", data=b"{}")], snapshot=b"{}"
    )
    api.deployment.tagged.append([Event(type="Enrolled", data=b"{}", tags=("student:7", "course:1"))])
    api.index()
    assert places(read(api, "category=user-account", 10_000)) == [("user-account-1", 0, "Created")]
    assert places(read(api, "category=%24tag-course", 30_000)) == [("$tag-course:1", 0, "Enrolled")]
    assert places(read(api, "category=course", 30_000)) == []


@pytest.mark.parametrize(
    ("start", "found"), [("2000-01-01T00:00:00Z", ALL), ("9999-01-01T00:00:00%2B01:00", [])]
)
def test_a_reader_may_begin_at_a_moment(api: Api, start: str, found: list[tuple[str, int, str]]) -> None:
    assert places(read(api, f"from={start}")) == found


def test_backward_the_newest_come_first_and_next_goes_on(api: Api) -> None:
    found, start = [], ""
    while True:
        page = read(api, f"direction=backward&limit=1&data=true&wait=20{start}")
        found += places(page)
        if page.json["atTail"]:
            break
        start = f"&from={page.json['next']}"
    assert found == ALL[::-1]
    assert places(read(api, "direction=backward&from=0@0&wait=20")) == []
    assert api.call("GET", "/feed/0", query="direction=up").problem == "invalid-input"


@pytest.mark.parametrize("place", ["2000-13-01T00:00", "2000-01-01", "now"])
def test_what_is_no_place_is_refused(api: Api, place: str) -> None:
    answer = api.call("GET", "/feed/0", query=f"from={place}")
    assert (answer.status, answer.problem, answer.json["field"]) == (400, "invalid-input", "from")


@pytest.mark.parametrize("place", ["0@99", "7@0", "7@7"])
def test_a_checkpoint_beyond_the_end_is_refused(api: Api, place: str) -> None:
    answer = api.call("GET", "/feed/0", query=f"from={place}")
    assert (answer.status, answer.problem, answer.json["field"]) == (400, "invalid-input", "from")


def test_a_partition_that_there_is_not_is_404(api: Api) -> None:
    answer = api.call("GET", "/feed/1")
    assert (answer.status, answer.problem, answer.json["partition"]) == (404, "partition-not-found", 1)


def test_the_newest_of_all_partitions_come_first_and_a_page_goes_on_before_its_last() -> None:
    api = Api(partitions=3)
    names = [f"Cat-{number}" for number in range(9)]
    for name in names:
        api.append(name, "A")
        api.index()
    found, before = list[str](), ""
    while True:
        answer = api.call("GET", "/feed/newest", query=f"limit=2&data=true{before}")
        assert answer.status == 200
        found += [item["stream"] for item in answer.json["items"]]
        assert all("timestamp" in item for item in answer.json["items"])
        if answer.json["atBeginning"]:
            break
        before = f"&before={answer.json['next']}"
    assert found == names[::-1]
    bare = api.call("GET", "/feed/newest", query="category=Cat").json
    assert [set(item) for item in bare["items"]] == [{"stream", "index", "type"}] * 9
    assert api.call("GET", "/feed/newest", query="category=Dog").json["items"] == []


@pytest.mark.parametrize("data", ["true", "false"])
def test_the_newest_that_were_indexed_together_come_newest_first(data: str) -> None:
    api = Api(store="tips", partitions=4)
    names = [f"Cat-{number:03}" for number in range(60)]
    for name in names:
        api.append(name, "A")
    api.index()
    page = api.call("GET", "/feed/newest", query=f"limit=10&data={data}").json
    assert [item["stream"] for item in page["items"][:10]] == names[:-11:-1]


@pytest.mark.slow
def test_the_newest_and_the_feed_in_order_have_what_an_answer_has_room_for() -> None:
    api = Api()
    names = [f"Cat-{number}" for number in range(72)]
    for number, name in enumerate(names):
        api.streams.append(name, [Event(type="A", data=random.Random(number).randbytes(100_000))])
        api.index()
    newest = api.call("GET", "/feed/newest", query="data=true").json
    shown = [item["stream"] for item in newest["items"]]
    assert 24 <= len(shown) <= 36
    rest = api.call("GET", "/feed/newest", query=f"before={newest['next']}").json
    assert shown + [item["stream"] for item in rest["items"]] == names[::-1]

    streams, start = list[str](), "beginning"
    for _ in range(3):
        page = api.call("POST", "/feed/ordered", {"within": 0, "from": start}).json
        assert len(page["items"]) <= 36
        assert all("data64" in item for item in page["items"])
        streams += [item["stream"] for item in page["items"]]
        start = page["next"]
    assert streams == names
    assert page["atTail"]


def test_the_feed_in_order_has_what_was_written_first_first_and_goes_on_within_a_window() -> None:
    """Within a window what is younger is held back, and comes with a later page."""
    api = Api(partitions=3)
    for number in range(8):
        api.append(f"Cat-{7 - number}", f"T{number}")
    api.index()
    assert [item["type"] for item in api.call("POST", "/feed/ordered", {"within": 60}).json["items"]] == []
    found, start = list[str](), "beginning"
    while True:
        page = api.call("POST", "/feed/ordered", {"within": 0, "limit": 1, "from": start}).json
        found += [item["type"] for item in page["items"]]
        start = page["next"]
        if page["atTail"]:
            break
    assert found == [f"T{number}" for number in range(8)]
    some = api.call("POST", "/feed/ordered", {"within": 0, "categories": ["Dog"]}).json
    assert (some["items"], some["atTail"]) == ([], True)


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({}, "within"),
        ({"within": -1}, "within"),
        ({"within": 61}, "within"),
        ({"within": 0.5}, "within"),
        ({"within": 0, "from": "0@1"}, "from"),
        ({"within": 0, "from": "{"}, "from"),
        ({"within": 0, "from": '{"0":["0@99"]}'}, "from"),
        ({"within": 0, "from": "soon"}, "from"),
        ({"within": 0, "limit": 0}, "limit"),
        ({"within": 0, "wait": 21}, "wait"),
        ({"within": 0, "categories": ["a-b"]}, "category"),
        ({"within": 0, "categories": [1]}, "categories[0]"),
        ({"within": 0, "data": True}, "data"),
    ],
)
def test_a_reading_in_order_that_cannot_be_is_refused(api: Api, sent: dict[str, object], field: str) -> None:
    answer = api.call("POST", "/feed/ordered", sent)
    assert (answer.status, answer.problem, answer.json["field"]) == (400, "invalid-input", field)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("before=tail", "before"),
        ("before=0:0@99", "from"),
        ("limit=0", "limit"),
        ("category=a-b", "category"),
    ],
)
def test_newest_of_what_cannot_be_is_refused(api: Api, query: str, field: str) -> None:
    answer = api.call("GET", "/feed/newest", query=query)
    assert (answer.status, answer.problem, answer.json["field"]) == (400, "invalid-input", field)


def test_a_writer_waits_until_its_events_are_in_the_feed() -> None:
    api = Api()
    version = api.append("Cat-1", "A", "B").json["version"]

    def position_of(version: int, wait: int = 0) -> str | None:
        answer = api.call("GET", "/feed/position", query=f"stream=Cat-1&version={version}&wait={wait}")
        assert answer.status == 200
        found: str | None = answer.json["position"]
        return found

    assert position_of(version, wait=1) is None
    api.index()
    assert position_of(version + 1, wait=1) is None
    position = position_of(version)
    assert position is not None
    page = api.call("GET", "/feed/30000", query=f"direction=backward&from={position.split(':')[1]}").json
    assert [item["index"] for item in page["items"]] == [1, 0]


def test_a_wait_for_a_position_is_no_longer_than_the_deployment_lets_it_be() -> None:
    api = Api(feed_wait_seconds=3)
    api.append("Cat-1", "A")
    api.index()
    began = api.clock()
    assert api.call("GET", "/feed/position", query="stream=Cat-1&version=2&wait=20").json == {
        "position": None
    }
    assert 3 <= api.clock() - began <= 6


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("", "stream"),
        ("stream=&version=1", "stream"),
        ("stream=Cat-1", "version"),
        ("stream=Cat-1&version=0", "version"),
        ("stream=Cat-1&version=1&source=nothing", "source"),
        ("stream=Cat-1&version=1&wait=21", "wait"),
    ],
)
def test_a_position_of_what_cannot_be_is_refused(api: Api, query: str, field: str) -> None:
    answer = api.call("GET", "/feed/position", query=query)
    assert (answer.status, answer.problem, answer.json["field"]) == (400, "invalid-input", field)


def test_streams_are_listed_by_creation_by_category_and_by_name(api: Api) -> None:
    def listed(query: str) -> list[str]:
        answer = api.call("GET", "/streams", query=query)
        assert answer.status == 200
        return [each["stream"] for each in answer.json["streams"]]

    everything = list(dict.fromkeys(stream for stream, _, _ in ALL))
    assert listed("") == everything
    assert listed("direction=backward") == everything[::-1]
    assert (
        listed("category=Dog")
        == listed("prefix=Do")
        == [each for each in everything if each.startswith("Dog")]
    )
    assert listed("from=9999-01-01T00:00:00Z") == []
    assert listed("order=name") == sorted(everything)
    first = api.call("GET", "/streams", query="order=name&limit=1").json
    assert ([each["stream"] for each in first["streams"]], first["next"]) == (["Cat-1"], "Cat-1")
    assert not first["atEnd"]
    rest = api.call("GET", "/streams", query=f"order=name&from={first['next']}&prefix=D").json
    assert ([each["stream"] for each in rest["streams"]], rest["atEnd"]) == (["Dog-1"], True)
    page = api.call("GET", "/streams", query="limit=1").json
    assert not page["atEnd"]
    rest = api.call("GET", "/streams", query=f"limit=1000&from={page['next']}").json
    assert rest["atEnd"]
    assert [each["stream"] for each in page["streams"] + rest["streams"]] == everything
    assert set(page["streams"][0]) == {"stream", "category", "type", "partition", "created"}


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("from=0:x@1", "from"),
        ("from=soon", "from"),
        ("category=a-b", "category"),
        ("limit=0", "limit"),
        ("order=age", "order"),
        ("order=name&direction=backward", "direction"),
    ],
)
def test_a_listing_of_what_cannot_be_is_refused(api: Api, query: str, field: str) -> None:
    answer = api.call("GET", "/streams", query=query)
    assert (answer.status, answer.problem, answer.json["field"]) == (400, "invalid-input", field)
