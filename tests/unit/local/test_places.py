"""Commands find their checkout from anywhere inside it."""

from __future__ import annotations

from pathlib import Path

import epochal
from epochal.local.places import Places, here


def test_the_checkout_around_a_directory_is_found(tmp_path: Path) -> None:
    (tmp_path / "cdk.json").touch()
    inside = tmp_path / "docs" / "decisions"
    inside.mkdir(parents=True)
    assert here(inside) == Places(tmp_path)


def test_outside_of_any_checkout_it_is_the_one_that_the_library_is_part_of(tmp_path: Path) -> None:
    root = here(tmp_path).root
    assert Path(epochal.__file__).is_relative_to(root)
    assert (root / "cdk.json").is_file()
