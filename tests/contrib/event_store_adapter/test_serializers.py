"""Payloads as each of event-store-adapter's libraries writes them, and the example rows of its schema."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from epochal.contrib.event_store_adapter.hashes import hash_of
from epochal.contrib.event_store_adapter.ids import aggregate_id
from epochal.contrib.event_store_adapter.items import KeyResolver
from epochal.contrib.event_store_adapter.model import AggregateEvent, Lock
from epochal.contrib.event_store_adapter.port import heal_journal, stored
from epochal.contrib.event_store_adapter.retention import Retention
from epochal.contrib.event_store_adapter.serializers import SERIALIZERS, serializer_of
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.errors import CorruptData, InvalidInput
from epochal.layout.healing import Gap
from epochal.model.expected_version import ANY, NO_STREAM
from epochal.plan.ops import Put
from epochal.plan.values import AttributeValue, Item, binary, number, text
from tests.contrib.event_store_adapter.world import World, site

ACCOUNT = aggregate_id("user-account", "01H42K4ABWQ5V2XQEP3A48VE0Z")

# The example rows of the schema, shortened by members' members.
CREATED = (
    b'{"type":"Created","id":"01H42KBHCW1BZG504J4ZXKA2F2","aggregate_id":{"value":"01890535-c59c-72d5-08a8-dcea316374c8"},'
    b'"seq_nr":1,"name":"test","members":{"members":{}},"occurred_at":"2023-06-29T03:32:37.404481Z"}'
)
STATE = (
    b'{"id":{"value":"0189053a-d0b4-8f9b-4fb6-db91f72ccf16"},"name":"test","members":{"members":{}},"messages":[],'
    b'"seq_nr_counter":1,"version":1}'
)

EVENTS = {
    "javascript": ("Renamed", b'{"type":"Renamed","data":{"to":"Ann"}}', b'{"to":"Ann"}'),
    "rust": ("Created", CREATED, CREATED),
    "go": ("Renamed", b'{"Id":"1","TypeName":"Renamed","SeqNr":1}', None),
    "java": ("renamed", b'{"type":"renamed","id":"1","occurredAt":1700000000.123456789}', None),
    "php": ("renamed", b'{"typeName":"renamed","id":"1","path":"a\\/b"}', None),
    "plain": ("", b'{"Id":"1","AggregateId":{"TypeName":"a","Value":"b"}}', None),
}
"""What each writes: the type in it, the payload, and its data where that is not the payload."""


def store(world: World, library: str, retention: Retention | None = None) -> AggregateStore:
    keys = KeyResolver(hash=hash_of("javascript" if library == "plain" else library))
    found = replace(site(), keys=keys, serializer=serializer_of(library))
    return replace(world.store(retention), site=found)


def written_elsewhere(world: World, ours: AggregateStore, event: bytes, state: bytes) -> None:
    """What a library writes first: a head and an event, with nothing of ours."""

    def payload(content: bytes) -> AttributeValue:
        return text(content.decode()) if ours.site.serializer.text else binary(content)

    shared: Item = {"aid": text(str(ACCOUNT)), "ttl": number(0)}
    keys = ours.site.keys
    head = {
        **keys.key(ACCOUNT, 0),
        **shared,
        "seq_nr": number(0),
        "version": number(1),
        "payload": payload(state),
    }
    row = {**keys.key(ACCOUNT, 1), **shared, "seq_nr": number(1), "payload": payload(event)}
    world.tables.execute(Put(table="snapshot", item=head))
    world.tables.execute(
        Put(table="journal", item={**row, "occurred_at": text("2023-06-29T03:32:37.404481Z")})
    )


@pytest.mark.parametrize("library", SERIALIZERS)
def test_what_a_library_writes_is_read_appended_to_and_told_to_the_feed(library: str) -> None:
    world = World()
    ours = store(world, library)
    kind, payload, data = EVENTS[library]
    state = b'{"type":"user-account","data":{"seq_nr":1}}' if library == "javascript" else STATE
    written_elsewhere(world, ours, payload, state)
    (found,) = ours.events_after(ACCOUNT)
    assert (found.type, found.data) == (kind, payload if data is None else data)
    replay = ours.replay(ACCOUNT)
    assert replay is not None
    assert (replay.snapshot.seq_nr, replay.snapshot.lock) == (1, Lock(version=1, seq_nr=1))
    (item,) = world.tables.items("journal")
    assert stored(ours.site, item).types == (kind,)
    gap = Gap(stream=str(ACCOUNT), index=0, end=None)
    assert [span.types for span in ours.driver.run(heal_journal(ours.site)(gap)).spans] == [(kind,)]
    ours.append(ACCOUNT, [AggregateEvent(type=kind or "T", data=found.data)], snapshot=b'{"seq_nr":2}')
    assert [each.data for each in ours.events_after(ACCOUNT)] == [found.data] * 2


@pytest.mark.parametrize("library", SERIALIZERS)
def test_what_we_write_is_as_the_library_writes_it(library: str) -> None:
    world = World()
    ours = store(world, library, Retention())
    kind, payload, data = EVENTS[library]
    given = payload if data is None else data
    ours.append(ACCOUNT, [AggregateEvent(type=kind or "T", data=given)], snapshot=b'{"n": 1}')
    (event,) = world.tables.items("journal")
    state = b'{"type":"user-account","data":{"n": 1}}' if library == "javascript" else b'{"n": 1}'
    as_stored = (lambda b: text(b.decode())) if library == "php" else binary
    assert event["payload"] == as_stored(payload)
    snapshots = list(world.tables.items("snapshot"))
    assert [item["payload"] for item in snapshots] == [as_stored(state)] * 2, "the head and its copy"
    found = ours.latest_snapshot(ACCOUNT)
    assert found is not None
    assert found.data == (b'{"n":1}' if library == "javascript" else b'{"n": 1}')


def test_serde_tags_by_the_name_of_the_only_member_unless_told_otherwise() -> None:
    rust = SERIALIZERS["rust"]
    assert rust.event(b'{"Renamed":{"to":"Ann"}}') == ("Renamed", b'{"Renamed":{"to":"Ann"}}')
    assert rust.event(b'"Closed"') == ("Closed", b'"Closed"')
    assert rust.event(b'{"a":1,"b":2}') == ("", b'{"a":1,"b":2}')


@pytest.mark.parametrize(("written", "read"), [("rust", "javascript"), ("javascript", "rust")])
def test_an_aggregate_of_another_form_is_refused_before_anything_is_mixed(written: str, read: str) -> None:
    world = World()
    kind, payload, data = EVENTS[written]
    theirs = replace(store(world, written), site=replace(store(world, written).site, keys=KeyResolver()))
    theirs.append(
        ACCOUNT, [AggregateEvent(type=kind, data=payload if data is None else data)], snapshot=b'{"n":1}'
    )
    ours = replace(theirs, site=replace(theirs.site, serializer=serializer_of(read)))
    kind, payload, data = EVENTS[read]
    event = AggregateEvent(type=kind, data=payload if data is None else data)
    before = list(world.tables.items("journal"))
    told = f"the serializer '{read}' cannot read a payload: .*; for payloads of another library, set `serializer`"
    with pytest.raises(CorruptData, match=told):
        ours.append(ACCOUNT, [event], expected=ANY)
    for reading in (ours.lock, ours.latest_snapshot, ours.replay, ours.events_after):
        with pytest.raises(CorruptData, match=told):
            reading(ACCOUNT)
    assert list(world.tables.items("journal")) == before


def test_a_head_that_calls_its_aggregate_otherwise_is_refused() -> None:
    """Rust's library takes for `aid` what the application prints an id as: without the type we would not be found."""
    world = World()
    ours = store(world, "rust")
    written_elsewhere(world, ours, CREATED, STATE)
    (head,) = world.tables.items("snapshot")
    world.tables.execute(Put(table="snapshot", item={**head, "aid": text(ACCOUNT.value)}))
    with pytest.raises(CorruptData, match="its `aid` is '01H42K4ABWQ5V2XQEP3A48VE0Z'"):
        ours.append(ACCOUNT, [AggregateEvent(type="Created", data=CREATED)])


