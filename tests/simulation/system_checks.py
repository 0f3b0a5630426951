"""What must hold of a whole system at rest: that each layout is whole, that the feed is all of it, that groups have had
all of the feed, and that whoever verifies the index finds nothing.

    layouts     what the simulations of each ask for
    feed        every event of every stream once, in order, in its partition; and with its data, to the byte, what its
                writer wrote, but for what is pruned
    groups      everything handled, nothing parked, checkpoints at the tail
    index       no record set aside, and nothing to find
"""

from __future__ import annotations

from epochal.care.verify import Verifier
from epochal.feed.results import FeedItem
from epochal.layout.registry import source_of
from tests.simulation.index_checks import check_order
from tests.simulation.system_world import System
from tests.simulation.system_writers import FLIGHTS, Written
from tests.simulation.world import driver_on


def check(system: System) -> None:
    """Check everything."""
    for simulation in system.writers.simulations:
        simulation.check()
    written = system.writers.written()
    pruned = {stream: system.writers.low_water(stream) for stream in FLIGHTS}
    reached: dict[str, int] = {}
    for partition in system.partitions:
        reached |= check_partition(system, partition, written, pruned)
    for stream, events in written.items():
        gone = pruned.get(stream, 0) == len(events)
        assert reached.get(stream, 0) == len(events) or gone, f"{stream} is not all in the feed"
    for consumer in system.consumers:
        for partition in consumer.partitions:
            consumer.group.check_rest(partition)
    check_index(system)


def check_partition(
    system: System, partition: int, written: dict[str, list[Written]], pruned: dict[str, int]
) -> dict[str, int]:
    """Check a partition's chain and events; return how far each of its streams has got."""
    entries = system.consumers[0].group.feed(partition).seen
    reached = check_order(entries, pruned, lambda stream, index: written[stream][index].type)
    (source,) = (each for each in system.sources if each.name == source_of(partition))
    assert all(source.partition_of(stream) == partition for stream in reached), "in a partition not its own"
    reader = system.reader(driver_on(system.tables.execute))
    page = reader.page(partition, limit=1_000_000, data=True)
    assert page.at_tail
    assert len(page.items) == sum(len(span.types) for entry, _ in entries for span in entry.spans)
    for item in page.items:
        check_item(item, written[item.stream][item.index], pruned.get(item.stream, 0))
    return reached


def check_item(item: FeedItem, written: Written, low_water: int) -> None:
    """Check that an item of the feed is what was written, or deleted for good."""
    if item.gone is not None:
        assert item.gone == "pruned", f"{item} is gone"
        assert item.index < low_water, f"{item} is said to be pruned"
        return
    assert item.event is not None
    assert (item.event.type, item.event.data) == written, f"{item.event} is not {written}"


def check_index(system: System) -> None:
    """Check that nothing was quarantined, and that the index is sound."""
    names = {item["p"]["S"] for item in system.tables.items("index")}
    assert not [name for name in names if name.startswith("$Poison")], "a record was set aside"
    mender = system.mender("judge", system.tables.execute)
    found = list(Verifier(mender=mender, sources=system.sources).findings())
    assert found == [], f"verify finds {found}"


def play(seed: int) -> System:
    """Play one seed and check the result; a failure names the seed."""
    system = System(seed)
    try:
        system.play()
        check(system)
    except Exception as error:
        raise AssertionError(f"seed {seed}: {error!r}\n{system.weather}") from error
    return system
