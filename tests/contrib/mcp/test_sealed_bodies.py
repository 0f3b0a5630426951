"""No tool shows a sealed body, nor for whom it is sealed, however the body was wrapped before it was stored."""

from __future__ import annotations

import gzip
import json
import zlib
from base64 import a85encode, b32encode, b64encode, b85encode, encodebytes, urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochal import Event
from epochal.contrib.mcp.server import Tools, answering, read_only
from epochal.contrib.subjects.sealing import encrypt, write_sealed
from epochal.deployment import Deployment
from epochal.layout.tables import TIMERS
from epochal.scheduling import after, later
from epochal.testing.feeds import MemoryStore
from epochal.testing.stores import MemoryBucket, memory_settings
from tests.contrib.timers.world import World

SUBJECT: Final = "ada.lovelace@example.com"
SECRET: Final = b'{"name":"Ada Lovelace","street":"12 St James\'s Square","city":"London"}'

Wrap = Callable[[bytes], bytes]


def as_text(content: bytes) -> str:
    return content.decode("latin-1")


def escaped(content: bytes) -> bytes:
    """The content as the text of a JSON string, each character as an escape."""
    return b'"' + b"".join(b"\\u%04x" % each for each in content) + b'"'


def in_text(wrap: Wrap, content: bytes) -> bytes:
    return json.dumps({"of": 7, "body": as_text(wrap(content))}).encode()


def without_padding(content: bytes) -> bytes:
    return b64encode(content).rstrip(b"=")


def without_padding_urlsafe(content: bytes) -> bytes:
    return urlsafe_b64encode(content).rstrip(b"=")


def as_slashes_are_escaped(content: bytes) -> bytes:
    """As PHP writes JSON."""
    return b'{"body":"%s"}' % b64encode(content).replace(b"/", b"\\/")


def as_numbers(content: bytes) -> bytes:
    """As Node writes a buffer."""
    return json.dumps({"type": "Buffer", "data": [*content]}).encode()


ENCODINGS: Final[Mapping[str, Wrap]] = {
    "object": lambda content: (
        b'{"a":[{"b":%s}]}' % content if content[:1] in b'{"[' else in_text(bytes, content)
    ),
    "text": lambda content: json.dumps({"envelope": as_text(content)}).encode(),
    "array of texts": lambda content: json.dumps(["no", [as_text(content)]], indent=1).encode(),
    "escapes": escaped,
    "key": lambda content: json.dumps({as_text(content): 1}).encode(),
    "sentence": lambda content: json.dumps({"log": f"got {as_text(content)} from the queue"}).encode(),
    "base64": b64encode,
    "urlsafe base64": urlsafe_b64encode,
    "base64 without padding": without_padding,
    "urlsafe base64 without padding": without_padding_urlsafe,
    "base64 in JSON": partial(in_text, b64encode),
    "urlsafe base64 in JSON": partial(in_text, without_padding_urlsafe),
    "base64 of PHP": as_slashes_are_escaped,
    "base64 of mail": encodebytes,
    "base64 of mail in JSON": partial(in_text, encodebytes),
    "hexadecimal": lambda content: content.hex().encode(),
    "hexadecimal in JSON": partial(in_text, lambda content: content.hex().upper().encode()),
    "hexadecimal pairs": lambda content: content.hex(" ").encode(),
    "numbers": as_numbers,
    "percent": lambda content: quote(content, safe="").encode(),
    "binary before it": lambda content: b"\x82\xa1x\xd9\xff" + content,
    "UTF-16": lambda content: as_text(content).encode("utf-16"),
}
OPAQUE: Final[Mapping[str, Wrap]] = {
    "base32 in JSON": partial(in_text, b32encode),
    "base85 in JSON": partial(in_text, b85encode),
    "Adobe's base85 in JSON": partial(in_text, a85encode),
    "gzip": lambda content: gzip.compress(content, mtime=0),
    "zlib": zlib.compress,
    "gzip in base64 in JSON": partial(in_text, lambda content: b64encode(gzip.compress(content, mtime=0))),
    "zlib in hexadecimal in JSON": partial(in_text, lambda content: zlib.compress(content).hex().encode()),
    "zlib in hexadecimal pairs": lambda content: zlib.compress(content).hex(" ").encode(),
    "zlib in hexadecimal pairs in JSON": partial(
        in_text, lambda content: zlib.compress(content).hex(":").encode()
    ),
    "zlib as numbers": lambda content: as_numbers(zlib.compress(content)),
    "zlib as numbers in text": lambda content: json.dumps(
        {"log": as_text(as_numbers(zlib.compress(content)))}
    ).encode(),
}


