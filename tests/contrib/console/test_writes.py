"""What is parked is replayed or given up from a page: asked twice, from the console's own pages, as far as one may."""

from __future__ import annotations

import html
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from flask.testing import FlaskClient

from epochal import Event, reaction
from epochal.contrib.console import reactions
from epochal.contrib.console.page import Services
from epochal.contrib.console.server import Guard, application, pages
from epochal.deployment import Deployment
from epochal.errors import Refused, Unavailable
from epochal.feed.results import PartitionTail
from epochal.index.live_members import Sign, write_sign
from epochal.plan.ops import Op, Put, Reply, Transact, Update
from epochal.reactions.definition import Delivery, Reaction
from epochal.testing.feeds import MemoryStore

ORIGIN = "http://127.0.0.1:7000"


@pytest.fixture
def failing(feed: MemoryStore) -> Reaction:
    """Parks `Cart-1` at event 0, of three; what it handles later is in `handled`."""
    for number in range(3):
        feed.streams.append("Cart-1", [Event(type="Noted", data=b"%d" % number)])

    @reaction(name="totals", categories=["Cart"], attempts=1)
    def total(_: Delivery) -> None:
        raise ValueError("no gate is free")

    feed.react(total)
    return total


@pytest.fixture
def handled() -> list[int]:
    return []


@pytest.fixture
def mended(handled: list[int]) -> Reaction:
    @reaction(name="totals", categories=["Cart"], attempts=1)
    def total(delivery: Delivery) -> None:
        handled.extend(event.index for event in delivery.each())

    return total


def _client(opened: Deployment, services: Services | None = None) -> FlaskClient:
    return application(opened, "epochal-test", services).test_client()


def _get(client: FlaskClient, path: str, status: int = 200) -> str:
    answer = client.get(path, base_url=ORIGIN)
    assert answer.status_code == status, answer.text
    return answer.text


def _pressed(client: FlaskClient, act: str) -> tuple[int, str]:
    """Take the link of the reactions' page and press the button of the page that it leads to."""
    links = re.findall(r'href="(/parked\?act=[^"]*)"', _get(client, "/reactions?group=totals"))
    (link,) = (html.unescape(each) for each in links if f"act={act}&" in html.unescape(each))
    fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', _get(client, link)))
    answer = client.post("/parked", data=fields, base_url=ORIGIN, headers={"Origin": ORIGIN})
    return answer.status_code, html.unescape(answer.text)


def _parked(feed: MemoryStore, failing: Reaction) -> dict[str, int]:
    parking = feed.parking(failing)
    return {
        each.stream: each.index for at in feed.feed.partitions() for each in parking.streams(at.partition)
    }


def test_what_waits_is_given_up_after_a_second_step_and_not_before(
    feed: MemoryStore, opened: Deployment, failing: Reaction
) -> None:
    client = _client(opened)
    for link in re.findall(r'href="(/parked[^"]*)"', _get(client, "/reactions?group=totals")):
        _get(client, html.unescape(link))
    assert _parked(feed, failing) == {"Cart-1": 0}

    status, page = _pressed(client, "discard")
    assert status == 200
    assert "Cart-1 continues" in page
    assert "wrote" in page
    assert _parked(feed, failing) == {}


def test_one_event_is_given_up_and_the_stream_stays_parked(
    feed: MemoryStore, opened: Deployment, failing: Reaction
) -> None:
    assert "continues with its event 1, once it is replayed" in _pressed(_client(opened), "skip")[1]
    assert _parked(feed, failing) == {"Cart-1": 1}


def test_a_reaction_of_this_machine_replays_with_its_own_handler(
    feed: MemoryStore, opened: Deployment, failing: Reaction, mended: Reaction, handled: list[int]
) -> None:
    client = _client(opened, Services(reactions={"totals": failing}))
    assert "It failed again: ValueError: no gate is free" in _pressed(client, "replay")[1]
    assert _parked(feed, failing) == {"Cart-1": 0}

    client = _client(opened, Services(reactions={"totals": mended}))
    assert "continues with its event 3" in _pressed(client, "replay")[1]
    assert handled == [0, 1, 2]
    assert _parked(feed, failing) == {}


