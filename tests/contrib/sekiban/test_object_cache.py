"""The cache of large states saves requests to the bucket, and never answers with anything but what was asked for."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator

import pytest

from epochal.contrib.sekiban.items import PROJECTION_STATES
from epochal.contrib.sekiban.projections import CachedObjects, ProjectionStates
from epochal.errors import InvalidInput, MissingBody
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import MemoryObjects


class Counted(MemoryObjects):
    """A bucket that counts what is asked of it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def get(self, key: str) -> Iterator[bytes]:
        self.asked.append(key)
        return super().get(key)


@pytest.fixture
def bucket() -> Counted:
    bucket = Counted()
    for key, size in {"a": 100_000, "b": 100_000, "c": 100_000, "large": 250_001}.items():
        bucket.put(key, io.BytesIO(os.urandom(size)))
    return bucket


def read(cache: CachedObjects, key: str) -> bytes:
    return b"".join(cache.get(key))


def test_what_has_been_read_to_its_end_is_asked_for_once(bucket: Counted) -> None:
    cache = CachedObjects(bucket, 250_000)

    assert [read(cache, "a") for _ in range(3)] == [bucket.contents["a"]] * 3
    assert bucket.asked == ["a"]
    assert cache.size == 100_000


def test_what_was_not_read_to_its_end_is_not_kept(bucket: Counted) -> None:
    cache = CachedObjects(bucket, 250_000)
    next(cache.get("a"))

    assert read(cache, "a") == bucket.contents["a"]
    assert bucket.asked == ["a", "a"]


def test_what_is_used_least_recently_goes_first(bucket: Counted) -> None:
    cache = CachedObjects(bucket, 250_000)
    for key in ("a", "b", "a", "c", "a", "b"):
        read(cache, key)

    assert bucket.asked == ["a", "b", "c", "b"]
    assert cache.size == 200_000


def test_an_object_larger_than_the_cache_passes_through_it(bucket: Counted) -> None:
    cache = CachedObjects(bucket, 250_000)
    read(cache, "a")

    assert read(cache, "large") == bucket.contents["large"]
    assert cache.size == 100_000
    read(cache, "a")
    assert bucket.asked == ["a", "large"]


def test_two_who_read_the_same_object_at_once_fill_the_cache_once(bucket: Counted) -> None:
    cache = CachedObjects(bucket, 250_000)
    one, two = cache.get("a"), cache.get("a")

    assert b"".join(one) == b"".join(two)
    assert cache.size == 100_000


def test_what_is_deleted_is_gone(bucket: Counted) -> None:
    cache = CachedObjects(bucket, 250_000)
    read(cache, "a")
    cache.delete("a")

    assert cache.size == 0
    with pytest.raises(MissingBody):
        cache.get("a")


def test_a_cache_needs_room() -> None:
    with pytest.raises(InvalidInput, match="max_bytes"):
        CachedObjects(MemoryObjects(), 0)


def test_a_state_that_was_replaced_elsewhere_is_read_anew() -> None:
    tables, bucket = MemoryTables({"states": PROJECTION_STATES}), Counted()
    driver = Driver(execute=tables.execute, meter=Meter())
    here = ProjectionStates(driver=driver, table="states", objects=CachedObjects(bucket, 10_000_000))
    elsewhere = ProjectionStates(driver=driver, table="states", objects=bucket)

    def content() -> bytes:
        found = here.find("Totals", "v1")
        assert found is not None
        return b"".join(here.open(found))

    first, second = os.urandom(400_000), os.urandom(400_000)
    elsewhere.save("Totals", "v1", [first], events_processed=1, last_sortable_id="0" * 30)
    assert [content(), content()] == [first, first]
    elsewhere.save("Totals", "v1", [second], events_processed=2, last_sortable_id="0" * 30)
    assert [content(), content()] == [second, second]
    assert len(bucket.asked) == 2
