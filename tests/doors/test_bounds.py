"""However large, deep or many: what is sent is refused with a field and a rule, soon, and nothing is changed.

A function is handed at most 6 MB, so that is as much as anybody can send. Whatever it is, looking at it takes a bounded
time: `SECONDS` is a hundred times what a small request takes, and a quadratic algorithm on 6 MB takes minutes.
"""

from __future__ import annotations

import base64
import gzip
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import product
from types import SimpleNamespace
from typing import Any, Final

import pytest

from epochal.codec import json
from epochal.contrib.sekiban.items import PROJECTION_STATES
from epochal.http.answer_size import sent_size
from epochal.http.routes import operations
from epochal.plan.ops import Put
from tests.support.api import Answer, Api

MEGABYTES: Final = 6 * 1024 * 1024
SECONDS: Final = 10.0

ANSWER: Final = 6_291_556
"""Bytes of a function's answer, at most. What is more is no answer at all, but a failure of the gateway's."""

TAKING: Final = {
    "appendEvents": ("POST", "/streams/Big-1/events"),
    "appendAll": ("POST", "/streams"),
    "appendEach": ("POST", "/appends"),
    "readOrdered": ("POST", "/feed/ordered"),
    "appendEventsOfTips": ("POST", "/tips/Big-1/events"),
    "pruneStreamOfTips": ("POST", "/tips/Big-1/prune"),
    "uploadBody": ("POST", "/bodies"),
    "pruneStream": ("POST", "/streams/Big-1/prune"),
    "appendToAggregate": ("POST", "/aggregates/order/1/events"),
    "appendTagged": ("POST", "/events"),
    "queryTagged": ("POST", "/events/query"),
    "appendTaggedOfDcb": ("POST", "/dcb/events"),
    "queryTaggedOfDcb": ("POST", "/dcb/query"),
    "writeProjectionState": ("PUT", "/projections/totals/v1"),
    "readTagTimers": ("POST", "/timers/query"),
    "cancelTagTimer": ("POST", "/timers/cancel"),
    "steerGroup": ("POST", "/groups/totals"),
}
"""Operations that take a document."""