@pytest.mark.parametrize(
    ("library", "data", "rule"),
    [
        ("java", b'{"to":"Ann"}', "must name the type 'Renamed' itself"),
        ("java", b'{"type":"Created"}', "but names 'Created'"),
        ("rust", b'{"Created":{}}', "but names 'Created'"),
        ("plain", b'{"type":"Renamed","data":1}', "would be taken for a wrapped payload"),
        ("plain", b"{", "must be UTF-8 JSON"),
    ],
)
def test_data_that_the_library_could_not_read_is_refused(library: str, data: bytes, rule: str) -> None:
    world = World()
    with pytest.raises(InvalidInput, match=rule) as caught:
        store(world, library).append(
            ACCOUNT, [AggregateEvent(type="Renamed", data=data)], snapshot=b"{}", expected=NO_STREAM
        )
    assert caught.value.field == "events[0].data"
    assert list(world.tables.items("journal")) == []


def test_a_serializer_that_is_none_is_refused() -> None:
    with pytest.raises(
        InvalidInput, match="serializer: must be one of javascript, rust, go, java, php, plain"
    ):
        serializer_of("cobol")


# ---------------------------------------------------------------------------------------------------- byte order marks

MARK = b"\xef\xbb\xbf"


@pytest.mark.parametrize("library", SERIALIZERS)
def test_json_behind_a_byte_order_mark_is_refused(library: str) -> None:
    world = World()
    kind, payload, data = EVENTS[library]
    given = payload if data is None else data
    rule = "must be JSON without a byte order mark"
    for event, state, field in ((MARK + given, b"{}", "events[0].data"), (given, MARK + b"{}", "snapshot")):
        with pytest.raises(InvalidInput, match=rule) as caught:
            store(world, library).append(
                ACCOUNT, [AggregateEvent(type=kind or "T", data=event)], snapshot=state
            )
        assert caught.value.field == field
    assert list(world.tables.items("journal")) == []


@pytest.mark.parametrize("library", SERIALIZERS)
def test_what_was_stored_with_a_byte_order_mark_is_read_without(library: str) -> None:
    world = World()
    ours = store(world, library)
    if library == "javascript":
        wrapped = b'{"type":"T,\\"data\\":","data":' + MARK + b'{"seq_nr":1}}'
        written_elsewhere(world, ours, wrapped, wrapped)
    else:
        written_elsewhere(world, ours, MARK + EVENTS[library][1], MARK + STATE)
    (found,) = ours.events_after(ACCOUNT)
    snapshot = ours.latest_snapshot(ACCOUNT)
    assert snapshot is not None
    assert not (found.data + snapshot.data).count(MARK)
    json.loads(found.data)