SEALED: Final = write_sealed(encrypt(bytes(range(32)), SUBJECT, bytes(range(100, 112)), SECRET))
"""Always the same, so that a failure comes again."""


def strings_in(value: Any) -> Iterator[str]:
    """All texts of an answer, and what they hold where they are JSON again."""
    if isinstance(value, str):
        yield value
        try:
            inner = json.loads(value)
        except ValueError:
            return
        if not isinstance(inner, str) or inner != value:
            yield from strings_in(inner)
    elif isinstance(value, dict):
        for name, each in value.items():
            yield name
            yield from strings_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings_in(each)


def leaks(answer: str, forms: list[bytes]) -> list[str]:
    """What an answer shows of the forms that a sealed body took on its way into the store."""
    texts = [answer, *strings_in(json.loads(answer))]
    traces = [SUBJECT, as_text(SEALED)[-60:-20]]
    for form in forms:
        for text in (as_text(form), b64encode(form).decode(), form.hex()):
            middle = len(text) // 2
            traces.append(text[middle - 20 : middle + 20])
    return [trace for trace in traces if any(trace in text for text in texts)]


def tools_of(feed: MemoryStore, **settings: str) -> Tools:
    feed.index()
    driver = replace(feed.streams.driver, execute=feed.tables.execute)
    deployment = Deployment(settings=memory_settings(**settings), driver=driver, bucket=MemoryBucket())
    return Tools(read_only(deployment))


def answers(feed: MemoryStore, **settings: str) -> Iterator[tuple[str, str]]:
    tools = tools_of(feed, **settings)
    yield "streams", answering(tools.streams)()
    for backward in (False, True):
        yield "read", answering(tools.read)("Order-1", backward=backward, body_chars=20_000)
    yield "partitions", answering(tools.partitions)()
    yield "feed", answering(tools.feed)(30_000, body_chars=20_000)
    yield "newest", answering(tools.newest)(body_chars=20_000)
    yield "search", answering(tools.search)(body_chars=20_000)
    yield "trace", answering(tools.trace)("c-1", body_chars=20_000)
    yield "timers", answering(tools.timers)("Order-1")
    yield "health", answering(tools.health)()


def check(feed: MemoryStore, forms: list[bytes], **settings: str) -> None:
    for tool, answer in answers(feed, **settings):
        assert not leaks(answer, forms), (tool, answer)


@pytest.mark.parametrize("field", ["data", "meta"])
@pytest.mark.parametrize("wrap", [*ENCODINGS.values(), *OPAQUE.values()], ids=[*ENCODINGS, *OPAQUE])
def test_a_sealed_body_is_not_shown_however_it_is_wrapped(wrap: Wrap, field: str) -> None:
    feed = MemoryStore()
    body = wrap(SEALED)
    feed.streams.append("Order-1", [Event(type="Placed", correlation_id="c-1", **{field: body})])
    check(feed, [SEALED, body])


@pytest.mark.slow
@given(
    names=st.lists(st.sampled_from(sorted(ENCODINGS)), max_size=4),
    last=st.none() | st.sampled_from(sorted(OPAQUE)),
    field=st.sampled_from(["data", "meta"]),
    timed=st.booleans(),
)
def test_a_sealed_body_is_not_shown_whatever_encodings_follow_one_another(
    names: list[str], last: str | None, field: str, timed: bool
) -> None:
    forms = [SEALED]
    for name in names:
        forms.append(ENCODINGS[name](forms[-1]))
        if len(forms[-1]) > 60_000:
            forms.pop()
            break
    if last is not None:
        forms.append(OPAQUE[last](forms[-1]))
    event = Event(type="Placed", correlation_id="c-1", **{field: forms[-1]})
    feed = MemoryStore()
    feed.streams.append("Order-1", [later("mail", [event], at=after(days=1)) if timed else event])
    check(feed, forms)


