"""Who is forgotten cannot be read again, wherever a copy turns up; everybody else can."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError
from moto import mock_aws

from epochal import Decider, Deciders, Event, Unfold
from epochal.contrib.equinox import memory_tips
from epochal.contrib.event_store_adapter import AggregateEvent, aggregate_id, memory_aggregates
from epochal.contrib.sekiban import memory_dcb_events
from epochal.contrib.subjects.items import SUBJECT_KEYS
from epochal.contrib.subjects.sealing import (
    NONCE_BYTES,
    KmsWrapping,
    Shredded,
    Subjects,
    decrypt,
    encrypt,
    read_sealed,
    sealed_codec,
    write_sealed,
)
from epochal.contrib.subjects.testing import MemoryWrapping, memory_subjects
from epochal.deciders.access import snapshot
from epochal.deciders.cache import Cache
from epochal.deciders.codecs import json_codec
from epochal.errors import CorruptData, InvalidInput, InvalidRequest, Refused, SubjectForgotten, Unavailable
from epochal.plan.failures import Lost
from epochal.plan.ops import Op, Put, Reply
from epochal.reactions.definition import Delivery, reaction
from epochal.store.driver import Driver, Meter
from epochal.testing.feeds import MemoryStore
from epochal.testing.memory import MemoryTables
from tests.core.feed.feeds import Clock

SECRET = b'{"name":"Ada Lovelace","born":1815}'


def test_what_is_sealed_is_json_and_shows_nothing_of_the_body() -> None:
    sealed = memory_subjects().seal("user-7", SECRET)
    assert set(json.loads(sealed)) == {"$sealed", "subject", "nonce", "body"}
    assert b"Ada" not in sealed


def test_a_sealed_body_comes_back_as_it_was() -> None:
    subjects = memory_subjects()
    for body in (SECRET, b"", bytes(range(256)) * 100):
        assert subjects.unseal(subjects.seal("user-7", body)) == body


def test_what_was_never_sealed_comes_back_as_it_is() -> None:
    subjects = memory_subjects()
    assert [subjects.unseal(body) for body in (b"", b"{}", SECRET)] == [b"", b"{}", SECRET]


def test_after_forgetting_every_copy_is_shredded_and_other_subjects_are_not() -> None:
    subjects = memory_subjects()
    hers, his = subjects.seal("ada", SECRET), subjects.seal("ben", SECRET)
    subjects.forget("ada")
    assert subjects.unseal(hers) == Shredded("ada")
    assert subjects.unseal(his) == SECRET
    assert (subjects.is_forgotten("ada"), subjects.is_forgotten("ben")) == (True, False)


def test_nothing_is_sealed_for_who_is_forgotten_even_if_he_never_had_a_key() -> None:
    subjects = memory_subjects()
    for subject in ("ada", "nobody"):
        subjects.forget(subject)
        subjects.forget(subject)
        with pytest.raises(SubjectForgotten):
            subjects.seal(subject, SECRET)


def test_the_key_is_gone_from_the_table() -> None:
    tables = MemoryTables({SUBJECT_KEYS.kind: SUBJECT_KEYS})
    subjects = memory_subjects(tables)
    subjects.seal("ada", SECRET)
    subjects.forget("ada")
    (item,) = tables.items(SUBJECT_KEYS.kind)
    assert set(item) == {"pk", "z", "t"}


def test_two_who_seal_first_end_with_one_key() -> None:
    tables, wrapping = MemoryTables({SUBJECT_KEYS.kind: SUBJECT_KEYS}), MemoryWrapping()
    one = replace(memory_subjects(tables), wrapping=wrapping)
    other = replace(memory_subjects(tables), wrapping=wrapping)
    theirs: list[bytes] = []

    def interfere(op: Op) -> Reply:
        if isinstance(op, Put) and not theirs:
            theirs.append(b"")
            theirs[0] = other.seal("ada", b"theirs")
        return tables.execute(op)

    mine = replace(one, driver=Driver(execute=interfere, meter=Meter())).seal("ada", b"mine")
    assert [one.unseal(body) for body in (mine, theirs[0])] == [b"mine", b"theirs"]


def test_a_key_whose_answer_is_lost_is_the_one_that_is_used() -> None:
    tables, lost = MemoryTables({SUBJECT_KEYS.kind: SUBJECT_KEYS}), []

    def lose(op: Op) -> Reply:
        reply = tables.execute(op)
        if isinstance(op, Put) and not lost:
            lost.append(op)
            raise Lost("reset")
        return reply

    calm = Clock()
    driver = Driver(execute=lose, meter=Meter(), clock=calm, sleep=calm.sleep)
    subjects = replace(memory_subjects(tables), driver=driver)
    assert subjects.unseal(subjects.seal("ada", SECRET)) == SECRET


def test_a_process_keeps_a_key_for_so_long_and_no_longer() -> None:
    tables, clock, meter = MemoryTables({SUBJECT_KEYS.kind: SUBJECT_KEYS}), Clock(), Meter()
    driver = Driver(execute=tables.execute, meter=meter, clock=clock, sleep=clock.sleep)
    subjects = replace(memory_subjects(tables), driver=driver, keep=300.0)
    sealed = subjects.seal("ada", SECRET)
    before = meter.requests
    assert subjects.unseal(sealed) == SECRET
    assert meter.requests == before
    memory_subjects(tables).forget("ada")
    clock.now = 299.0
    assert subjects.unseal(sealed) == SECRET
    clock.now = 300.0
    assert subjects.unseal(sealed) == Shredded("ada")


def test_a_key_is_kept_from_when_it_was_looked_up_however_long_it_took_to_unwrap() -> None:
    """Who is forgotten while KMS is slow is forgotten no later for it."""
    tables, clock = MemoryTables({SUBJECT_KEYS.kind: SUBJECT_KEYS}), Clock()

    wrapping = MemoryWrapping()

    class Slow:
        fresh = wrapping.fresh

        def unwrap(self, subject: str, wrapped: bytes) -> bytes:
            clock.now += 100.0
            memory_subjects(tables).forget(subject)
            return wrapping.unwrap(subject, wrapped)

    driver = Driver(execute=tables.execute, meter=Meter(), clock=clock, sleep=clock.sleep)
    subjects = replace(memory_subjects(tables), driver=driver, wrapping=Slow(), keep=300.0)
    sealed = subjects.seal("ada", SECRET)
    clock.now = 299.0
    assert subjects.unseal(sealed) == SECRET
    clock.now = 300.0
    assert subjects.unseal(sealed) == Shredded("ada")


def test_a_process_that_was_frozen_does_not_wake_up_with_its_keys() -> None:
    """Its own clock may have stood still meanwhile; the one on the wall has not, and to set that back is no help."""
    tables, clock, wall = MemoryTables({SUBJECT_KEYS.kind: SUBJECT_KEYS}), Clock(), [10**18]
    driver = Driver(execute=tables.execute, meter=Meter(), clock=clock, sleep=clock.sleep)
    subjects = replace(memory_subjects(tables), driver=driver, now=lambda: wall[0], keep=300.0)
    sealed = subjects.seal("ada", SECRET)
    memory_subjects(tables).forget("ada")
    wall[0] -= 3600 * 10**9
    assert subjects.unseal(sealed) == SECRET
    wall[0] = 10**18 + 299 * 10**9
    assert subjects.unseal(sealed) == SECRET
    wall[0] += 10**9
    assert subjects.unseal(sealed) == Shredded("ada")


def test_what_a_process_seals_with_a_key_that_it_kept_is_forgotten_with_the_rest() -> None:
    tables = MemoryTables({SUBJECT_KEYS.kind: SUBJECT_KEYS})
    subjects = memory_subjects(tables, keep=300.0)
    subjects.seal("ada", SECRET)
    other = replace(memory_subjects(tables), wrapping=subjects.wrapping)
    other.forget("ada")
    assert other.unseal(subjects.seal("ada", SECRET)) == Shredded("ada")


def test_who_forgets_holds_the_key_no_longer() -> None:
    subjects = memory_subjects(keep=300.0)
    sealed = subjects.seal("ada", SECRET)
    subjects.forget("ada")
    assert subjects.unseal(sealed) == Shredded("ada")


@pytest.mark.parametrize("subject", ["", "x" * 1_025, "é" * 513, "\ud800"])
def test_a_subject_without_a_usable_name_is_refused(subject: str) -> None:
    tables = MemoryTables({SUBJECT_KEYS.kind: SUBJECT_KEYS})
    subjects = memory_subjects(tables)
    for refuse in (lambda: subjects.seal(subject, SECRET), lambda: subjects.forget(subject)):
        with pytest.raises(InvalidInput, match="subject"):
            refuse()
    with pytest.raises(InvalidInput, match="subject"):
        subjects.is_forgotten(subject)
    assert not [*tables.items(SUBJECT_KEYS.kind)]


@pytest.mark.parametrize(
    "change",
    [
        {"subject": "ben"},
        {"$sealed": 2},
        {"nonce": "AAAA"},
        {"nonce": 7},
        {"body": "AAAAAAAAAAAAAAAAAAAAAAAAAAAA"},
        {"body": "no base64"},
        {"subject": None},
        {"subject": ""},
        {"subject": "x" * 1_025},
        {"subject": "\ud800"},
        {"nonce": "é"},
    ],
)
def test_a_body_that_was_tampered_with_is_corrupt_and_never_another(change: dict[str, Any]) -> None:
    subjects = memory_subjects()
    subjects.seal("ben", SECRET)
    sealed = {**json.loads(subjects.seal("ada", SECRET)), **change}
    with pytest.raises(CorruptData):
        subjects.unseal(json.dumps(sealed, separators=(",", ":")).encode())


@pytest.mark.parametrize(
    "body",
    [
        b'{"$sealed":', b'{"$sealed":1}', b'{"$sealed":' + b"[" * 100_000, b'{"$sealed":1,"subject":"ada"}',
        b'{"$sealed":' + b"9" * 5_000 + b"}", b'{"$sealed":\xff}', b'{"$sealed":1}{}', b'{"$sealed":1,"body":[]}',
    ],
    ids=lambda body: body[:20].decode("ascii", "ignore"),
)  # fmt: skip
def test_a_body_that_only_begins_as_if_it_were_sealed_is_corrupt(body: bytes) -> None:
    """Authors of events choose bodies: whoever reads one finds it broken, and no other error."""
    with pytest.raises(CorruptData):
        memory_subjects().unseal(body)


def test_a_body_cut_off_is_corrupt() -> None:
    subjects = memory_subjects()
    with pytest.raises(CorruptData):
        subjects.unseal(subjects.seal("ada", SECRET)[:-5])


def test_no_nonce_is_used_twice() -> None:
    subjects = memory_subjects()
    nonces = {json.loads(subjects.seal("ada", SECRET))["nonce"] for _ in range(200)}
    assert len(nonces) == 200


def test_the_format_is_the_one_that_is_written_down() -> None:
    """What was stored by this version is read by every later one."""
    stored = b'{"$sealed":1,"subject":"ada","nonce":"AAECAwQFBgcICQoL","body":"' + _KNOWN + b'"}'
    known = read_sealed(stored)
    assert known is not None
    assert decrypt(bytes(32), known) == b"hello"
    assert write_sealed(encrypt(bytes(32), "ada", bytes(range(NONCE_BYTES)), b"hello")) == stored


_KNOWN = b"4K5fPm8ANUE6j/A/5XM76tmf/rq6"


def test_replay_of_every_layout_goes_on_past_what_is_shredded() -> None:
    subjects = memory_subjects()
    sealed = subjects.seal("ada", SECRET)
    streams, aggregates, tagged = memory_tips(), memory_aggregates(), memory_dcb_events()
    open_body = b'{"n":1}'
    unfold = Unfold(type="Person", data=sealed)
    streams.append(
        "User-7", [Event(type="Named", data=sealed), Event(type="Left", data=open_body)], unfolds=[unfold]
    )
    user = aggregate_id("user", "7")
    events = [AggregateEvent(type="Named", data=sealed), AggregateEvent(type="Left", data=open_body)]
    aggregates.append(user, events, snapshot=sealed)
    tagged.append([Event(type="Named", data=sealed, tags=("user:7",))])
    (bare,) = tagged.append([Event(type="Named", data=sealed, meta=sealed, tags=("user:7",))]).events
    subjects.forget("ada")
    assert isinstance(bare.data, bytes)
    assert isinstance(bare.meta, bytes)
    assert [subjects.unseal(bare.data), subjects.unseal(bare.meta)] == [Shredded("ada")] * 2
    read = [subjects.unseal(event.data) for event in streams.read("User-7") if isinstance(event.data, bytes)]
    assert read == [Shredded("ada"), open_body]
    state = streams.load("User-7")
    assert state is not None
    assert [subjects.unseal(each.data) for each in state.unfolds if isinstance(each.data, bytes)] == [
        Shredded("ada")
    ]
    replay = aggregates.replay(user)
    assert replay is not None
    assert [subjects.unseal(event.data) for event in replay.events] in ([Shredded("ada"), open_body], [])
    assert subjects.unseal(replay.snapshot.data) == Shredded("ada")


def test_the_feed_brings_what_is_shredded_in_its_place_with_all_that_was_not_sealed() -> None:
    subjects, feed = memory_subjects(), MemoryStore()
    sealed = subjects.seal("ada", SECRET)
    feed.tips.append("User-7", [Event(type="Named", data=sealed), Event(type="Left", data=b"{}")])
    feed.aggregates.append(
        aggregate_id("user", "7"), [AggregateEvent(type="Named", data=sealed)], snapshot=b"{}"
    )
    feed.dcb.append([Event(type="Named", data=sealed, tags=("user:7",))])
    feed.index()
    subjects.forget("ada")
    found: dict[str, list[tuple[str, object]]] = {}
    for each in feed.feed.partitions():
        for item in feed.feed.page(each.partition, data=True).items:
            assert item.event is not None
            assert isinstance(item.event.data, bytes)
            found.setdefault(item.stream, []).append((item.event.type, subjects.unseal(item.event.data)))
    gone = ("Named", Shredded("ada"))
    assert found == {"User-7": [gone, ("Left", b"{}")], "user-7": [gone], "user:7": [gone]}


@dataclass(frozen=True)
class Named:
    user: str
    name: str


@dataclass(frozen=True)
class Left:
    user: str


UserEvent = Named | Left


def test_a_deciders_state_is_made_without_what_is_shredded() -> None:
    subjects = memory_subjects()
    streams = memory_tips()
    codec = sealed_codec(
        json_codec(Named, Left),
        subjects,
        subject_of=lambda event: event.user if isinstance(event, Named) else None,
        shredded=lambda stored, gone: Named(gone.subject, "(forgotten)") if stored.type == "Named" else None,
    )
    users = Deciders(
        streams=streams,
        decider=Decider(
            initial=tuple,
            evolve=lambda state, event: (*state, event),
            decide=lambda command, _state: [command],
        ),
        codec=codec,
    )
    users.handle("User-7", Named("ada", "Ada Lovelace"))
    assert users.handle("User-7", Left("ada")).state == (Named("ada", "Ada Lovelace"), Left("ada"))
    assert all(
        b"Lovelace" not in event.data for event in streams.read("User-7") if isinstance(event.data, bytes)
    )
    subjects.forget("ada")
    assert users.handle("User-7", Left("ada")).state == (
        Named("ada", "(forgotten)"),
        Left("ada"),
        Left("ada"),
    )


GONE: Final = "(forgotten)"


def test_with_snapshots_a_stream_goes_on_where_what_stands_in_for_the_forgotten_has_no_subject() -> None:
    """Whoever kept her in the state's own subject could decide nothing more: nothing is sealed for her any more."""
    subjects, streams = memory_subjects(), memory_tips()

    def users(
        subject_of: Callable[[UserEvent], str | None],
    ) -> Deciders[UserEvent, UserEvent | None, UserEvent]:
        return Deciders(
            streams=streams,
            decider=Decider(
                initial=lambda: None,
                evolve=lambda _, event: event,
                decide=lambda command, _state: [command],
            ),
            codec=sealed_codec(
                json_codec(Named, Left),
                subjects,
                subject_of=subject_of,
                shredded=lambda _, gone: Named(gone.subject, GONE),
            ),
            access=snapshot(lambda _: True, lambda state: state or Named("", GONE)),
        )

    heedless = users(lambda event: event.user)
    careful = users(lambda event: event.user if isinstance(event, Named) and event.name != GONE else None)
    careful.handle("User-7", Named("ada", "Ada Lovelace"))
    subjects.forget("ada")
    assert careful.query("User-7", lambda state: state) == Named("ada", GONE)
    with pytest.raises(SubjectForgotten):
        heedless.handle("User-7", Left("ada"))
    assert careful.handle("User-7", Left("ada")).state == Left("ada")


