"""A layout whose package was deleted: its name and its partitions stay its own, and what needs its code says so."""

from __future__ import annotations

import pytest

from epochal import plugins
from epochal.errors import InvalidInput
from epochal.layout.registry import base_of, layouts_in, source_of
from epochal.named_objects import is_installed
from epochal.plugins import Layout, layouts
from epochal.settings import Settings


@pytest.fixture(autouse=True, params=["journal", "tips"])
def missing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Layout:
    gone = next(layout for layout in plugins.LAYOUTS if layout.name == request.param)
    entry = Layout(
        name=gone.name,
        base=gone.base,
        table=gone.table,
        partitions=gone.partitions,
        of="epochal.gone.x",
    )
    others = (layout for layout in plugins.LAYOUTS if layout is not gone)
    monkeypatch.setattr(plugins, "LAYOUTS", (entry, *others))
    return entry


def test_it_is_passed_over(missing: Layout) -> None:
    assert missing not in layouts()
    assert len(layouts()) == len(plugins.LAYOUTS) - 1


def test_its_partitions_are_taken_for_no_others(missing: Layout) -> None:
    assert base_of(missing.name) == missing.base
    assert source_of(missing.base) == missing.name


def test_a_deployment_that_names_its_table_says_which_package_is_missing(missing: Layout) -> None:
    (entry,) = layouts_in(Settings.of(**{missing.table: "t", "index_table": "i"}))
    with pytest.raises(
        InvalidInput, match=rf"{missing.table}: needs the package epochal\.gone\.x, which is not"
    ):
        _ = entry.port


def test_a_package_is_looked_for_wherever_it_would_be() -> None:
    assert is_installed("epochal.contrib.sekiban")
    assert not is_installed("epochal.contrib.gone")
    assert not is_installed("epochal.gone.x")
