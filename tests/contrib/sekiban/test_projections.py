from __future__ import annotations

import os
import random
import shutil
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO

import pytest

from epochal.contrib.sekiban.items import PROJECTION_STATES, Keys
from epochal.contrib.sekiban.projections import ProjectionStates
from epochal.errors import CorruptData, InvalidInput, MissingBody, TooLarge
from epochal.plan.ops import Set, Update
from epochal.plan.values import text
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import MemoryObjects


@pytest.fixture
def objects() -> MemoryObjects:
    return MemoryObjects()


@pytest.fixture
def tables() -> MemoryTables:
    return MemoryTables({"states": PROJECTION_STATES})


@pytest.fixture
def states(tables: MemoryTables, objects: MemoryObjects) -> ProjectionStates:
    return ProjectionStates(
        driver=Driver(execute=tables.execute, meter=Meter()), table="states", objects=objects
    )


def save(states: ProjectionStates, state: bytes, processed: int = 1, version: str = "v1") -> bool:
    kept = states.try_save("Totals", version, [state], events_processed=processed, last_sortable_id="0" * 30)
    return kept is None


def content(states: ProjectionStates, version: str = "v1") -> bytes:
    found = states.find("Totals", version)
    assert found is not None
    return b"".join(states.open(found))


def test_a_small_state_lies_in_its_item(states: ProjectionStates, objects: MemoryObjects) -> None:
    assert save(states, b'{"n":1}' * 1000)
    assert content(states) == b'{"n":1}' * 1000
    assert objects.contents == {}
    found = states.find("Totals", "v1")
    assert found is not None
    assert found.original_bytes == 7000
    assert found.compressed_bytes < 200


def test_a_large_state_lies_in_the_bucket_under_its_hash(
    states: ProjectionStates, objects: MemoryObjects
) -> None:
    state = os.urandom(400_000)
    assert save(states, state)
    assert content(states) == state
    (key,) = objects.contents
    assert key.startswith("projections/Totals/")
    assert key.endswith(".bin")
    assert save(states, state, processed=2)
    assert list(objects.contents) == [key]


def test_a_state_that_has_processed_fewer_events_is_refused(states: ProjectionStates) -> None:
    assert save(states, b"new", processed=10)
    assert not save(states, b"old", processed=9)
    assert content(states) == b"new"
    assert save(states, b"same", processed=10)


def test_versions_are_kept_apart_and_the_furthest_is_found(states: ProjectionStates) -> None:
    save(states, b"1", processed=5, version="v1")
    save(states, b"2", processed=3, version="v2")
    assert [(state.version, state.events_processed) for state in states.list("Totals")] == [
        ("v1", 5),
        ("v2", 3),
    ]
    furthest = states.find_any("Totals")
    assert furthest is not None
    assert furthest.version == "v1"
    states.delete("Totals", "v1")
    assert states.find("Totals", "v1") is None
    assert states.find_any("Nothing") is None


def test_objects_that_no_version_names_are_found_and_removed(
    states: ProjectionStates, objects: MemoryObjects
) -> None:
    save(states, os.urandom(400_000), processed=1)
    (replaced,) = objects.contents
    save(states, os.urandom(400_000), processed=2)
    assert list(states.orphans("Totals")) == [replaced]
    assert states.remove_orphans("Totals") == 1
    assert replaced not in objects.contents
    assert len(content(states)) == 400_000


def test_an_object_that_is_gone_is_named(states: ProjectionStates, objects: MemoryObjects) -> None:
    save(states, os.urandom(400_000))
    objects.contents.clear()
    with pytest.raises(MissingBody, match="projections/Totals/"):
        content(states)


@pytest.mark.parametrize("stored", ["!", "AAAA", "H4sIAAAA"])
def test_a_state_that_does_not_decompress_is_corruption(
    states: ProjectionStates, tables: MemoryTables, stored: str
) -> None:
    save(states, b"state")
    key = {"pk": text("PROJECTOR#Totals"), "sk": text("VERSION#v1")}
    tables.execute(Update(table="states", key=key, sets=(Set("stateData", text(stored)),)))
    with pytest.raises(CorruptData):
        content(states)


@pytest.mark.parametrize("name", ["", "a/b", "a\n", "x" * 513])
def test_malformed_names_are_refused(states: ProjectionStates, name: str) -> None:
    with pytest.raises(InvalidInput, match="projector"):
        states.find(name, "v1")


