"""A full export and the incremental ones after it are the table as it was at the end of the last."""

from __future__ import annotations

import gzip
import random
from pathlib import Path
from typing import Any

import pytest

from epochal.care.table_exports import export_at
from epochal.errors import CorruptData, InvalidInput
from epochal.plan.values import Item, binary, number, text
from tests.surfaces.care.exporting import changes, export

Table = dict[tuple[str, int], Item]


def no_s3(_: str) -> Any:
    raise AssertionError("nobody asked for S3")


def at(minute: int) -> str:
    return f"2026-01-02T03:{minute:02d}:00.000Z"


def key(place: tuple[str, int]) -> Item:
    return {"p": text(place[0]), "i": number(place[1])}


def item(place: tuple[str, int], value: int) -> Item:
    return key(place) | {"b": binary(bytes([value % 256, 255])), "v": number(value)}


def read(full: str, *after: str) -> list[Item]:
    return sorted(
        export_at(full, no_s3, *after).items(), key=lambda each: (each["p"]["S"], int(each["i"]["N"]))
    )


def as_read(table: Table) -> list[Item]:
    return [table[place] for place in sorted(table)]


@pytest.mark.parametrize("seed", range(20))
def test_changes_are_applied_in_their_order_whatever_they_are(tmp_path: Path, seed: int) -> None:
    luck = random.Random(seed)
    places = [(f"S-{n}", i) for n in range(4) for i in range(3)]
    table: Table = {place: item(place, 0) for place in luck.sample(places, 6)}
    full = export(tmp_path / "full", table.values(), exportTime=at(0))
    after = []
    for window in range(3):
        changed: dict[tuple[str, int], tuple[Item | None, int]] = {}
        for step in range(luck.randrange(8)):
            place, micros = luck.choice(places), window * 1_000 + step
            if luck.random() < 0.4:
                table.pop(place, None)
            else:
                table[place] = item(place, micros)
            changed[place] = (table.get(place), micros)
        said = [(key(place), image, micros) for place, (image, micros) in changed.items()]
        luck.shuffle(said)
        bounds = {"exportFromTime": at(window), "exportToTime": at(window + 1)}
        after.append(changes(tmp_path / f"after{window}", said, as_text=bool(window % 2), **bounds))
    assert read(full, *after) == as_read(table)


def test_an_overlap_has_what_was_written_last(tmp_path: Path) -> None:
    place = ("S-1", 0)
    full = export(tmp_path / "full", [item(place, 1)], exportTime=at(5))
    one = changes(
        tmp_path / "a", [(key(place), item(place, 9), 900)], exportFromTime=at(4), exportToTime=at(9)
    )
    two = changes(
        tmp_path / "b", [(key(place), item(place, 8), 800)], exportFromTime=at(8), exportToTime=at(9)
    )
    assert read(full, one, two) == [item(place, 9)]


@pytest.mark.parametrize("bounds", [(6, 9), (2, 4)])
def test_a_gap_or_what_is_older_than_what_is_before_it_is_refused(
    tmp_path: Path, bounds: tuple[int, int]
) -> None:
    full = export(tmp_path / "full", [], exportTime=at(5))
    begins, ends = map(at, bounds)
    after = changes(tmp_path / "after", [], exportFromTime=begins, exportToTime=ends)
    with pytest.raises(InvalidInput, match="after must begin no later than the export before it ends"):
        read(full, after)


def test_a_full_export_does_not_follow_and_an_incremental_one_does_not_begin(tmp_path: Path) -> None:
    full = export(tmp_path / "full", [], exportTime=at(5))
    after = changes(tmp_path / "after", [], exportFromTime=at(5), exportToTime=at(6))
    with pytest.raises(InvalidInput, match="full must be an incremental export"):
        read(full, full)
    with pytest.raises(InvalidInput, match="after must be a full export"):
        read(after)


def test_what_does_not_say_its_times_is_corrupt(tmp_path: Path) -> None:
    place = ("S-1", 0)
    after = changes(tmp_path / "after", [], exportFromTime=at(5), exportToTime=at(6))
    with pytest.raises(CorruptData, match="has no exportTime"):
        read(export(tmp_path / "old", []), after)
    full = export(tmp_path / "full", [], exportTime=at(5))
    with pytest.raises(CorruptData, match="has no exportToTime"):
        read(full, changes(tmp_path / "endless", [], exportFromTime=at(5)))
    odd = changes(tmp_path / "odd", [(key(place), None, "soon")], exportFromTime=at(5), exportToTime=at(6))  # type: ignore[list-item]
    with pytest.raises(CorruptData, match="has no valid write time"):
        read(full, odd)


LONG = b" " * (64 * 1024 * 1024)
"""More than a line of an export may have: an item has 400 KB."""


@pytest.mark.parametrize("incremental", [False, True])
def test_a_line_of_a_compressed_file_that_is_too_long_is_corrupt(tmp_path: Path, incremental: bool) -> None:
    place = ("S-1", 0)
    full = export(tmp_path / "full", [item(place, 1)], files=1, exportTime=at(5))
    after = changes(
        tmp_path / "after", [(key(place), item(place, 9), 900)], exportFromTime=at(5), exportToTime=at(6)
    )
    (file,) = [each for each in tmp_path.rglob("*.json.gz") if ("after" in each.name) == incremental]
    file.write_bytes(gzip.compress(LONG + gzip.decompress(file.read_bytes())))
    with pytest.raises(CorruptData, match="a line is longer than 64 MB"):
        read(full, after)


@pytest.mark.parametrize("name", ["manifest-files.json", "manifest-summary.json"])
def test_a_manifest_that_is_too_long_is_corrupt(tmp_path: Path, name: str) -> None:
    full = export(tmp_path / "full", [item(("S-1", 0), 1)], files=1)
    file = tmp_path / "full" / name
    file.write_bytes(LONG + file.read_bytes())
    with pytest.raises(CorruptData, match=f"{name} .* longer than 64 MB"):
        read(full)