@pytest.mark.parametrize(
    "names",
    [
        ("hexadecimal pairs", "base64 without padding"),
        ("UTF-16", "hexadecimal pairs", "base64", "hexadecimal"),
        ("UTF-16", "array of texts", "hexadecimal"),
        ("numbers", "numbers"),
        ("UTF-16",),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("last", [a85encode, b85encode, b32encode])
def test_a_sealed_body_is_not_shown_in_base85_that_looks_like_a_link(
    names: tuple[str, ...], last: Wrap
) -> None:
    """What repeats itself, as digits of digits do, has few characters in base85 that a link has not."""
    body = SEALED
    for name in names:
        body = ENCODINGS[name](body)
    wrapped = in_text(last, body)
    feed = MemoryStore()
    feed.streams.append("Order-1", [Event(type="Placed", data=wrapped)])
    check(feed, [SEALED, body, wrapped])


@pytest.mark.parametrize(
    "wrap",
    [bytes, b64encode, without_padding_urlsafe, partial(in_text, bytes)],
    ids=["plain", "64", "64url", "in JSON"],
)
def test_a_sealed_body_is_not_shown_as_a_tag_an_id_a_cause_or_a_type(wrap: Wrap) -> None:
    text = as_text(wrap(SEALED))
    events = [
        Event(type="Placed", tags=(text,), correlation_id="c-1"),
        Event(type="Placed", causation_id=text, correlation_id="c-1"),
        Event(type=text, correlation_id="c-1"),
        later("mail", [Event(type=text)], at=after(days=1)),
    ]
    feed = MemoryStore()
    feed.streams.append("Order-1", events)
    feed.streams.append("Order-1", [Event(type="Placed", correlation_id=text)])
    check(feed, [SEALED, wrap(SEALED)])
    tools = tools_of(feed)
    assert not leaks(answering(tools.trace)(text), [SEALED, wrap(SEALED)])


def test_a_sealed_body_is_not_shown_as_the_name_of_a_stream_or_of_a_timer() -> None:
    """Names take the letters of base64."""
    sealed = b'{"$sealed":1,"subject":"ada.lovelace@example.com","nonce":"AAAA","body":"AAAA"}'
    name = without_padding_urlsafe(sealed).decode()
    feed = MemoryStore()
    feed.streams.append("Order-1", [later(name, [Event(type="Placed")], at=after(days=1))])
    feed.streams.append(name, [Event(type="Placed")])
    check(feed, [sealed, name.encode()])


def test_the_timers_of_a_store_show_no_sealed_body_in_their_tags() -> None:
    world = World()
    tags = (as_text(SEALED), urlsafe_b64encode(SEALED).decode())
    world.tagged.append([later("reminder", [Event(type="Noted", tags=tags)], at=after(days=400), tags=tags)])
    world.arm()
    tools = tools_of(world.feed, timers_table=TIMERS.kind)
    assert not leaks(answering(tools.timers)(), [SEALED, b64encode(SEALED)])


def test_a_sealed_event_is_shown_by_its_place_its_type_and_its_time_alone() -> None:
    feed = MemoryStore()
    event = Event(
        type="Named", data=SEALED, tags=("user:ada",), correlation_id="c-1", timestamp="2026-11-01T00:00:00Z"
    )
    feed.streams.append("Order-1", [event])
    (shown,) = json.loads(answering(tools_of(feed).read)("Order-1"))["events"]
    id_ = shown.pop("id")
    assert len(id_) == 36
    assert shown == {
        "stream": "Order-1",
        "index": 0,
        "type": "Named",
        "time": "2026-11-01T00:00:00.000000Z",
        "sealed": True,
    }


@pytest.mark.parametrize("words", ["ada.love", as_text(SEALED)[-50:-30], "user:ada"])
def test_a_search_tells_nothing_of_what_is_not_shown(words: str) -> None:
    feed = MemoryStore()
    for wrap in (bytes, b64encode, OPAQUE["gzip in base64 in JSON"]):
        feed.streams.append(
            "Order-1", [Event(type="Named", data=wrap(SEALED), tags=("user:ada",)[: wrap is bytes])]
        )
    assert json.loads(answering(tools_of(feed).search)(words))["events"] == []


ORDINARY: Final = {
    "ids": {
        "order": "0192f0c1-5a5e-7cc3-9f0a-1b2c3d4e5f60",
        "sha256": "9f86d081884c7d659a2feaa0c55ad015" * 2,
    },
    "a link": "https://shop.example.com/orders/2026-11-28/order-7/lines?page=2&size=50&sort=price&filter=open",
    "a path": "s3/bucket/exports/AWSDynamoDB/01732780000000-1b2c3d4e/data/part-of-the-export.json",
    "an ARN": "arn:aws:dynamodb:eu-west-1:123456789012:table/epochal-production-streams-of-the-shop",
    "prose": "The customer asked for a refund of $12.50, which was granted.\nSee the note of 2026-11-28.\n"
    * 9,
    "other letters": "顧客は返金を求めました。" * 30,
    "a table": "sku,amount,price\n" + "A-17,2,9.90\nB-4,1,120.00\n" * 20,
    "markup": "<order><line><sku>A-17</sku><amount>2</amount></line><line><sku>B-4</sku></line></order>",
    "JSON": json.dumps({"lines": [{"sku": "A-17", "amount": number} for number in range(20)]}),
    "base64 of JSON": b64encode(
        json.dumps({"note": "nothing that is sealed", "number": 7}).encode() * 1
    ).decode(),
    "numbers": [[1.10, 2, 3_000_000_000_000]] * 20,
    "many small numbers": [*range(20, 120)],
    "a list in text": "stock: " + ", ".join(map(str, range(20, 120))),
    "a fingerprint": bytes(range(100, 132)).hex(":"),
    "pairs of words": "an ox is in it, as we go up to it. " * 9,
    "one letter": "x" * 500,
    "marks": "$1, $seal and sealed are words",
}


@pytest.mark.parametrize("value", ORDINARY.values(), ids=ORDINARY)
def test_an_ordinary_event_is_shown_as_it_is_stored(value: object) -> None:
    body = json.dumps({"value": value}, ensure_ascii=False).encode()
    feed = MemoryStore()
    feed.streams.append("Order-1", [Event(type="Placed", data=body, meta=body)])
    (shown,) = json.loads(answering(tools_of(feed).read)("Order-1", body_chars=20_000))["events"]
    assert (shown["data"], shown["metadata"]) == (body.decode(), body.decode())
    assert "withheld" not in shown


def test_a_body_that_is_plain_text_is_shown_in_base64() -> None:
    body = b"Dear customer, your order was sent.\nIt will arrive on Monday, or on Tuesday at the latest."
    feed = MemoryStore()
    feed.streams.append("Order-1", [Event(type="Placed", data=body)])
    (shown,) = json.loads(answering(tools_of(feed).read)("Order-1"))["events"]
    assert shown["data64"] == b64encode(body).decode()


def test_what_nobody_can_look_into_is_withheld_and_the_rest_of_the_event_shown() -> None:
    picture = b64encode(zlib.compress(bytes(range(256)))).decode()
    body = json.dumps({"total": 1.10, "picture": picture, "note": "fragile"}, separators=(",", ":"))
    feed = MemoryStore()
    feed.streams.append(
        "Order-1", [Event(type="Placed", data=body.encode()), Event(type="Sent", data=bytes(range(256)))]
    )
    placed, sent = json.loads(answering(tools_of(feed).read)("Order-1"))["events"]
    hidden = f"({len(picture)} characters withheld)"
    assert (placed["data"], placed["withheld"]) == (body.replace(picture, hidden), ["data"])
    assert (sent["data64"], sent["withheld"]) == ("(256 bytes withheld)", ["data64"])


def test_a_sealed_body_in_the_words_of_an_error_is_not_quoted() -> None:
    from mcp.server.mcpserver.exceptions import ToolError  # noqa: PLC0415

    feed = MemoryStore()
    with pytest.raises(ToolError) as raised:
        answering(tools_of(feed).streams)(start=as_text(SEALED))
    assert SUBJECT not in str(raised.value)
