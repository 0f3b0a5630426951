"""Commands find their project from anywhere inside it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import epochal
from epochal.cdk.user_cache import user_cache
from epochal.contrib.local.programs import MARKERS, Places, here


def test_a_project_without_a_cdk_json_is_where_something_runs_for_it(tmp_path: Path) -> None:
    inside = tmp_path / "docs"
    inside.mkdir()
    Places(tmp_path).prepare()
    assert here(inside) == Places(tmp_path)
    assert (tmp_path / ".epochal" / ".gitignore").read_text() == "*\n"


def test_the_project_around_a_directory_is_found(tmp_path: Path) -> None:
    (tmp_path / "cdk.json").touch()
    inside = tmp_path / "docs" / "decisions"
    inside.mkdir(parents=True)
    assert here(inside) == Places(tmp_path)


def test_outside_of_any_project_it_is_the_checkout_that_the_library_is_part_of(tmp_path: Path) -> None:
    root = here(tmp_path).root
    assert Path(epochal.__file__).is_relative_to(root)
    assert (root / "cdk.json").is_file()


def test_a_folder_above_that_cannot_be_read_is_none_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = os.stat

    def stat(path: Any, **options: Any) -> os.stat_result:
        if Path(str(path)).parent == tmp_path and Path(str(path)).name in MARKERS:
            raise PermissionError(13, "Permission denied", str(path))
        return status(path, **options)

    inside = tmp_path / "inside"
    inside.mkdir()
    monkeypatch.setattr(os, "stat", stat)
    assert (here(inside).root / "cdk.json").is_file()


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({"EPOCHAL_CACHE": "/told", "XDG_CACHE_HOME": "/caches"}, "/told"),
        ({"XDG_CACHE_HOME": "/caches"}, "/caches/epochal"),
    ],
)
def test_what_is_fetched_for_a_user_is_where_the_user_says(
    variables: dict[str, str], place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("EPOCHAL_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert user_cache() == Path(place)
