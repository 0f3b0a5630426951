from __future__ import annotations

import os
import tracemalloc
from collections.abc import Iterator

import pytest

from epochal.errors import CorruptData, InvalidInput, MissingBody
from epochal.layout.tables import PROJECTION_STATES
from epochal.plan.ops import Set, Update
from epochal.plan.values import text
from epochal.store.driver import Driver, Meter
from epochal.store.projections import ProjectionStates
from epochal.testing.memory import MemoryTables
from epochal.testing.objects import MemoryObjects


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
    return states.save("Totals", version, [state], events_processed=processed, last_sortable_id="0" * 30)


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
