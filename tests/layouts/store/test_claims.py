"""G12: bodies too large for an item go to the bucket before the append, and come back whole."""

from __future__ import annotations

import hashlib
import random
from dataclasses import replace

import pytest

from epochal.codec.bodies import BROTLI, CLAIM, DIRECT, encode
from epochal.contrib.equinox import memory_tips
from epochal.contrib.equinox.calving import Fixed
from epochal.contrib.equinox.streams import Tips
from epochal.errors import CorruptData, InvalidInput, MissingBody, TooLarge
from epochal.model.bodies import Claim
from epochal.model.events import Event, Unfold
from epochal.model.outcomes import Appended
from epochal.plan.limits import ITEM_BYTES
from epochal.plan.values import item_size
from epochal.store.encoding import BodyCodec
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import MemoryBodies, memory_tables
from tests.support.stream_layouts import LAYOUTS

STREAM = "Flight-1"
KB = 1024


def noise(size: int, seed: int = 1) -> bytes:
    """A body that no encoding shortens."""
    return random.Random(seed).randbytes(size)


class CountingBodies(MemoryBodies):
    """Counts what is fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched = 0

    def get(self, claim: Claim) -> bytes:
        self.fetched += 1
        return super().get(claim)


@pytest.fixture
def bucket() -> CountingBodies:
    return CountingBodies()


@pytest.fixture
def tables() -> MemoryTables:
    return memory_tables()


@pytest.fixture(params=LAYOUTS.values(), ids=LAYOUTS)
def streams(bucket: CountingBodies, tables: MemoryTables, request: pytest.FixtureRequest) -> Streams:
    return replace(memory_tips(tables), codec=BodyCodec(bodies=bucket), layout=request.param)


def largest_item(tables: MemoryTables) -> int:
    return max(map(item_size, tables.items("tips")))


@pytest.mark.slow
@pytest.mark.parametrize("size", [300 * KB, 399 * KB, 400 * KB, 401 * KB, 1024 * KB, 5 * 1024 * KB])
@pytest.mark.parametrize("field", ["data", "meta"])
def test_a_large_body_comes_back_whole_and_its_item_stays_small(
    streams: Streams, tables: MemoryTables, size: int, field: str
) -> None:
    body = noise(size)

    outcome = streams.append(STREAM, [Event(type="Large", **{field: body}), Event(type="Small", data=b"s")])

    assert isinstance(outcome, Appended)
    large, small = streams.read(STREAM)
    assert getattr(large, field) == body
    assert small.data == b"s"
    assert largest_item(tables) < ITEM_BYTES


def test_what_compresses_into_an_item_stays_there(streams: Streams, bucket: CountingBodies) -> None:
    streams.append(STREAM, [Event(type="Long", data=b'{"a":"b"}' * 100_000)])

    assert bucket.objects == {}
    assert next(iter(streams.read(STREAM))).data == b'{"a":"b"}' * 100_000


def test_bodies_that_would_be_compressed_together_are_compressed_alone_where_all_would_not_fit(
    bucket: CountingBodies,
) -> None:
    """What a layout makes of them is not known before, and none must leave the item for want of it."""
    codec = BodyCodec(bodies=bucket, compress_from=4096)
    small = b'{"flight":"AA1141"}' * 50

    assert codec.pack([small] * 10, 100_000, "events") == [(DIRECT, small)] * 10
    assert codec.pack([small] * 10, 5000, "events") == [encode(small)] * 10
    assert codec.pack([small * 10], 100_000, "events") == [encode(small * 10)]
    assert replace(codec, bodies=None).pack([small] * 500, 5000, "events") == [encode(small)] * 500
    assert not bucket.objects


@pytest.mark.slow
def test_an_object_is_the_encoded_body_under_its_hash(streams: Streams, bucket: CountingBodies) -> None:
    body = b"".join(b'{"n":%d}' % dice for dice in random.Random(1).choices(range(10**9), k=120_000))
    stored = encode(body)
    assert stored.encoding == BROTLI
    assert len(stored.data) > 240 * KB

    streams.append(STREAM, [Event(type="Large", data=body)])

    assert bucket.objects == {f"bodies/{hashlib.sha256(stored.data).hexdigest()}": stored.data}


def test_only_as_many_bodies_leave_as_needed_the_largest_first(
    streams: Streams, bucket: CountingBodies
) -> None:
    sizes = [10 * KB, 200 * KB, 90 * KB, 100 * KB]

    streams.append(STREAM, [Event(type="E", data=noise(size, size)) for size in sizes])

    assert sorted(map(len, bucket.objects.values())) == [200 * KB]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "size"), [(1, 240 * KB), (200, 1200), (100, 5 * KB), (700, 300), (300, 1300), (20, 300 * KB)]
)
def test_many_events_at_once_with_large_unfolds_fit_whatever_the_head_holds(
    streams: Streams, tables: MemoryTables, count: int, size: int
) -> None:
    streams.append(
        STREAM, [Event(type="Before", data=noise(230 * KB))], unfolds=[Unfold(type="S", data=noise(130 * KB))]
    )
    events = [Event(type="E", data=noise(size, seed)) for seed in range(count)]
    unfolds = [Unfold(type="State", data=noise(100 * KB, 7)), Unfold(type="More", data=noise(500 * KB, 8))]

    outcome = streams.append(STREAM, events, unfolds=unfolds)

    assert isinstance(outcome, Appended)
    assert [event.data for event in streams.read(STREAM, start=1)] == [event.data for event in events]
    state = streams.load(STREAM)
    assert state is not None
    assert [unfold.data for unfold in state.unfolds] == [unfold.data for unfold in unfolds]
    assert largest_item(tables) < ITEM_BYTES


def test_long_types_and_ids_leave_less_room_for_bodies(streams: Streams, tables: MemoryTables) -> None:
    events = [
        Event(type=f"{k:0512}", data=noise(2 * KB, k), correlation_id="c" * 1024, causation_id="d" * 1024)
        for k in range(110)
    ]

    assert isinstance(streams.append(STREAM, events), Appended)
    assert [event.data for event in streams.read(STREAM)] == [event.data for event in events]
    assert largest_item(tables) < ITEM_BYTES


@pytest.mark.slow
def test_more_small_events_than_an_item_holds_are_refused_with_the_size_and_nothing_is_written(
    streams: Streams, tables: MemoryTables
) -> None:
    with pytest.raises(TooLarge) as refused:
        streams.append(STREAM, [Event(type="E", data=noise(200, k)) for k in range(2_200)])

    assert refused.value.limit == ITEM_BYTES
    assert refused.value.size > ITEM_BYTES
    assert list(tables.items("tips")) == []


def test_without_a_bucket_a_body_over_the_limit_is_refused_and_nothing_is_written(
    tables: MemoryTables,
) -> None:
    bare = replace(memory_tips(tables), codec=BodyCodec())

    with pytest.raises(TooLarge) as refused:
        bare.append(STREAM, [Event(type="E", data=noise(401 * KB))])

    assert refused.value.size > ITEM_BYTES
    assert str(refused.value).startswith("events: ")
    assert "bucket=" in str(refused.value)
    assert list(tables.items("tips")) == []


def test_a_calf_of_claims_is_a_copy_and_its_bodies_are_still_found() -> None:
    streams = replace(memory_tips(), layout=Tips(calving=Fixed(max_events=1, mode="two-step")))
    for seed in range(3):
        streams.append(STREAM, [Event(type="E", data=noise(300 * KB, seed))])

    assert [event.data for event in streams.read(STREAM)] == [noise(300 * KB, seed) for seed in range(3)]


def test_bodies_may_be_left_as_claims(streams: Streams, bucket: CountingBodies) -> None:
    body = noise(300 * KB)
    streams.append(STREAM, [Event(type="E", data=body)])

    (event,) = streams.page(STREAM, fetch=False).events

    digest = hashlib.sha256(body).hexdigest()
    assert event.data == Claim(key=f"bodies/{digest}", sha256=digest, size=300 * KB)
    assert bucket.fetched == 0


def test_a_page_of_one_event_fetches_the_body_of_one(streams: Streams, bucket: CountingBodies) -> None:
    streams.append(STREAM, [Event(type="E", data=noise(50 * KB, seed)) for seed in range(30)])
    assert len(bucket.objects) > 20

    page = streams.page(STREAM, limit=1)

    assert len(page.events) == 1
    assert bucket.fetched <= 1


def test_a_body_that_is_already_in_the_bucket_is_claimed_as_it_is(
    streams: Streams, bucket: CountingBodies
) -> None:
    body = b"uploaded before"
    claim = Claim(key="kept/1", sha256=hashlib.sha256(body).hexdigest(), size=len(body))
    bucket.put(claim, body)

    streams.append(STREAM, [Event(type="E", data=claim)])

    (event,) = streams.read(STREAM)
    assert event.data == body


@pytest.mark.parametrize(("key", "size"), [("kept/1", 14), ("kept/1", 16), ("kept/2", 15)])
def test_a_claim_on_an_object_that_is_not_there_or_of_another_size_is_bad_input(
    streams: Streams, tables: MemoryTables, bucket: CountingBodies, key: str, size: int
) -> None:
    claim = Claim(key="kept/1", sha256="0" * 64, size=15)
    bucket.objects[key] = bytes(size)

    with pytest.raises(InvalidInput, match="no object of that size"):
        streams.append(STREAM, [Event(type="E", data=claim)])

    assert list(tables.items("tips")) == []


@pytest.mark.parametrize(
    "claim",
    [
        Claim(key="kept/1", sha256="0" * 64, size=15, encoding=3),
        Claim(key="kept/1", sha256="0" * 64, size=15, encoding=CLAIM),
        Claim(key="", sha256="0" * 64, size=15),
        Claim(key="\ud800", sha256="0" * 64, size=15),
        Claim(key="kept/1", sha256="0" * 64, size=-1),
    ],
    ids=repr,
)
def test_a_claim_that_nobody_could_read_back_is_bad_input(
    streams: Streams, tables: MemoryTables, bucket: CountingBodies, claim: Claim
) -> None:
    bucket.objects[claim.key] = bytes(15)

    with pytest.raises(InvalidInput, match=r"^events\.claim: could not be read"):
        streams.append(STREAM, [Event(type="E", data=claim)])

    assert list(tables.items("tips")) == []


@pytest.mark.parametrize("size", [14, 16])
def test_an_upload_of_another_size_is_not_what_is_claimed(
    streams: Streams, tables: MemoryTables, bucket: CountingBodies, size: int
) -> None:
    claim = Claim(key=f"bodies/{'0' * 64}", sha256="0" * 64, size=15)
    bucket.objects[f"uploads/{'0' * 64}"] = bytes(size)

    with pytest.raises(InvalidInput, match="no object of that size"):
        streams.append(STREAM, [Event(type="E", data=claim)])

    assert list(bucket.objects) == [f"uploads/{'0' * 64}"]
    assert list(tables.items("tips")) == []


def test_what_lies_where_uploads_expire_is_not_to_be_named_by_an_event(
    streams: Streams, tables: MemoryTables, bucket: CountingBodies
) -> None:
    claim = Claim(key=f"uploads/{'0' * 64}", sha256="0" * 64, size=15)
    bucket.objects[claim.key] = bytes(15)

    with pytest.raises(InvalidInput, match="expire"):
        streams.append(STREAM, [Event(type="E", data=claim)])

    assert list(tables.items("tips")) == []


def test_an_object_that_is_gone_is_missing_by_its_key(streams: Streams, bucket: CountingBodies) -> None:
    streams.append(STREAM, [Event(type="E", data=noise(300 * KB))])
    (key,) = bucket.objects
    bucket.objects.clear()

    with pytest.raises(MissingBody) as missing:
        list(streams.read(STREAM))

    assert missing.value.key == key


def test_an_object_that_has_changed_is_corrupt(streams: Streams, bucket: CountingBodies) -> None:
    streams.append(STREAM, [Event(type="E", data=noise(300 * KB))])
    (key,) = bucket.objects
    bucket.objects[key] = noise(300 * KB, 2)

    with pytest.raises(CorruptData, match="does not have the SHA-256 of its claim"):
        list(streams.read(STREAM))


def test_a_store_without_a_bucket_says_so_when_it_meets_a_claim(
    streams: Streams,
) -> None:
    streams.append(STREAM, [Event(type="E", data=noise(300 * KB))])

    with pytest.raises(CorruptData, match="opened without one"):
        list(replace(streams, codec=BodyCodec()).read(STREAM))


@pytest.mark.parametrize("uploaded", [False, True])
def test_bodies_are_written_before_the_event_that_claims_them(bucket: CountingBodies, uploaded: bool) -> None:
    """Were it the other way round, a crash between the two would leave an event without a body."""
    content = noise(300 * KB)
    digest = hashlib.sha256(content).hexdigest()
    claim = Claim(key=f"bodies/{digest}", sha256=digest, size=len(content))
    if uploaded:
        bucket.objects[f"uploads/{digest}"] = content
    seen: list[bool] = []
    tables = memory_tables()
    streams = memory_tips(tables)

    def perform(op: object) -> object:
        seen.append(claim.key in bucket.objects)
        return tables.execute(op)  # type: ignore[arg-type]

    late = replace(streams, driver=replace(streams.driver, execute=perform), codec=BodyCodec(bodies=bucket))  # type: ignore[arg-type]
    late.append(STREAM, [Event(type="E", data=claim if uploaded else content)])

    assert seen
    assert all(seen)