def nested(opening: bytes, closing: bytes) -> bytes:
    return opening * (MEGABYTES // 12) + closing * (MEGABYTES // 12)


HOSTILE: Final[dict[str, bytes]] = {
    "arrays in arrays": nested(b"[", b"]"),
    "objects in objects": nested(b'{"a":', b"}"),
    "arrays that never end": b"[" * MEGABYTES,
    "objects that never end": b'{"events":[' * (MEGABYTES // 11),
    "as many members as fit": b"{" + b",".join(b'"%x":0' % n for n in range(400_000)) + b"}",
    "one member twice": b'{"events":[],"events":[]}',
    "one member 10^5 times": b"{" + b'"a":0,' * 100_000 + b'"a":0}',
    "a number of a million digits": b'{"before":' + b"9" * 1_000_000 + b"}",
    "a fraction of a million digits": b'{"before":0.' + b"9" * 1_000_000 + b"}",
    "an exponent without end": b'{"before":1e999999999999}',
    "an exponent of a million digits": b'{"before":1e' + b"9" * 1_000_000 + b"}",
    "a name of six megabytes": b'{"' + b"a" * MEGABYTES + b'":0}',
    "text of six megabytes": b'{"sha256":"' + b"a" * MEGABYTES + b'"}',
    "a million events": b'{"events":[' + b"{}," * 1_000_000 + b"{}]}",
    "a million items": b'{"query":{"items":[' + b"{}," * 1_000_000 + b"{}]}}",
    "six megabytes of nothing": b" " * MEGABYTES,
    "six megabytes of no text": b"\xff" * MEGABYTES,
    "escapes without a pair": b'{"events":"' + b"\\ud800" * (MEGABYTES // 6) + b'"}',
    "overlong UTF-8": b'{"events":"\xc0\xaf\xe0\x80\xaf"}',
    "a byte order mark of UTF-16": '{"events":[]}'.encode("utf-16"),
    "compressed": gzip.compress(b'{"events":[]}'),
    "not a number": b'{"before":NaN,"bytes":Infinity}',
}


@pytest.fixture(scope="module")
def api() -> Api:
    made = Api(type_heads=True)
    assert made.append("Big-1", "A").status == 201
    return made


@pytest.fixture(autouse=True)
def _what_is_sent_to_many_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All operations have their documents parsed alike, and by far the most of their time goes there."""
    monkeypatch.setattr(
        "epochal.http.documents.json", SimpleNamespace(loads=_parsed, dumps=json.dumps, TooDeep=json.TooDeep)
    )


@lru_cache(maxsize=1)
def _outcome(text: bytes) -> tuple[Any, Exception | None]:
    try:
        return json.loads(text), None
    except ValueError as error:
        return None, error


def _parsed(text: bytes) -> Any:
    value, error = _outcome(text)
    if error is not None:
        raise error
    return value


def test_every_operation_that_takes_a_document_is_tried() -> None:
    assert set(TAKING) == {route.name for route in operations() if route.method in ("POST", "PUT")}


def tried() -> Iterator[Any]:
    """Each document with each operation. All are parsed alike: large ones go to one, and in `make proof` to all."""
    for what, operation in product(HOSTILE, TAKING):
        dear = len(HOSTILE[what]) > MEGABYTES // 12 and operation != "appendEvents"
        yield pytest.param(what, operation, marks=[pytest.mark.proof] if dear else [])


@pytest.mark.parametrize(("what", "operation"), [*tried()])
@pytest.mark.slow
def test_a_hostile_document_is_refused_soon_and_changes_nothing(api: Api, operation: str, what: str) -> None:
    before = api.stored
    answer = within(lambda: api.call(*TAKING[operation], HOSTILE[what]))
    assert answer.status in (400, 413)
    assert answer.json["field"]
    assert len(answer.text) < 2_000, "a refusal does not repeat what was sent"
    assert api.stored == before


def documents(item: Any, count: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Documents that are all right but for one list, which has `count` items."""
    many = [item] * count
    yield "appendEvents", {"events": many}
    yield "appendEvents", {"events": [{"type": "A"}], "unfolds": many}
    yield "appendAll", {"appends": many}
    yield "appendAll", {"appends": [{"stream": "Big-1", "events": many}]}
    yield "appendToAggregate", {"events": many, "snapshot": 1}
    yield "appendTagged", {"events": many}
    yield "appendTagged", {"events": [{"type": "A", "data": 1, "tags": many}]}
    yield "appendTagged", {"events": [{"type": "A", "data": 1}], "failIf": {"items": many}}
    yield "queryTagged", {"query": {"items": many}}
    yield "queryTagged", {"query": {"items": [{"tags": many}]}}
    yield "queryTagged", {"query": {"items": [{"types": many}]}}


@pytest.mark.parametrize("number", range(11))
def test_a_list_of_too_many_is_refused_by_its_length_before_its_items(api: Api, number: int) -> None:
    operation, body = list(documents("x", 100_000))[number]
    before = api.stored
    answer = within(lambda: api.call(*TAKING[operation], body))
    assert (answer.status, answer.problem) == (413, "too-large")
    assert answer.json["size"] == 100_000
    assert answer.json["limit"] <= 1_000
    assert api.stored == before


@pytest.mark.slow
@pytest.mark.parametrize("body", [b"\x00" * 3_000_000, b"a" * 4_000_000, bytes(range(256)) * 12_000])
def test_an_event_too_large_for_an_item_goes_to_the_bucket_or_is_refused_by_its_size(
    api: Api, body: bytes
) -> None:
    """Never a failure at the commit: what is over is found before, or kept elsewhere and read back the same."""
    answer = within(
        lambda: api.call(
            "POST",
            "/streams/Big-2/events",
            {"events": [{"type": "A", "data64": base64.b64encode(body).decode()}]},
        )
    )
    assert answer.status in (201, 413)


@pytest.mark.parametrize(
    "query",
    [
        "from=" + "9" * 100_000,
        "limit=" + "9" * 100_000,
        "&".join(f"category=c{n}" for n in range(101)),
        "category=" + "a" * 100_000,
        "from=" + "%25" * 50_000,
        "from=%ff%fe",
        "from=0%00",
        "from=",
        "limit=",
        "wait=",
        "data=",
        "category=",
        "a" * 100_000 + "=1",
        "&" * 100_000,
        "from=0&from=0",
        "from=%D9%A0",  # a digit, in Arabic
    ],
    ids=range(16),
)
def test_hostile_parameters_of_a_query_are_refused(api: Api, query: str) -> None:
    answer = within(lambda: api.call("GET", "/feed/30000", query=query))
    assert answer.status == 400
    assert len(answer.text) < 2_000


@pytest.mark.parametrize("header", ["If-Match", "If-None-Match", "Idempotency-Key", "Content-Type"])
@pytest.mark.parametrize(
    "value", ['"' * 9_999, '"a",' * 2_500, "a" * 10_000, " ," * 5_000, '"' + "1" * 9_998 + '"', "W/" * 5_000]
)
def test_hostile_headers_are_refused_soon(api: Api, header: str, value: str) -> None:
    """Ten kilobytes are what the gateway lets through; a pattern that backtracks takes hours over them."""
    before = api.stored
    answer = within(
        lambda: api.call(
            "POST", "/streams/Big-1/events", {"events": [{"type": "A"}]}, headers={header: value}
        )
    )
    assert answer.status in (400, 415)
    assert api.stored == before


@pytest.mark.parametrize("value", ['"a",' * 2_500, " ," * 5_000, '"' * 9_999, '"a" ' * 2_500])
def test_a_hostile_list_of_etags_is_read_soon(api: Api, value: str) -> None:
    answer = within(lambda: api.call("GET", "/streams/Big-1", headers={"If-None-Match": value}))
    assert answer.status in (200, 400)


@pytest.mark.parametrize(
    "name",
    [
        "a/b", "..", ".", "a\nb", "a\n", "\na", "a\x00", "a b", "a%2Fb", "a%00", "a#b", "a?b", "a|b", "a'b", 'a"b',
        "\u202egpj", "ａ", "é", "e\u0301", "\ud800", "$marks", "$", "＄marks", "\ufeffa", "a\u200bb", "x" * 513, "",
        "İ", "ß", "a\x7f", "a\u2028", "../../projections/x", "T#a", "E#0",
    ],
)  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_name_that_could_be_taken_for_another_is_refused(api: Api, method: str, name: str) -> None:
    before = api.stored
    body = {"events": [{"type": "A"}]} if method == "POST" else None
    answer = api.call(method, f"/streams/{name}/events", body)
    if name in (".", "..") and method == "GET":
        # What has been stored of such a name can be read, where a client lets it through.
        assert answer.status == 404
        return
    assert answer.status in (400, 404)
    assert answer.problem in ("invalid-input", "route-not-found")
    assert api.stored == before


STUMBLING: Final = {
    "names that stand twice": b'{"a":1,"a":2}',
    "half a surrogate pair": b'"\\ud800"',
    "half a pair as a name": b'{"\\udfff":1}',
    "deep arrays": b"[" * 101 + b"]" * 101,
    "deep objects": b'{"a":' * 400 + b"1" + b"}" * 400,
    "an exponent without end": b"1E+999999999999999999999",
    "a number of many digits": b"9" * 4_301,
    "a constant that is none": b"[NaN,Infinity]",
    "no JSON": b'{"a":1}}',
}
"""Bodies that some readers of JSON take, and others give up on: with the whole answer that they are in."""


@pytest.mark.parametrize("what", STUMBLING)
def test_no_authors_bytes_keep_a_strict_reader_from_what_is_beside_them(what: str) -> None:
    api = Api()
    body = base64.b64encode(STUMBLING[what]).decode()
    events = [{"type": "A", "data": 1}, {"type": "B", "data64": body, "meta64": body}]
    assert api.call("POST", "/streams/Odd-1/events", {"events": events, "unfolds": events}).status == 201
    state = {"eventsProcessed": 0, "state64": body}
    assert api.call("PUT", "/projections/odd/v1", state).status == 200
    api.index()
    pages = {
        "events": api.call("GET", "/streams/Odd-1/events"),
        "unfolds": api.call("GET", "/streams/Odd-1"),
        "items": api.call("GET", "/feed/30000", query="data=true"),
    }
    for name, answer in pages.items():
        plain, odd = json.loads(answer.text)[name]
        assert plain["data"] == 1
        assert (odd["data64"], odd["meta64"]) == (body, body)
    assert json.loads(api.call("GET", "/projections/odd/v1").text)["state64"] == body


@pytest.mark.parametrize(
    "body", [b'{"a":"\\ud83d\\ude80"}', b'{"a":{"a":1.50}}', b"[" * 100 + b"]" * 100, b" 1E+400\n"]
)
def test_other_json_that_came_as_bytes_is_shown_as_json_to_the_byte(body: bytes) -> None:
    api = Api()
    event = {"type": "A", "data64": base64.b64encode(body).decode()}
    assert api.call("POST", "/streams/Odd-1/events", {"events": [event]}).status == 201
    assert f'"data":{body.decode()}' in api.call("GET", "/streams/Odd-1/events").text


GROWING: Final = {
    "controls": "\x00" * 512,
    "quotes": '"' * 512,
    "backslashes": "\\" * 512,
    "two words a character": "\U0001f680" * 128,
    "plain": "a" * 512,
}
"""Names of types as long as they may be. A function's answer is JSON inside JSON: the first takes 3,584 bytes there."""


@pytest.mark.parametrize(
    "what", [each if each == "controls" else pytest.param(each, marks=pytest.mark.proof) for each in GROWING]
)
@pytest.mark.slow
def test_names_that_grow_in_json_hold_up_no_reader_of_the_feed(what: str) -> None:
    """Whoever may append to one stream chooses types: an answer that cannot be sent would be the end of the feed."""
    api, streams, events = Api(), 5, 700
    for number in range(streams):
        sent = api.call(
            "POST", f"/streams/Big-{number}/events", {"events": [{"type": GROWING[what]}] * events}
        )
        assert sent.status == 201
    api.index()
    for data in ("false", "true"):
        read, start = 0, "0"
        while True:
            answer = api.call("GET", "/feed/30000", query=f"from={start}&limit=10000&data={data}")
            assert sent_size(answer.text) < ANSWER
            read += len(answer.json["items"])
            start = answer.json["next"]
            if answer.json["atTail"]:
                break
        assert read == streams * events


@pytest.mark.slow
def test_a_tip_of_names_that_grow_and_of_bodies_that_inflate_can_be_sent() -> None:
    api = Api()
    large = {"type": "A", "data": "z" * 2_900_000}
    body = {
        "events": [large, *[{"type": GROWING["controls"]}] * 700],
        "unfolds": [{"type": "U", "data": "y" * 1_000_000}],
    }
    assert api.call("POST", "/streams/Big-1/events", body).status == 201
    answer = api.call("GET", "/streams/Big-1", query="events=true")
    assert sent_size(answer.text) < ANSWER
    assert [event.get("omitted", False) for event in answer.json["events"]] == [True] + [False] * 700
    (shown,) = api.call("GET", "/streams/Big-1/events", query="limit=1").json["events"]
    assert shown["data"] == large["data"]


@pytest.mark.slow
def test_a_state_that_inflates_beyond_its_size_is_not_inflated(api: Api) -> None:
    """A hundred megabytes in a hundred kilobytes, which another library stored and called small."""
    assert api.call("PUT", "/projections/bombs/v1", {"eventsProcessed": 0, "state": 1}).status == 200
    bomb = base64.b64encode(gzip.compress(b" " * 100_000_000)).decode()
    (item,) = (each for each in api.tables.items(PROJECTION_STATES.kind) if "bombs" in each["pk"]["S"])
    api.tables.execute(Put(table=PROJECTION_STATES.kind, item={**item, "stateData": {"S": bomb}}))
    tracemalloc.start()
    answer = within(lambda: api.call("GET", "/projections/bombs/v1"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert answer.json["stateGzip64"] == bomb
    assert peak < 20_000_000


def within(act: Callable[[], Answer]) -> Answer:
    """What `act` answers, in processor time that is bounded."""
    started = time.process_time()
    answer = act()
    assert time.process_time() - started < SECONDS
    return answer
