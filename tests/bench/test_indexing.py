import pytest

from bench.indexing import Load
from epochal.contrib.equinox.port import tips_source
from epochal.feed.indexer import Indexer
from epochal.index.epochs import EpochLimits
from epochal.store.driver import Driver, Meter
from epochal.testing.stores import memory_tables


@pytest.mark.proof
def test_an_indexer_holds_the_streams_of_two_epochs_however_many_there_have_been():
    tables = memory_tables()
    indexer = Indexer(
        driver=Driver(execute=tables.execute, meter=Meter()),
        index_table="index",
        sources=(tips_source("tips"),),
        limits=EpochLimits(entries=5),
    )
    indexer.register()
    held = []
    for batch in Load(name="all new", streams=10_000_000, batch=50).batches():
        assert not indexer.index(batch).failed
        state = indexer._held[0].state  # noqa: SLF001  # what is held is the claim
        held.append(len(state.active.next) + len(state.previous.next if state.previous else ()))

    assert state.active.number > 50
    assert max(held) <= 2 * 50 * 6
