"""ETags and positions that come back over HTTP begin a page without a read, and only those that the stage has made."""

from __future__ import annotations

import random
from collections.abc import Callable
from string import ascii_letters, digits
from typing import Any, Final

import pytest

from epochal import Event
from epochal.errors import Refused
from epochal.model.stream_names import SEALS
from epochal.model.tokens import Token, parse_token
from epochal.pages import writes
from epochal.pages.items import read_page
from epochal.pages.port import PORT
from epochal.pages.pruning import delete
from epochal.plan.ops import Execute, Op, Put, Query, Reply, Transact, Update
from epochal.plan.values import Item
from epochal.store import seals
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_streams, memory_tables
from tests.support.api import Answer, Api

STREAM: Final = "Cart-1"
QUERY: Final = {"items": [{"tags": ["course:1"]}]}


class Counted:
    """An API whose requests to DynamoDB are counted."""

    def __init__(self, tables: MemoryTables | None = None) -> None:
        self.ops: list[Op] = []
        self.tables = tables or memory_tables()
        self.api = Api(tables=self.tables, pages=True, around=self._around)

    def _around(self, execute: Execute) -> Execute:
        def counted(op: Op) -> Reply:
            self.ops.append(op)
            return execute(op)

        return counted

    def requests(self, doing: Callable[..., Answer], *given: Any) -> tuple[int, Answer]:
        before = len(self.ops)
        answer = doing(*given)
        return len(self.ops) - before, answer

    def append(self, etag: str | None, *, data: str = "d", stream: str = STREAM) -> Answer:
        headers = {"If-None-Match": "*"} if etag is None else {"If-Match": etag}
        body = {"events": [{"type": "Added", "data": data}]}
        return self.api.call("POST", f"/streams/{stream}/events", body, headers=headers)

    def tagged(self, position: str | None) -> Answer:
        after = {} if position is None else {"after": position}
        body = {"events": [{"type": "A", "data": 1, "tags": ["course:1"]}], "failIf": QUERY, **after}
        return self.api.call("POST", "/dcb/events", body)

    def begun(self, stream: str = STREAM) -> list[int]:
        """Where its pages begin."""
        items = [item for item in self.tables.items("streams") if item["p"]["S"] == stream]
        return sorted(read_page(item).index for item in items)

    @property
    def key(self) -> Item:
        (found,) = (item for item in self.tables.items("streams") if item["p"]["S"] == SEALS)
        return found


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every append fills its page, so that the next one begins another."""
    monkeypatch.setattr(writes, "is_full", lambda *_, **__: True)


@pytest.mark.slow
@pytest.mark.parametrize("size", [300, 1_000])
def test_a_hundred_appends_with_etags_in_a_row_are_a_request_each(size: int) -> None:
    chance = random.Random(size)
    http, etag = Counted(), None
    for _ in range(101):
        answer = http.append(etag, data="".join(chance.choices(ascii_letters + digits, k=size)))
        assert answer.status == 201
        etag = answer.etag
    writing = [op for op in http.ops if isinstance(op, Put | Update)]
    assert len(http.begun()) > 20, "which is where each needed a read"
    assert len(http.ops) - len(writing) == 1, "the key is asked for once"
    assert len(writing) == 101 + 1, "and put once"
    assert PORT.kind_of(http.key) == "streams", "whoever finds it in the table knows it"


@pytest.mark.usefixtures("full")
def test_an_etag_of_a_load_is_believed_too() -> None:
    http = Counted()
    http.append(None)
    loaded = http.api.call("GET", f"/streams/{STREAM}")
    asked, answer = http.requests(http.append, loaded.etag)
    assert (answer.status, asked) == (201, 1)
    assert http.begun() == [0, 1]


@pytest.mark.usefixtures("full")
def test_a_load_names_the_state_as_the_append_did() -> None:
    http = Counted()
    appended = http.append(None)
    assert http.api.call("GET", f"/streams/{STREAM}").etag == appended.etag


@pytest.mark.usefixtures("full")
def test_an_etag_without_a_seal_is_good_for_an_append_that_reads_first() -> None:
    http = Counted()
    sealed = http.append(None).etag
    bare = '"' + ".".join(sealed.strip('"').split(".")[:7]) + '"'
    asked, answer = http.requests(http.append, bare)
    assert (answer.status, asked) == (201, 2)


def test_an_etag_names_its_state_with_a_seal_and_without(full: None) -> None:
    http = Counted()
    sealed = http.append(None).etag
    bare = '"' + ".".join(sealed.strip('"').split(".")[:7]) + '"'
    other = sealed.replace('"1.', '"2.')
    for named, status in ((sealed, 304), (bare, 304), (f"{other}, {bare}", 304), (other, 200)):
        assert http.api.call("GET", f"/streams/{STREAM}", headers={"If-None-Match": named}).status == status


FORGED: Final[dict[str, Callable[[list[str]], list[str]]]] = {
    "a version beyond the end": lambda parts: ["7", *parts[1:]],
    "another page": lambda parts: [parts[0], f"{0:08x}{parts[1][8:]}", *parts[2:]],
    "another time": lambda parts: [
        parts[0],
        parts[1][:-1] + ("0" if parts[1][-1] != "0" else "1"),
        *parts[2:],
    ],
    "another low-water mark": lambda parts: [*parts[:7], "1", parts[8]],
    "no unfolds": lambda parts: [*parts[:4], "1", *parts[5:]],
    "another seal": lambda parts: [*parts[:8], "0" * 32],
}


@pytest.mark.usefixtures("full")
@pytest.mark.parametrize("forging", FORGED)
def test_a_forged_etag_is_not_believed(forging: str) -> None:
    http = Counted()
    sealed = http.append(http.append(None).etag).etag
    forged = '"' + ".".join(FORGED[forging](sealed.strip('"').split("."))) + '"'
    before = http.ops.copy()
    answer = http.append(forged)
    assert answer.status in (201, 412)
    assert any(isinstance(op, Query) for op in http.ops[len(before) :]), "the last page is read first"
    assert http.begun() == ([0, 1, 2] if answer.status == 201 else [0, 1])


@pytest.mark.usefixtures("full")
def test_an_etag_is_of_one_stream() -> None:
    http = Counted()
    sealed = http.append(http.append(None).etag).etag
    http.append(None, stream="Cart-2")
    assert http.append(sealed, stream="Cart-2").status == 412
    assert http.begun("Cart-2") == [0]


@pytest.mark.usefixtures("full")
def test_an_etag_of_another_deployment_is_not_believed() -> None:
    """A client that turns to a store of the same names, such as another stage, has ETags of streams that are longer."""
    here, there = Counted(), Counted()
    sealed = here.append(here.append(None).etag).etag
    there.append(None)
    there.append(there.append(None, stream="Cart-2").etag, stream="Cart-2")
    assert there.append(sealed).status == 412
    assert there.begun() == [0]


@pytest.mark.usefixtures("full")
def test_a_seal_is_of_one_table_though_another_has_its_key() -> None:
    """A restored table has another name, the same key, and may lack what was appended last."""
    token = memory_streams().append(STREAM, [Event(type="A")]).token
    key = b"k" * 32
    said = {seals._seal(key, table, STREAM, token) for table in ("prod-streams", "prod-streams-restored")}  # noqa: SLF001
    assert len(said) == 2


@pytest.mark.usefixtures("full")
def test_a_new_key_ends_belief_in_what_the_old_one_sealed() -> None:
    http = Counted()
    sealed = http.append(None).etag
    http.tables.execute(Put(table="streams", item={**http.key, "k": {"B": b"n" * 32}}))
    fresh = Counted(http.tables)  # functions that start now
    asked, answer = fresh.requests(fresh.append, sealed)
    assert (answer.status, asked) == (201, 3), "the key, the last page, the append"
    asked, answer = fresh.requests(fresh.append, answer.etag)
    assert (answer.status, asked) == (201, 1)


@pytest.mark.usefixtures("full")
def test_of_two_that_put_the_first_key_at_once_both_seal_with_the_first() -> None:
    tables = memory_tables()
    theirs = Put(table="streams", item={"p": {"S": SEALS}, "i": {"N": "0"}, "k": {"B": b"t" * 32}})

    def around(execute: Execute) -> Execute:
        def overtaken(op: Op) -> Reply:
            if isinstance(op, Put) and op.item["p"]["S"] == SEALS:
                execute(theirs)
            return execute(op)

        return overtaken

    first = Api(tables=tables, around=around).append(STREAM, "A").etag
    http = Counted(tables)
    asked, answer = http.requests(http.append, first)
    assert (answer.status, asked) == (201, 2), "the key, the append"
    assert http.key == theirs.item


@pytest.mark.usefixtures("full")
@pytest.mark.parametrize("what", [Query, Put])
def test_what_was_appended_is_answered_where_the_key_cannot_be_had(what: type[Op]) -> None:
    tables = memory_tables()

    def around(execute: Execute) -> Execute:
        def denied(op: Op) -> Reply:
            if isinstance(op, what) and SEALS in str(op):
                raise Refused("dynamodb:Query", "not allowed")
            return execute(op)

        return denied

    api = Api(tables=tables, around=around)
    answer = api.append(STREAM, "A")
    assert answer.status == 201
    assert len(answer.etag.split(".")) == 7
    again = api.call(
        "POST", f"/streams/{STREAM}/events", {"events": [{"type": "B"}]}, headers={"If-Match": answer.etag}
    )
    assert again.status == 201


@pytest.mark.usefixtures("full")
def test_a_position_is_believed_in_an_append_after_it() -> None:
    http = Counted()
    position = None
    for _ in range(3):
        position = http.tagged(position).json["position"]
    for _ in range(5):
        asked, answer = http.requests(http.tagged, position)
        assert (answer.status, asked) == (201, 1)
        position = answer.json["position"]
    read = http.api.call("POST", "/dcb/query", {"query": QUERY}).json["position"]
    asked, answer = http.requests(http.tagged, read)
    assert (answer.status, asked) == (201, 1)


@pytest.mark.usefixtures("full")
def test_tokens_of_several_streams_are_believed() -> None:
    http = Counted()
    streams = ["Cart-1", "Cart-2"]

    def appends(tokens: list[Any]) -> dict[str, Any]:
        named = zip(streams, tokens, strict=True)
        return {"appends": [{"stream": s, "events": [{"type": "A"}], "expected": t} for s, t in named]}

    answer = http.api.call("POST", "/streams", appends(["no_stream", "no_stream"]))
    for _ in range(3):
        tokens = [each["token"] for each in answer.json["streams"]]
        asked, answer = http.requests(http.api.call, "POST", "/streams", appends(tokens))
        assert (answer.status, asked) == (201, 1)
    assert isinstance(http.ops[-1], Transact)


@pytest.mark.parametrize("text", [Token.text, lambda token: token.bare], ids=["as told", "without the mark"])
def test_a_token_from_outside_leaves_the_low_water_mark_as_it_is(
    text: Callable[[Token], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a deletion that was interrupted hides would show again, were the next page begun without it."""
    tables = memory_tables()
    streams = memory_streams(tables)
    for number in range(3):
        monkeypatch.setattr(writes, "is_full", lambda *_, number=number, **__: number < 2)
        streams.append(STREAM, [Event(type="Secret")])
    token = streams.load(STREAM).token
    streams.driver.run(delete(streams.table, STREAM, token, "e" * 32, leave_open=True, writes=0))
    state = streams.load(STREAM)
    assert (state.version, state.low_water, list(streams.read(STREAM))) == (3, 3, [])

    monkeypatch.setattr(writes, "is_full", lambda *_, **__: True)
    token = streams.append(STREAM, [Event(type="Open")], expected=parse_token(text(state.token))).token
    streams.append(STREAM, [Event(type="Next")], expected=token)
    assert [event.type for event in streams.read(STREAM)] == ["Open", "Next"]
