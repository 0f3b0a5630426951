"""What callers are handed to come back with, come back with altered: ETags, positions, places to go on from.

All of them are plain text to whoever looks closely. Altered, they are refused or change nothing for anybody else: no
event is lost, doubled or hidden, nothing becomes unreadable, and no work is done that what is stored does not warrant.
"""

from __future__ import annotations

import base64
import random
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest

from epochal.contrib.sekiban.items import TAGS
from epochal.http.bodies import LINK_SECONDS
from epochal.model.position_text import MAX_COUNT, read_position, write_position
from epochal.model.positions import Position, Reached
from tests.support.api import Answer, Api
from tests.support.examples import seeds

FIGURES: Final = (0, 1, 7, 60, 5_000, 9_999_999)
VERSION: Final = 0
TAG: Final = "order:1"
QUERY: Final = {"items": [{"tags": [TAG]}]}
EVENT: Final = {"type": "A", "data": 1, "tags": [TAG]}
HIGHEST: Final = "9" * 30


def fields_of(answer: Answer) -> list[str]:
    """What an ETag is made of: version, etag of the Tip, figures of its sizes."""
    return answer.etag.strip('"').split(".")


def if_match(fields: Sequence[str]) -> dict[str, str]:
    return {"If-Match": f'"{".".join(fields)}"'}


def events_of(api: Api) -> list[dict[str, Any]]:
    answer = api.call("GET", "/streams/Forged-1/events", query="limit=10000")
    assert answer.status == 200, answer.text
    found: list[dict[str, Any]] = answer.json["events"]
    return found


def grown(appends: int) -> tuple[Api, Answer]:
    """A stream of so many appends, and the answer to the last."""
    api = Api()
    unfolds = [{"type": "U", "data": "u" * 200}]
    return api, [api.append("Forged-1", "A", "B", unfolds=unfolds) for _ in range(appends)][-1]


@pytest.mark.slow
@pytest.mark.parametrize("version", [0, 1, 19, 21, 2_147_483_646])
@pytest.mark.parametrize("size", [10, 60_000])
def test_an_etag_with_another_version_is_of_no_state_and_writes_nothing(version: int, size: int) -> None:
    """Indices are given out from it: events would be hidden, or leave a hole that nobody can read past."""
    api, answer = grown(10)
    before = api.stored
    forged = [str(version), *fields_of(answer)[1:]]
    body = {"events": [{"type": "C", "data": "c" * size}]}
    refused = api.call("POST", "/streams/Forged-1/events", body, headers=if_match(forged))
    assert (refused.status, refused.problem) in ((412, "precondition-failed"), (400, "invalid-input"))
    assert api.stored == before


@pytest.mark.slow
@seeds(20, 6)
def test_an_etag_with_other_figures_costs_whoever_sends_it_and_harms_nobody(seed: int) -> None:
    chance = random.Random(seed)
    api, answer = grown(chance.randint(1, 30))
    for number in range(5):
        before, forged = events_of(api), fields_of(answer)
        for place in chance.sample([VERSION, 2, 3, 4, 5, 6], chance.randint(1, 4)):
            forged[place] = str(chance.choice(FIGURES))
        body = {"events": [{"type": f"C{number}", "data": "c" * chance.choice([1, 3_000])}]}
        tried = api.call("POST", "/streams/Forged-1/events", body, headers=if_match(forged))
        assert tried.status in (201, 412)
        answer = api.append("Forged-1", "D")
        assert answer.status == 201
        added = ["D"] if tried.status == 412 else [f"C{number}", "D"]
        after = events_of(api)
        assert after[: len(before)] == before
        assert [event["type"] for event in after[len(before) :]] == added
        assert [event["index"] for event in after] == list(range(len(after)))


@pytest.fixture(params=["pages", "dcb"])
def tagged(request: pytest.FixtureRequest) -> Api:
    """A tag with three events."""
    api = Api(type_heads=True, pages=request.param == "pages")
    for _ in range(3):
        assert api.call("POST", "/dcb/events", {"events": [EVENT]}).status == 201
    return api


def position_of(api: Api) -> Position:
    return read_position(api.call("POST", "/dcb/query", {"query": QUERY}).json["position"])


