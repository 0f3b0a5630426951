"""Tags in the mapping of an import: templates, lists of them, and columns that hold tags."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from epochal.contrib.transfer.importing.field_mapping import FieldMapping
from epochal.contrib.transfer.importing.incoming import Incoming, Misfit
from epochal.contrib.transfer.importing.sources import mapped
from epochal.contrib.transfer.importing.tag_mapping import parse_tags, tags_in
from epochal.errors import InvalidInput

ROW = {"loan": "h0", "book": "hb0", "member": "hm0", "time": "2024-05-01T09:30:00Z"}


def mapping_file(folder: Path, tags: object, ending: str = "toml") -> str:
    path = folder / f"map.{ending}"
    fields = {"stream": "Loan-{loan}", "type": "=Lent", "time": "time", "data": "*", "tags": tags}
    lines = [f"{name} = {json.dumps(value)}" for name, value in fields.items()]
    path.write_text("\n".join(lines) if ending == "toml" else json.dumps(fields))
    return str(path)


def row_of(folder: Path, tags: object, **cells: Any) -> Incoming | Misfit:
    found = FieldMapping(mapped("", mapping_file(folder, tags))).incoming({**ROW, **cells}, "line 2")
    assert isinstance(found, Incoming | Misfit)
    return found


def tags_of(folder: Path, tags: object, **cells: Any) -> tuple[str, ...]:
    found = row_of(folder, tags, **cells)
    assert isinstance(found, Incoming), found
    return found.event.tags


def rule_of(folder: Path, tags: object, **cells: Any) -> str:
    found = row_of(folder, tags, **cells)
    assert isinstance(found, Misfit), found
    return found.rule


@pytest.mark.parametrize(
    "tags",
    [
        "book:{book} member:{member}",
        "{book} {member}",
        "=book:1 member:2",
        "book:{book}\tmember:{member},x:1",
    ],
)
def test_a_blank_in_a_template_makes_no_tag_out_of_two(tmp_path: Path, tags: str) -> None:
    with pytest.raises(InvalidInput, match=r"map: tags: .* contains a space; separate tags with commas"):
        FieldMapping(mapped("", mapping_file(tmp_path, tags)))


@pytest.mark.parametrize("tags", ["book:{book},member:{member}", "book:{book}, member:{member}"])
def test_a_template_with_commas_has_a_tag_for_each_part(tmp_path: Path, tags: str) -> None:
    assert tags_of(tmp_path, tags) == ("book:hb0", "member:hm0")


@pytest.mark.parametrize("ending", ["toml", "json"])
def test_a_list_in_a_mapping_file_has_a_template_for_each_tag(tmp_path: Path, ending: str) -> None:
    tags = ["book:{book}", "lent to {member}", "=shelf:A 1", "member"]
    mapping = FieldMapping(mapped("", mapping_file(tmp_path, tags, ending)))
    found = mapping.incoming(ROW, "line 2")
    assert isinstance(found, Incoming)
    assert found.event.tags == ("book:hb0", "lent to hm0", "shelf:A 1", "hm0")
    assert found.event.data == b"{}"


@pytest.mark.parametrize(
    "tags", [[], [""], [1], ["book:{book}", ["x"]], {"book": "x"}, "", "book:{book},", "=,"]
)
def test_tags_of_a_mapping_file_are_a_text_or_a_list_of_texts(tmp_path: Path, tags: object) -> None:
    if tags == "":
        assert tags_of(tmp_path, tags) == ()  # no column, as of any other field
        return
    with pytest.raises(InvalidInput, match="tags"):
        FieldMapping(mapped("", mapping_file(tmp_path, tags)))


def test_another_field_of_a_mapping_file_is_refused_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "map.json"
    path.write_text(json.dumps({"stream": "s", "type": ["a", "b"]}))
    with pytest.raises(InvalidInput, match="--mapping: type must be a string"):
        mapped("", str(path))


@pytest.mark.parametrize("cell", ["War, Peace", "a,b", 'say "x", y'])
def test_a_comma_in_a_cell_stays_in_the_tag_of_its_template(tmp_path: Path, cell: str) -> None:
    assert tags_of(tmp_path, "book:{book},member:{member}", book=cell) == (f"book:{cell}", "member:hm0")


def test_a_blank_inside_a_cell_stays_in_the_tag_of_its_template(tmp_path: Path) -> None:
    assert tags_of(tmp_path, "book:{book}", book="War and Peace") == ("book:War and Peace",)


@pytest.mark.parametrize("cell", ["hb0 ", " hb0", "\u00a0hb0", "hb0\n"])
@pytest.mark.parametrize("tags", ["book:{book}", ["book"]])
def test_a_cell_that_begins_or_ends_with_a_blank_makes_no_tag(
    tmp_path: Path, cell: str, tags: object
) -> None:
    assert rule_of(tmp_path, tags, book=cell) == f"tags: column book begins or ends with whitespace: {cell!r}"


@pytest.mark.parametrize(
    ("cell", "tags"),
    [
        ("book:hb0,member:hm0", ("book:hb0", "member:hm0")),
        ("book:hb0, member:hm0", ("book:hb0", "member:hm0")),
        ('["city:New York: north"]', ("city:New York: north",)),
        ("city:New York", ("city:New York",)),
        ("", ()),
    ],
)
def test_a_column_may_hold_tags_with_commas_or_a_json_array(
    tmp_path: Path, cell: str, tags: tuple[str, ...]
) -> None:
    assert tags_of(tmp_path, "labels", labels=cell) == tags


@pytest.mark.parametrize("cell", ["book:hb0 member:hm0", "x:1,book:hb0  member:hm0", "book:hb0\tmember:hm0"])
def test_a_blank_in_a_column_of_tags_makes_no_tag_out_of_two(tmp_path: Path, cell: str) -> None:
    assert rule_of(tmp_path, "labels", labels=cell).startswith("tags: ")
    assert "looks like two tags" in rule_of(tmp_path, "labels", labels=cell)


def test_a_tag_that_is_named_twice_is_one_and_keeps_its_place() -> None:
    for cell in (["b", "a", "b"], '["b", "a", "b"]', "b,a,b"):
        assert tags_in(cell) == ("b", "a")


def test_the_name_of_a_column_in_a_template_may_have_blanks() -> None:
    assert parse_tags("book:{book title},{member}") == ("book:{book title}", "{member}")