def test_tenants_whose_projectors_have_one_name_never_take_each_others_objects_for_orphans(
    tables: MemoryTables, objects: MemoryObjects
) -> None:
    driver = Driver(execute=tables.execute, meter=Meter())
    plain, north, south = (
        ProjectionStates(driver=driver, table="states", objects=objects, keys=Keys(service=service))
        for service in ("", "north", "south")
    )
    for each in (plain, north, south):
        for projector in ("Totals", "north"):
            each.save(projector, "v1", [os.urandom(400_000)], events_processed=1, last_sortable_id="0" * 30)

    for each in (plain, north, south):
        for projector in ("Totals", "north"):
            assert each.remove_orphans(projector) == 0
            found = each.find(projector, "v1")
            assert found is not None
            assert len(b"".join(each.open(found))) == 400_000
    assert len(objects.contents) == 6


def test_all_states_of_a_tenant_are_listed_whatever_their_projector(tables: MemoryTables) -> None:
    driver = Driver(execute=tables.execute, meter=Meter())
    plain, north = (
        ProjectionStates(driver=driver, table="states", keys=Keys(service=service))
        for service in ("", "north")
    )
    for each, projectors in ((plain, "ABC"), (north, "AD")):
        for projector in projectors:
            for version in ("v1", "v2"):
                state = [os.urandom(250_000)]
                each.save(projector, version, state, events_processed=1, last_sortable_id="0" * 30)

    for each, projectors in ((plain, "ABC"), (north, "AD")):
        found = sorted((state.projector, state.version) for state in each.list_all())
        assert found == [(projector, version) for projector in projectors for version in ("v1", "v2")]


def test_without_a_bucket_a_large_state_is_refused_and_a_small_one_is_not(tables: MemoryTables) -> None:
    states = ProjectionStates(driver=Driver(execute=tables.execute, meter=Meter()), table="states")

    with pytest.raises(TooLarge, match="without a bucket"):
        save(states, os.urandom(400_000))
    assert states.find("Totals", "v1") is None
    assert save(states, b"small")
    assert content(states) == b"small"
    assert states.remove_orphans("Totals") == 0


def test_without_a_bucket_a_state_that_lies_in_one_is_missing(
    states: ProjectionStates, tables: MemoryTables
) -> None:
    save(states, os.urandom(400_000))

    with pytest.raises(MissingBody):
        content(ProjectionStates(driver=Driver(execute=tables.execute, meter=Meter()), table="states"))


@pytest.mark.parametrize("inline_bytes", [-1, 300_001])
def test_no_more_is_inline_than_an_item_holds_in_base64(states: ProjectionStates, inline_bytes: int) -> None:
    with pytest.raises(InvalidInput, match="inline_bytes"):
        replace(states, inline_bytes=inline_bytes)


class Files:
    """A bucket as a folder, so that what it holds is not in memory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, key: str, content: IO[bytes]) -> None:
        with (self._folder / key.replace("/", "_")).open("wb") as file:
            shutil.copyfileobj(content, file, 64 * 1024)

    def get(self, key: str) -> Iterator[bytes]:
        with (self._folder / key.replace("/", "_")).open("rb") as file:
            while chunk := file.read(64 * 1024):
                yield chunk


@pytest.mark.slow
def test_a_state_that_no_compression_shortens_is_not_held_in_memory_either(
    states: ProjectionStates, tmp_path: Path
) -> None:
    noise = random.Random(0)
    states = replace(states, objects=Files(tmp_path))

    tracemalloc.start()
    chunks = (noise.randbytes(256 * 1024) for _ in range(64))
    states.save("Totals", "v1", chunks, events_processed=1, last_sortable_id="0" * 30)
    found = states.find("Totals", "v1")
    assert found is not None
    size = sum(len(part) for part in states.open(found))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size == 64 * 256 * 1024
    assert found.compressed_bytes > size
    assert peak < size / 4


def test_a_state_of_forty_megabytes_is_not_held_in_memory(states: ProjectionStates) -> None:
    chunk = b'{"flight":1545,"carrier":"UA"}' * 35_000

    def chunks() -> Iterator[bytes]:
        for _ in range(40):
            yield chunk

    tracemalloc.start()
    states.save("Totals", "v1", chunks(), events_processed=1, last_sortable_id="0" * 30)
    found = states.find("Totals", "v1")
    assert found is not None
    size = sum(len(part) for part in states.open(found))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size == found.original_bytes == 40 * len(chunk)
    assert peak < size / 4
