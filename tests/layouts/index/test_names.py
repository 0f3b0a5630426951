from __future__ import annotations

from collections import Counter

import pytest

from epochal import plugins
from epochal.index.checkpoints import SERIES, epoch_stream, mark_name, marks_name, poison_stream
from epochal.layout import registry
from epochal.layout.registry import base_of, partition_of
from epochal.plugins import BASE_DISTANCE, layouts
from epochal.settings import MAX_PARTITIONS


@pytest.mark.parametrize(
    ("stream", "first_bytes"),
    [
        # FIPS 180-4's examples for SHA-256, and the empty string.
        ("", 0xE3B0C442),
        ("abc", 0xBA7816BF),
        ("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 0x248D6A61),
    ],
)
def test_the_partition_is_the_first_four_bytes_of_sha_256_modulo_p(stream: str, first_bytes: int) -> None:
    for partitions in (1, 2, 7, 10_000):
        assert partition_of(stream, partitions) == first_bytes % partitions


@pytest.mark.parametrize(
    ("stream", "partitions", "partition"),
    [("Aircraft-N14228", 4, 3), ("Aircraft-N14228", 16, 3), ("Order-1", 4, 2), ("Straße-ü", 100, 36)],
)
def test_streams_stay_in_the_partition_they_have_always_had(
    stream: str, partitions: int, partition: int
) -> None:
    assert partition_of(stream, partitions) == partition


def test_streams_spread_evenly_over_partitions() -> None:
    found = Counter(partition_of(f"Order-{number}", 8) for number in range(8_000))
    assert set(found) == set(range(8))
    assert max(found.values()) < 1.15 * 1_000


def test_partitions_of_two_sources_can_never_meet() -> None:
    assert base_of("tips") == 0
    assert [each.base for each in layouts()] == [BASE_DISTANCE * at for at in range(len(layouts()))]
    assert MAX_PARTITIONS <= BASE_DISTANCE == 10_000


def test_the_order_in_which_layouts_are_registered_is_of_no_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [(each.base, each.name) for each in layouts()]
    monkeypatch.setattr(plugins, "LAYOUTS", tuple(reversed(plugins.LAYOUTS)))
    assert [(each.base, each.name) for each in layouts()] == before
    assert [registry.layout_of(base + 9_999).name for base, _ in before] == [name for _, name in before]


def test_system_streams_have_the_names_that_formats_gives_them() -> None:
    assert SERIES == "$AppendsIndex-0"
    assert epoch_stream(3, 17) == "$AppendsEpoch-3_17"
    assert mark_name(3, "Order-1") == "$Indexed-3_Order-1"
    assert marks_name(3) == "$Marks-3"
    assert poison_stream(0) == "$Poison-0"
    for name in (SERIES, epoch_stream(0, 0), mark_name(9_999, "A-b"), marks_name(0), poison_stream(0)):
        assert name.startswith("$")


def test_marks_of_two_streams_never_share_a_name() -> None:
    streams = ["A-1", "1_A-1", "0_A-1", "A-1_0"]
    names = {mark_name(partition, stream) for partition in (0, 1, 10) for stream in streams}
    assert len(names) == 12