ASKING: Final[dict[str, Callable[[str, str], tuple[str, dict[str, Any]]]]] = {
    "a query after it": lambda forged, _: ("/dcb/query", {"query": QUERY, "after": forged}),
    "a read that goes on from it": lambda forged, good: ("/dcb/query", {"query": QUERY, "from": f"{forged}.{good}"}),
    "a read that goes on to it": lambda forged, good: ("/dcb/query", {"query": QUERY, "from": f"{good}.{forged}"}),
    "an append after it": lambda forged, _: ("/dcb/events", {"events": [EVENT], "failIf": QUERY, "after": forged}),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("asking", ASKING)
@pytest.mark.parametrize("count", [4, 2**31, 10**9, 10**12, MAX_COUNT, MAX_COUNT + 1, 10**40, 10**4_000])
@pytest.mark.parametrize("last", ["0" * 30, HIGHEST])
def test_a_position_that_counts_more_than_there_is_is_refused_at_the_price_of_a_glance(
    tagged: Api, asking: str, count: int, last: str
) -> None:
    good = position_of(tagged)
    forged = write_position(Position(seen={TAG: Reached(count, last)}, heads=good.heads))
    path, body = ASKING[asking](forged, write_position(good))
    before = tagged.stored
    tracemalloc.start()
    answer = tagged.call("POST", path, body)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert answer.status in (200, 400)
    assert answer.status == 400 or answer.json["events"] == []
    assert peak < 5_000_000, "what a caller says is no size to make room for"
    assert tagged.stored == before


def test_a_position_cannot_push_a_tags_ids_to_their_end(tagged: Api) -> None:
    """Ids of a tag only increase: after the highest there would be none for anybody."""
    good = position_of(tagged)
    for heads, seen in (
        (good.heads, {TAG: Reached(3, HIGHEST)}),
        ({TAG: Reached(3, HIGHEST)}, {"order:2": Reached()}),
    ):
        forged = write_position(Position(seen=seen, heads=heads))
        query = {"items": [{"tags": list(seen)}]}
        tagged.call("POST", "/dcb/events", {"events": [EVENT], "failIf": query, "after": forged})
    assert not [item for item in tagged.tables.items(TAGS.kind) if "99999999" in str(item)]
    assert tagged.call("POST", "/dcb/events", {"events": [EVENT]}).status == 201


def place(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


@pytest.mark.slow
@pytest.mark.parametrize(
    "raw",
    [
        b"[" * 7_000,
        b'{"a":' * 1_400,
        b"9" * 7_000,
        b"NaN",
        b'["TAG#order:1","#"]',
        b'["SERVICE#other#TAG#order:1","#"]',
        b'[1, 0, "$all"]',
        b'[1024, 1024, ""]',
        b'[1024, 9999999999999999999999, ""]',
        b'["\\ud800","#"]',
        b'["a","\\ud800"]',
        b'["","#"]',
        b'["a",""]',
        b'["a"]',
        b'["a","#",1]',
        b"[1,2]",
        b'{"a":1,"b":2}',
        b"null",
        b' ["a","#"]',
        b"\xff\xfe",
    ],
    ids=lambda raw: raw[:12].decode("latin-1"),
)
def test_a_place_that_no_listing_names_is_refused(tagged: Api, raw: bytes) -> None:
    answer = tagged.call("GET", "/dcb/tags", query=f"from={place(raw)}")
    assert (answer.status, answer.problem, answer.json["field"]) == (400, "invalid-input", "from")


def test_an_upload_is_signed_for_the_hash_alone_and_not_for_a_key_of_the_callers(tagged: Api) -> None:
    claim = {"key": "projections/x", "sha256": "0" * 64, "bytes": 1}
    answer = tagged.call("POST", "/streams/Forged-1/events", {"events": [{"type": "A", "claim": claim}]})
    assert (answer.status, answer.json["field"]) == (400, "events[0].claim.key")
    signed = tagged.call("POST", "/bodies", {"sha256": "0" * 64, "bytes": 1}).json
    assert signed["claim"]["key"] == f"bodies/{'0' * 64}"
    assert signed["expiresIn"] == LINK_SECONDS
