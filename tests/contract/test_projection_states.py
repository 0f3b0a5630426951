"""States of projections on DynamoDB Local and in memory, and their objects in S3, as moto plays it, and in memory."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from moto import mock_aws

from epochal.contrib.sekiban import INLINE_BYTES
from epochal.contrib.sekiban.items import PROJECTION_STATES, Keys
from epochal.contrib.sekiban.projections import ProjectionStates
from epochal.contrib.sekiban.states import StoredState
from epochal.dynamo import s3_objects
from epochal.dynamo.clients import s3_client
from epochal.dynamo.interpreter import interpreter
from epochal.dynamo.s3_objects import S3Objects
from epochal.errors import CorruptData, MissingBody
from epochal.plan.ops import Execute, Get, Op, Put, Reply
from epochal.plan.values import text
from epochal.store.driver import Driver, Meter
from epochal.store.encoding import Objects
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import MemoryObjects
from tests.support.tables import Tables

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

BUCKET = "states"


@pytest.fixture
def s3() -> Iterator[S3Client]:
    with mock_aws(
        config={"core": {"mock_credentials": False}}
    ):  # the library keeps those that it finds first
        client = s3_client(region="us-east-1")
        client.create_bucket(Bucket=BUCKET)
        yield client


@pytest.fixture(params=["memory", "moto"])
def objects(request: pytest.FixtureRequest) -> Objects:
    if request.param == "memory":
        return MemoryObjects()
    return S3Objects(request.getfixturevalue("s3"), BUCKET)


@pytest.fixture(params=["memory", pytest.param("ddbl", marks=pytest.mark.ddbl)])
def table(request: pytest.FixtureRequest) -> tuple[Execute, str]:
    if request.param == "memory":
        return MemoryTables({"states": PROJECTION_STATES}).execute, "states"
    local: Tables = request.getfixturevalue("ddbl_tables")
    return interpreter(local.client), local.create(PROJECTION_STATES)


@pytest.fixture
def states(table: tuple[Execute, str], objects: Objects) -> ProjectionStates:
    return over(table, objects)


def over(table: tuple[Execute, str], objects: Objects, **options: object) -> ProjectionStates:
    execute, name = table
    return ProjectionStates(
        driver=Driver(execute=execute, meter=Meter()), table=name, objects=objects, **options
    )


def noise(size: int, seed: int = 0) -> bytes:
    """Bytes that no compression shortens."""
    return random.Random(seed).randbytes(size)


def save(states: ProjectionStates, state: bytes, processed: int = 1, version: str = "v1") -> bool:
    kept = states.try_save("Totals", version, [state], events_processed=processed, last_sortable_id="0" * 30)
    return kept is None


def found(states: ProjectionStates, version: str = "v1") -> StoredState:
    state = states.find("Totals", version)
    assert state is not None
    return state


def content(states: ProjectionStates, version: str = "v1") -> bytes:
    return b"".join(states.open(found(states, version)))


def objects_of(states: ProjectionStates) -> set[str]:
    return set(states.objects.old_keys("projections/"))


@pytest.fixture(autouse=True)
def _every_object_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_objects, "UNDER_WAY", -timedelta(minutes=1))


@pytest.mark.parametrize("size", [0, 1, 1000, INLINE_BYTES - 2000])
def test_a_state_up_to_the_threshold_lies_in_its_item(states: ProjectionStates, size: int) -> None:
    assert save(states, noise(size))

    assert content(states) == noise(size)
    assert found(states).offload_key is None
    assert found(states).original_bytes == size
    assert objects_of(states) == set()


def test_the_threshold_is_of_compressed_bytes_and_exact(table: tuple[Execute, str], objects: Objects) -> None:
    sizes = over(table, objects)
    save(sizes, noise(50_000))
    compressed = found(sizes).compressed_bytes

    save(over(table, objects, inline_bytes=compressed), noise(50_000), processed=2)
    assert found(sizes).offload_key is None
    save(over(table, objects, inline_bytes=compressed - 1), noise(50_000), processed=3)
    assert found(sizes).offload_key is not None
    assert content(sizes) == noise(50_000)


def test_the_largest_state_that_lies_inline_fits_its_item(states: ProjectionStates) -> None:
    """Base64 takes a third more, and an item holds 400 KB."""
    kept = []
    for size in range(INLINE_BYTES - 150, INLINE_BYTES, 10):
        assert save(states, noise(size))
        kept.append((found(states).compressed_bytes, found(states).offload_key is None))

    assert all(inline == (compressed <= INLINE_BYTES) for compressed, inline in kept)
    assert max(compressed for compressed, inline in kept if inline) > INLINE_BYTES - 10
    assert not all(inline for _, inline in kept)


def test_a_state_beyond_the_threshold_lies_in_the_bucket_under_its_hash(states: ProjectionStates) -> None:
    state = noise(1_000_000)
    assert save(states, state)

    (key,) = objects_of(states)
    packed = b"".join(states.objects.get(key))
    assert key == found(states).offload_key == f"projections/Totals/{hashlib.sha256(packed).hexdigest()}.bin"
    assert content(states) == state
    assert found(states).inline is None
    assert found(states).compressed_bytes == len(packed)


def test_a_large_state_that_compresses_well_stays_in_its_item(states: ProjectionStates) -> None:
    assert save(states, b'{"flight":1545}' * 200_000)

    assert content(states) == b'{"flight":1545}' * 200_000
    assert objects_of(states) == set()


def test_a_state_never_goes_back(states: ProjectionStates) -> None:
    assert save(states, b"ten", processed=10)
    assert not save(states, b"nine", processed=9)
    assert content(states) == b"ten"
    assert save(states, b"ten again", processed=10)
    assert save(states, b"eleven", processed=11)
    assert content(states) == b"eleven"


def test_of_many_who_save_at_once_the_one_that_has_processed_most_stays(table: tuple[Execute, str]) -> None:
    states = over(table, MemoryObjects())
    order = list(range(1, 33))
    random.Random(1).shuffle(order)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda processed: save(states, str(processed).encode(), processed), order))

    assert content(states) == b"32"


def test_what_a_smaller_state_left_in_the_bucket_is_an_orphan_and_goes(states: ProjectionStates) -> None:
    save(states, noise(1_000_000), processed=1)
    (replaced,) = objects_of(states)
    save(states, noise(1_000_000, seed=1), processed=2, version="v2")
    save(states, b"small", processed=2)

    assert list(states.orphans("Totals")) == [replaced]
    assert states.remove_orphans("Totals") == 1
    assert objects_of(states) == {found(states, "v2").offload_key}
    assert content(states, "v2") == noise(1_000_000, seed=1)


def test_a_state_that_is_refused_leaves_an_orphan_and_nothing_else(states: ProjectionStates) -> None:
    save(states, b"ten", processed=10)
    assert not save(states, noise(1_000_000), processed=9)

    assert content(states) == b"ten"
    assert states.remove_orphans("Totals") == 1
    assert objects_of(states) == set()


def test_an_object_that_two_versions_name_is_no_orphan_while_one_of_them_does(
    states: ProjectionStates,
) -> None:
    for version in ("v1", "v2"):
        save(states, noise(1_000_000), version=version)
    states.delete("Totals", "v1")

    assert states.remove_orphans("Totals") == 0
    assert content(states, "v2") == noise(1_000_000)
    states.delete("Totals", "v2")
    assert states.remove_orphans("Totals") == 1


def test_the_object_is_there_before_the_item_that_names_it(
    table: tuple[Execute, str], objects: Objects
) -> None:
    """Whoever dies between the two leaves an orphan, never a state without its content."""
    execute, name = table
    seen: list[set[str]] = []

    def watching(op: Op) -> Reply:
        if isinstance(op, Put):
            seen.append(set(objects.old_keys("projections/")))
            raise KeyboardInterrupt
        return execute(op)

    with pytest.raises(KeyboardInterrupt):
        save(over((watching, name), objects), noise(1_000_000))

    states = over(table, objects)
    assert [len(keys) for keys in seen] == [1]
    assert states.find("Totals", "v1") is None
    assert states.remove_orphans("Totals") == 1


def test_an_object_that_is_gone_or_cut_off_is_told_from_one_another(
    table: tuple[Execute, str], s3: S3Client
) -> None:
    states = over(table, S3Objects(s3, BUCKET))
    save(states, noise(1_000_000))
    key = found(states).offload_key
    assert key is not None

    packed = s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()
    s3.put_object(Bucket=BUCKET, Key=key, Body=packed[:-100])
    with pytest.raises(CorruptData, match="truncated"):
        content(states)
    s3.put_object(Bucket=BUCKET, Key=key, Body=b"no gzip" * 100)
    with pytest.raises(CorruptData, match="not gzip"):
        content(states)
    s3.delete_object(Bucket=BUCKET, Key=key)
    with pytest.raises(MissingBody, match=key):
        content(states)


def test_versions_projectors_and_tenants_are_kept_apart(table: tuple[Execute, str], objects: Objects) -> None:
    one, two = (over(table, objects, keys=Keys(service=name)) for name in ("one", "two"))
    save(one, b"1", processed=5)
    save(one, b"2", processed=7, version="v2")
    save(two, b"3")
    one.save("Other", "v1", [b"4"], events_processed=9, last_sortable_id="0" * 30)

    assert [(state.version, state.events_processed) for state in one.list("Totals")] == [("v1", 5), ("v2", 7)]
    furthest = one.find_any("Totals")
    assert furthest is not None
    assert furthest.version == "v2"
    assert content(two) == b"3"
    one.delete("Totals", "v1")
    assert one.find("Totals", "v1") is None
    assert content(two) == b"3"


def test_a_listing_of_versions_is_complete_over_a_megabyte(table: tuple[Execute, str]) -> None:
    states = over(table, MemoryObjects())
    for number in range(6):
        save(states, noise(250_000, seed=number), version=f"v{number}")

    assert [state.version for state in states.list("Totals")] == [f"v{number}" for number in range(6)]


def test_an_item_has_the_attributes_of_the_format(table: tuple[Execute, str], objects: Objects) -> None:
    execute, name = table
    states = over(table, objects)
    states.save("Totals", "v1", [b"x"], events_processed=3, last_sortable_id="1" * 30, safe_window="2" * 30)

    key = {"pk": text("PROJECTOR#Totals"), "sk": text("VERSION#v1")}
    item = execute(Get(table=name, key=key)).item
    plain = {attribute: next(iter(value.values())) for attribute, value in item.items()}
    assert plain.pop("stateData")
    assert plain.pop("compressedSizeBytes") == "21"
    assert plain == {
        "pk": "PROJECTOR#Totals",
        "sk": "VERSION#v1",
        "projectorName": "Totals",
        "projectorVersion": "v1",
        "lastSortableUniqueId": "1" * 30,
        "eventsProcessed": "3",
        "originalSizeBytes": "1",
        "isOffloaded": False,
        "safeWindowThreshold": "2" * 30,
    }
