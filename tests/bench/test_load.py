"""The load's judge sees what may go wrong, and only that; figures are what they are called."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace
from typing import Any, cast

import pytest
from botocore.credentials import Credentials

from bench.load.__main__ import main
from bench.load.api import Answer, Api
from bench.load.crew import Crew
from bench.load.ledger import Ledger, Sample, Sent
from bench.load.measures import Lag, Measures, percentiles
from bench.load.run import Target
from bench.load.samples import document
from bench.load.tag_writers import TagWriter
from bench.load.verification import Found, feed_differs, followed_differs, stream_differs
from epochal.codec.json import dumps

EVENTS = [Sample(type="A", body=b"%d" % number) for number in range(6)]
REFUSED, UNANSWERED, STRANGER = (Sample(type="A", body=body) for body in (b"r", b"u", b"s"))


def sent() -> Sent:
    """Ann appended three times two events, the second time without being told where; two more appends failed."""
    ledger = Ledger()
    for first, told in ((0, 0), (2, None), (4, 4)):
        ledger.acknowledged("S-1", "ann", EVENTS[first : first + 2], told)
    ledger.refused("S-1", [REFUSED])
    ledger.unanswered("S-1", [UNANSWERED])
    return ledger.streams["S-1"]


def found(events: Sequence[Sample], indices: Sequence[int] | None = None) -> list[Found]:
    return [Found(at, event.digest) for at, event in zip(indices or range(len(events)), events, strict=True)]


def differs(events: Sequence[Sample], indices: Sequence[int] | None = None) -> list[str]:
    return list(stream_differs("S-1", sent(), found(events, indices)))


def test_what_was_acknowledged_and_is_there_is_right_and_what_was_never_answered_may_be_there() -> None:
    assert differs(EVENTS) == []
    assert differs([*EVENTS, UNANSWERED]) == []


@pytest.mark.parametrize("missing", range(6))
def test_an_event_that_is_missing_is_told(missing: int) -> None:
    rest = EVENTS[:missing] + EVENTS[missing + 1 :]
    assert any("and is missing" in each for each in differs(rest))


@pytest.mark.parametrize("missing", range(5))
def test_a_gap_is_told(missing: int) -> None:
    indices = [index for index in range(6) if index != missing]
    assert f"S-1: #{missing + 1} came where #{missing} was to come" in differs(
        [EVENTS[index] for index in indices], indices
    )


def test_an_event_that_is_there_twice_is_told() -> None:
    assert differs([*EVENTS, EVENTS[2]]) == ["S-1: #6 is #2 again"]


def test_so_is_one_without_an_answer() -> None:
    assert differs([*EVENTS, UNANSWERED, UNANSWERED]) == ["S-1: #7 is #6 again"]


def test_what_was_refused_and_what_was_never_sent_is_told() -> None:
    assert differs([*EVENTS, REFUSED]) == ["S-1: #6 was refused, and is there"]
    assert differs([*EVENTS, STRANGER]) == ["S-1: #6 was never sent as it is"]


def test_a_changed_body_is_told_and_so_is_a_changed_type() -> None:
    for changed in (Sample(type="A", body=b"1 "), Sample(type="B", body=b"1")):
        assert differs([EVENTS[0], changed, *EVENTS[2:]]) == [
            "S-1: #1 was never sent as it is",
            "S-1: an event of ann's was acknowledged at #1, and is missing",
        ]


def test_another_order_is_told_also_where_no_answer_said_which() -> None:
    swapped = [EVENTS[1], EVENTS[0], *EVENTS[2:]]
    assert "S-1: #1 was acknowledged at #0" in differs(swapped)
    swapped = [*EVENTS[:2], EVENTS[3], EVENTS[2], *EVENTS[4:]]
    assert differs(swapped) == ["S-1: #2 stands before what ann had appended earlier"]


def test_an_append_that_is_answered_elsewhere_than_expected_is_told() -> None:
    ledger = Ledger()
    ledger.acknowledged("S-1", "ann", EVENTS[:2], 0, 0)
    ledger.acknowledged("S-1", "bob", EVENTS[2:], 3, 2)
    assert ledger.wrong == ["S-1: appended at #3, where bob expected #2"]
    assert ledger.least("S-1") == 7


def test_a_feed_that_differs_from_the_store_is_told() -> None:
    stored = found(EVENTS)
    assert list(feed_differs("S-1", stored, stored)) == []
    assert list(feed_differs("S-1", stored, stored[:-1])) == ["S-1: the feed has 5 events, the store 6"]
    assert "#2 where #1 was to come" in next(feed_differs("S-1", stored, [stored[0], *stored[2:], stored[1]]))
    changed = [*stored[:3], Found(3, STRANGER.digest), *stored[4:]]
    assert list(feed_differs("S-1", stored, changed)) == [
        "S-1: #3 is another event in the feed than in the store"
    ]


@pytest.mark.parametrize(
    ("indices", "met"),
    [
        ([0, 1], "2 of 3 events"),
        ([0, 2, 1], "#2 where #1 was to come"),
        ([0, 1, 1, 2], "#1 where #2 was to come"),
        ([0, 1, 2, 3], "4 of 3 events"),
    ],
)
def test_what_a_follower_met_otherwise_is_told(indices: list[int], met: str) -> None:
    assert list(followed_differs("S-1", 3, range(3))) == []
    assert list(followed_differs("S-1", 3, indices)) == [f"S-1: a follower met {met}"]


def test_percentiles_are_values_that_were_measured() -> None:
    assert percentiles([float(number) for number in range(100, 0, -1)]) == (50.0, 90.0, 99.0, 100.0)
    assert percentiles([3.0]) == (3.0, 3.0, 3.0, 3.0)
    assert percentiles([]) == (0.0, 0.0, 0.0, 0.0)


def test_requests_without_an_answer_are_counted_and_not_timed() -> None:
    measures = Measures()
    measures.sent("append", 0, 9.0, again=False)
    measures.sent("append", 201, 0.5, again=True)
    found = measures.operations["append"]
    assert (dict(found.statuses), list(found.seconds), found.retried) == ({0: 1, 201: 1}, [0.5], 1)


def test_the_way_to_the_feed_is_timed_from_the_answer_and_nothing_where_the_feed_was_faster() -> None:
    now = [10.0]
    lag = Lag(clock=lambda: now[0])
    lag.acknowledged("S-1", 4)
    lag.acknowledged("S-1", 5)
    now[0] = 12.5
    lag.arrived("S-1", 4)
    now[0] = 13.0
    lag.arrived("S-1", 5)
    lag.arrived("S-1", 6)
    lag.acknowledged("S-1", 6)
    assert list(lag.seconds) == [2.5, 3.0, 0.0]


def test_no_two_events_that_are_sent_are_alike() -> None:
    luck = random.Random(1)
    assert len({document(luck).digest for _ in range(1_000)}) == 1_000


def test_what_fails_in_a_thread_is_raised_where_it_is_waited_for() -> None:
    def broken() -> None:
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"), Crew([broken]):
        pass


@pytest.mark.parametrize("minutes", ["0", "-1", "ten", "nan", "1e9", "1441"])
def test_a_load_of_no_number_of_minutes_is_refused_with_the_rule(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], minutes: str
) -> None:
    monkeypatch.setenv("MINUTES", minutes)
    assert main() == 2
    assert f"MINUTES must be a number above 0 and at most 1,440, not '{minutes}'" in capsys.readouterr().out


@pytest.mark.parametrize(("replayed", "read"), [(False, 1), (True, 2)])
def test_a_writer_of_tagged_events_counts_anew_where_an_earlier_try_had_made_its_append(
    replayed: bool, read: int
) -> None:
    """Such an answer has the position before the append: its events, met again, would be counted twice."""
    asked: list[str] = []

    def api(operation: str, *_: str, **__: object) -> Answer:
        asked.append(operation)
        appending = operation == "tagged: append"
        said = {"replayed": replayed} if appending else {"events": [], "next": None}
        return Answer(
            status=201 if appending else 200, etag="", content=dumps({"position": "p", **said}), tries=1
        )

    luck = random.Random(1)
    common = {
        "name": "ann",
        "ledger": Ledger(),
        "lag": Lag(),
        "courses": ["course:1"],
        "students": ["student:1"],
    }
    writer = TagWriter(api=cast(Api, api), luck=luck, **common)
    while asked.count("tagged: append") < 2:
        writer.step()
    assert asked.count("tagged: read") == read


class Formation:
    """CloudFormation with these stacks, by their outputs."""

    meta = SimpleNamespace(region_name="eu-west-1")

    def __init__(self, **stacks: dict[str, str]) -> None:
        self.stacks = {name.replace("_", "-"): outputs for name, outputs in stacks.items()}

    def describe_stacks(self, StackName: str) -> dict[str, Any]:  # noqa: N803  AWS's name, and so below
        outputs = self.stacks[StackName].items()
        told = [{"OutputKey": key, "OutputValue": value} for key, value in outputs]
        return {"StackName": StackName, "Stacks": [{"StackName": StackName, "Outputs": told}]}

    def get_paginator(self, operation: str) -> Any:
        found = {
            "describe_stacks": [self.describe_stacks(name) for name in self.stacks],
            "list_stack_resources": [{"StackResourceSummaries": []}],
        }
        return SimpleNamespace(paginate=lambda **_: found[operation])

    def get_template(self, StackName: str) -> dict[str, Any]:  # noqa: N803, ARG002
        return {"TemplateBody": "{}"}


def test_a_stage_is_found_by_the_outputs_of_its_stacks() -> None:
    known = Credentials("key", "secret")
    formation = Formation(
        shop_dev_store={"IndexTable": "shop-dev-index"}, shop_dev_api={"ApiUrl": "https://api"}, other={}
    )
    target = Target.deployed(formation, "shop-dev-store", known)
    assert (target.url, target.region, target.credentials) == ("https://api", "eu-west-1", known)


@pytest.mark.parametrize(
    ("stack", "stacks"),
    [
        ("other", {"other": {}}),
        ("shop-dev-store", {"shop_dev_store": {"IndexTable": "i"}, "other": {"ApiUrl": "https://api"}}),
    ],
)
def test_a_stack_that_is_of_no_stage_with_an_api_is_refused(
    stack: str, stacks: dict[str, dict[str, str]]
) -> None:
    with pytest.raises(
        LookupError, match=f"{stack} is no stack of tables that one with an ApiUrl belongs to"
    ):
        Target.deployed(Formation(**stacks), stack, Credentials("key", "secret"))


def test_a_stage_on_aws_gets_no_load_before_its_price_is_agreed_to(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STACK", "epochal-dev-store")
    monkeypatch.setenv("MINUTES", "3")
    monkeypatch.setattr("builtins.input", lambda _: "n")
    monkeypatch.setattr("bench.load.__main__._on_aws", lambda *_: pytest.fail("it went to AWS"))
    assert main() == 1
    assert "3 minutes of load on the stage of epochal-dev-store: 30 cents at most" in capsys.readouterr().out


class Answering(BaseHTTPRequestHandler):
    """Refuses the first try of each request, and shows what it was asked in the second."""

    tries = 0

    def do_GET(self) -> None:
        type(self).tries += 1
        told = {name: self.headers[name] for name in ("If-None-Match", "Authorization")}
        content = dumps({"path": self.path, **told})
        self.send_response(503 if self.tries % 2 else 200)
        self.send_header("ETag", '"e"')
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Not on the test's output."""


def test_a_request_is_signed_and_measured_at_each_try_and_what_nobody_answers_has_the_status_0(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bench.load.api.time.sleep", lambda _: None)
    measures = Measures()
    with HTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/"
        api = Api(url, credentials=Credentials("key", "secret"), region="eu-west-1", measures=measures)
        answer = api("read", "GET", "/feed/0", query={"from": "0@0"}, headers={"If-None-Match": '"e"'})
        server.shutdown()
        thread.join()
    assert (answer.status, answer.etag, answer.tries) == (200, '"e"', 2)
    assert (answer.json["path"], answer.json["If-None-Match"]) == ("/feed/0?from=0%400", '"e"')
    assert "/eu-west-1/execute-api/aws4_request" in answer.json["Authorization"]
    assert measures.operations["read"].statuses == {503: 1, 200: 1}
    assert api("read", "GET", "/feed/0").status == 0