def test_states_kept_for_so_long_hold_nobody_who_was_forgotten_longer_ago() -> None:
    clock, subjects, streams = Clock(), memory_subjects(), memory_tips()
    streams = replace(streams, driver=replace(streams.driver, clock=clock))
    users: Deciders[UserEvent, str, UserEvent] = Deciders(
        streams=streams,
        decider=Decider(
            initial=str,
            evolve=lambda state, event: event.name if isinstance(event, Named) else state,
            decide=lambda command, _state: [command],
        ),
        codec=sealed_codec(
            json_codec(Named, Left),
            subjects,
            subject_of=lambda event: event.user,
            shredded=lambda _, gone: Named(gone.subject, "(forgotten)"),
        ),
        cache=Cache(max_seconds=300.0),
    )
    users.handle("User-7", Named("ada", "Ada"))
    subjects.forget("ada")
    clock.now = 299.0
    assert users.query("User-7", str) == "Ada"
    clock.now = 300.0
    assert users.query("User-7", str) == "(forgotten)"


@pytest.mark.slow
@mock_aws
def test_kms_wraps_keys_and_unwraps_them_for_their_subject_alone() -> None:
    client = boto3.client("kms", region_name="us-east-1")
    wrapping = KmsWrapping(client, client.create_key()["KeyMetadata"]["KeyId"])
    key, wrapped = wrapping.fresh("ada")
    assert (len(key), wrapping.unwrap("ada", wrapped)) == (32, key)
    with pytest.raises(CorruptData, match="was not made for it"):
        wrapping.unwrap("ben", wrapped)
    subjects = Subjects(
        driver=Driver(execute=MemoryTables({SUBJECT_KEYS.kind: SUBJECT_KEYS}).execute, meter=Meter()),
        table=SUBJECT_KEYS.kind,
        wrapping=wrapping,
        keep=0.0,
    )
    assert subjects.unseal(subjects.seal("ada", SECRET)) == SECRET