def test_a_deployed_reaction_replays_in_its_function(
    feed: MemoryStore, opened: Deployment, failing: Reaction
) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []

    def invoke(name: str, payload: dict[str, Any]) -> dict[str, Any]:
        asked.append((name, payload))
        return {"next": 3, "unparked": True, "failure": None}

    client = _client(opened, Services(prefix="epochal-prod", invoke=invoke))
    assert "Cart-1 continues" in _pressed(client, "replay")[1]
    ((name, payload),) = asked
    assert name == "epochal-prod-reaction-totals"
    (at,) = {each.partition for each in feed.feed.partitions() if each.tail.offset}
    assert payload == {"command": "replay", "partition": at, "stream": "Cart-1"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "status", "told"),
    [
        ({"error": "Refused", "detail": "PutItem was denied"}, 403, "PutItem was denied"),
        ({"error": "InvalidInput", "detail": "not parked"}, 502, "InvalidInput"),
        (
            Refused("Invoke", "not authorized to perform: lambda:InvokeFunction"),
            403,
            "Invoke was denied: not",
        ),
    ],
)
def test_what_a_function_refuses_is_told(
    opened: Deployment, failing: Reaction, answer: Any, status: int, told: str
) -> None:
    def invoke(_: str, __: dict[str, Any]) -> dict[str, Any]:
        if isinstance(answer, Exception):
            raise answer
        return dict(answer)

    found, page = _pressed(_client(opened, Services(invoke=invoke)), "replay")
    assert (found, told in page) == (status, True)


def test_where_nobody_can_handle_the_events_a_replay_is_not_offered(
    opened: Deployment, failing: Reaction
) -> None:
    client = _client(opened)
    (link,) = re.findall(r'href="(/parked\?act=replay[^"]*)"', _get(client, "/reactions?group=totals"))
    page = _get(client, html.unescape(link))
    assert "This console cannot handle its events" in page
    assert "<form" not in page


def test_credentials_that_may_only_read_are_told_so_and_nothing_is_changed(
    feed: MemoryStore, opened: Deployment, failing: Reaction
) -> None:
    def reading(op: Op) -> Reply:
        if isinstance(op, Put | Update | Transact):
            raise Refused(type(op).__name__, "not authorized")
        return feed.tables.execute(op)

    status, page = _pressed(
        _client(replace(opened, driver=replace(opened.driver, execute=reading))), "discard"
    )
    assert status == 403
    assert "was denied: not authorized" in page
    assert _parked(feed, failing) == {"Cart-1": 0}


def _fields(client: FlaskClient) -> dict[str, str]:
    link = next(
        iter(re.findall(r'href="(/parked\?act=discard[^"]*)"', _get(client, "/reactions?group=totals")))
    )
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', _get(client, html.unescape(link))))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("headers", "changed"),
    [
        ({}, {}),
        ({"Origin": "null"}, {}),
        ({"Origin": "http://127.0.0.1:7001"}, {}),
        ({"Origin": "https://example.com"}, {}),
        ({"Origin": "http://localhost:7000"}, {}),
        ({"Origin": ORIGIN}, {"token": ""}),
        ({"Origin": ORIGIN}, {"token": "x" * 43}),
        ({"Origin": ORIGIN, "Host": "example.com:7000"}, {}),
    ],
)
def test_a_write_that_no_page_of_the_console_asked_for_is_refused(
    feed: MemoryStore,
    opened: Deployment,
    failing: Reaction,
    headers: dict[str, str],
    changed: dict[str, str],
) -> None:
    client = _client(opened)
    answer = client.post("/parked", data=_fields(client) | changed, base_url=ORIGIN, headers=headers)
    assert answer.status_code == 403
    assert _parked(feed, failing) == {"Cart-1": 0}


def test_no_other_page_takes_a_write(opened: Deployment) -> None:
    guard = Guard()
    app = application(opened, "epochal-test", guard=guard)
    for page in pages(Services()):
        if page.method == "GET" and page.path not in ("/parked", "/groups"):
            path = page.path.replace("<int:partition>/<path:stream>", "30000/Cart-1")
            answer = app.test_client().post(
                path, data={"token": guard.token}, base_url=ORIGIN, headers={"Origin": ORIGIN}
            )
            assert (path, answer.status_code) == (path, 405)


