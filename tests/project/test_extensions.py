"""What an optional package brings is found in one list, and is missed by name where the package is not there."""

from __future__ import annotations

import pytest

from epochal import extensions
from epochal.errors import InvalidInput
from epochal.testing.feeds import MemoryStore


@pytest.fixture
def nothing_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extensions, "is_installed", lambda _package: False)


@pytest.mark.usefixtures("nothing_is_there")
def test_a_package_that_is_not_there_brings_nothing() -> None:
    assert [*extensions.parts("commands")] == []
    assert extensions.part("default_store") is None


@pytest.mark.usefixtures("nothing_is_there")
def test_what_needs_a_package_that_is_not_there_names_both() -> None:
    words = r"advance: needs the optional package epochal\.contrib\.timers, which is not installed"
    with pytest.raises(InvalidInput, match=words):
        MemoryStore().advance(days=1)


def test_every_part_that_a_package_brings_is_there() -> None:
    parts = [each for each in extensions.Extension.__slots__ if each != "package"]
    assert all([*extensions.parts(part)] for part in parts if part not in {"construct", "process"})