class KmsThatFails:
    """A client every call of which raises."""

    class exceptions:  # noqa: N801  boto's own name
        class InvalidCiphertextException(ClientError):
            """As boto makes one for each error that a service names."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def generate_data_key(self, **_: object) -> object:
        raise self._error

    decrypt = generate_data_key


def refusal(code: str, status: int = 400) -> ClientError:
    return ClientError(
        {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}},  # type: ignore[typeddict-item]
        "Decrypt",
    )


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (refusal("AccessDeniedException"), Refused),
        (refusal("DisabledException"), Refused),
        (refusal("KMSInvalidStateException"), Refused),
        (refusal("NotFoundException"), Refused),
        (refusal("ThrottlingException"), Unavailable),
        (refusal("KMSInternalException", 500), Unavailable),
        (ReadTimeoutError(endpoint_url="https://kms"), Unavailable),
        (EndpointConnectionError(endpoint_url="https://kms"), Unavailable),
        (refusal("ValidationException"), InvalidRequest),
    ],
    ids=str,
)
def test_what_kms_refuses_or_cannot_answer_is_told_and_never_taken_for_forgotten(
    error: Exception, meaning: type[Exception]
) -> None:
    wrapping = KmsWrapping(KmsThatFails(error), "key")  # type: ignore[arg-type]
    with pytest.raises(meaning):
        wrapping.fresh("ada")
    with pytest.raises(meaning):
        wrapping.unwrap("ada", b"wrapped")


def test_a_reaction_is_given_what_is_shredded_and_goes_on() -> None:
    subjects, feed = memory_subjects(), MemoryStore()
    sealed = subjects.seal("ada", SECRET)
    feed.tips.append("User-7", [Event(type="Named", data=sealed), Event(type="Left", data=b"{}")])
    feed.aggregates.append(
        aggregate_id("user", "7"), [AggregateEvent(type="Named", data=sealed)], snapshot=b"{}"
    )
    feed.dcb.append([Event(type="Named", data=sealed, tags=("user:7",))])
    subjects.forget("ada")
    found: list[tuple[str, object]] = []

    @reaction(name="names", parallel=1)
    def names(delivery: Delivery) -> None:
        found.extend((delivery.stream, subjects.unseal(event.data)) for event in delivery.events)

    feed.react(names)
    gone = Shredded("ada")
    assert found == [("User-7", gone), ("User-7", b"{}"), ("user-7", gone), ("user:7", gone)]
    assert not [each for partition in (0, 10_000, 20_000) for each in feed.parking(names).streams(partition)]


@dataclass(frozen=True)
class Signed:
    name: str
    children: dict[str, int]


@pytest.mark.parametrize("event", [Signed(["Ada"], {}), Signed("x", {"Ada": "7"})])  # type: ignore[arg-type, dict-item]
def test_an_event_that_a_sealed_codec_refuses_is_not_quoted(event: Signed) -> None:
    codec = sealed_codec(
        json_codec(Signed),
        memory_subjects(),
        subject_of=lambda _: "user-7",
        shredded=lambda *_: None,
    )
    with pytest.raises(InvalidInput) as raised:
        codec.encode(event)
    assert str(raised.value) == (
        "events.Signed: has a value that could not be read back; "
        "encode it with the codec before sealing to see which"
    )
    assert raised.value.__context__ is None