def test_of_two_presses_at_once_the_second_gives_up_no_other_event(
    feed: MemoryStore, opened: Deployment, failing: Reaction, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = _client(opened)
    find_parked_stream = reactions._find_parked_stream  # noqa: SLF001  between it and the write the first press is done
    fields = _fields(client) | {"act": "skip"}

    def first(deployment: Deployment, action: reactions.ParkedAction) -> object:
        parked = find_parked_stream(deployment, action)
        feed.parking(failing).skip(action.partition, action.stream)
        return parked

    monkeypatch.setattr(reactions, "_find_parked_stream", first)
    answer = client.post("/parked", data=fields, base_url=ORIGIN, headers={"Origin": ORIGIN})
    assert (answer.status_code, "now waits at 1, not at 0" in answer.text) == (400, True)
    assert _parked(feed, failing) == {"Cart-1": 1}


def test_a_page_that_is_older_than_what_it_shows_changes_nothing(
    feed: MemoryStore, opened: Deployment, failing: Reaction
) -> None:
    client = _client(opened)
    fields = _fields(client)
    _pressed(client, "skip")
    answer = client.post("/parked", data=fields, base_url=ORIGIN, headers={"Origin": ORIGIN})
    assert answer.status_code == 400
    assert "now waits at 1, not at 0" in answer.text
    assert _parked(feed, failing) == {"Cart-1": 1}
    _pressed(client, "discard")
    answer = client.post("/parked", data=fields, base_url=ORIGIN, headers={"Origin": ORIGIN})
    assert (answer.status_code, "is not parked by" in answer.text) == (400, True)


def _steered(client: FlaskClient, link: str) -> tuple[int, str]:
    fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', _get(client, link)))
    answer = client.post("/groups", data=fields, base_url=ORIGIN, headers={"Origin": ORIGIN})
    return answer.status_code, html.unescape(answer.text)


def test_a_group_pauses_and_goes_on_after_a_second_step(
    feed: MemoryStore, opened: Deployment, failing: Reaction
) -> None:
    client = _client(opened)
    links = re.findall(r'href="(/groups\?act=[^"]*)"', _get(client, "/reactions?group=totals"))
    pause, resume, *_ = map(html.unescape, links)
    _get(client, pause)
    assert "totals, paused" not in _get(client, "/reactions?group=totals")
    assert "totals is paused" in _steered(client, pause)[1]
    assert "totals, paused" in _get(client, "/reactions?group=totals")
    assert "totals is resumed" in _steered(client, resume)[1]
    assert "totals, paused" not in _get(client, "/reactions?group=totals")


def test_the_function_of_a_group_that_goes_on_is_woken(opened: Deployment, failing: Reaction) -> None:
    woken = []

    def wake(group: str, tails: Sequence[PartitionTail]) -> bool:
        woken.append((group, [each.partition for each in tails]))
        return True

    client = _client(opened, Services(wake=wake))
    for act, so_far in (("pause", 0), ("resume", 1)):
        assert _steered(client, f"/groups?act={act}&group=totals")[0] == 200
        assert len(woken) == so_far
    assert woken == [("totals", [each.partition for each in opened.feed.partitions()])]

    def refused(_group: str, _tails: Sequence[PartitionTail]) -> bool:
        raise Unavailable("no queue")

    client = _client(opened, Services(wake=refused))
    assert "totals is resumed" in _steered(client, "/groups?act=resume&group=totals")[1]


def test_a_group_is_reset_once_it_is_shown_what_comes_again(
    feed: MemoryStore, opened: Deployment, failing: Reaction
) -> None:
    client = _client(opened)
    assert "Preview" in _get(client, "/groups?act=reset&group=totals")
    link = "/groups?act=reset&group=totals&to=beginning&partition="
    assert "3 events are handled again, 0 are skipped" in _get(client, link)
    assert _parked(feed, failing) == {"Cart-1": 0}
    assert "totals is reset" in _steered(client, link)[1]
    assert _parked(feed, failing) == {}


def test_a_group_begins_where_another_is(opened: Deployment, failing: Reaction) -> None:
    client = _client(opened)
    (link,) = re.findall(r'href="(/groups\?act=begin[^"]*)"', _get(client, "/reactions?group=totals"))
    page = _get(client, html.unescape(link))
    assert 'name="like" value="totals"' in page
    assert 'name="group" required' in page
    assert "sums has begun" in _steered(client, "/groups?act=begin&like=totals&group=sums")[1]
    theirs, ours = (
        [(each.partition, each.checkpoint, each.parked) for each in opened.groups.standing(name)]
        for name in ("totals", "sums")
    )
    assert ours == theirs
    status, again = _steered(client, "/groups?act=begin&like=totals&group=sums")
    assert (status, "has already begun" in again) == (400, True)


def test_who_runs_a_group_is_shown_where_it_is_steered(opened: Deployment, failing: Reaction) -> None:
    until = time.time_ns() // 1_000_000 + 60_000
    opened.driver.run(write_sign(opened.settings.index_table, "totals", Sign(owner="laptop-7", until=until)))
    assert "Run by laptop-7 (partitions" in _get(_client(opened), "/groups?act=pause&group=totals")


def test_a_group_is_deleted_and_what_cannot_be_done_is_refused(opened: Deployment, failing: Reaction) -> None:
    client = _client(opened)
    assert "totals is deleted" in _steered(client, "/groups?act=delete&group=totals")[1]
    assert "no reaction of this name" in _get(client, "/groups?act=reset&group=totals&to=tail", 404)
    assert "act: must be one of" in _get(client, "/groups?act=stop&group=totals", 400)
    assert "must be given, because a checkpoint" in _get(client, "/groups?act=reset&group=totals&to=0@1", 400)
