"""G10 on the way from appends to a handler: what the index lost is told, mended or rebuilt, and reactions get it all.

Over AWS's own DynamoDB, under the rules of what lies between (`tests/simulation/reaction_pipeline`): the records that
are lost, the epochs that are deleted and the rebuild that goes on beside a running indexer are those of a deployment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import boto3
import pytest

from epochal.care.auditor import Auditor
from epochal.care.mender import Mender
from epochal.care.rebuild import Rebuilder, Rebuilt
from epochal.care.repair import Repairer
from epochal.care.verify import Verifier
from epochal.feed.indexer import sources_of
from epochal.index.chain_check import FindingKind
from epochal.index.epochs import EpochLimits
from epochal.index.series import register
from epochal.layout.tables import INDEX
from epochal.plan.ops import Delete, Items, Scan
from epochal.plan.values import Item
from epochal.store.driver import Driver, Meter
from tests.simulation.index_event_source import IndexerFunction
from tests.simulation.reaction_pipeline import Handler, Pipeline
from tests.support.tables import Tables

pytestmark = pytest.mark.ddbl

LIMITS = EpochLimits(entries=6)
"""Those of the pipeline's indexers: epochs close often."""

LOST = "$AppendsEpoch-10000_0"
"""All items of the first epoch of aggregates, which have one partition."""


class Cared(Pipeline):
    """A deployment whose index is damaged, and the tools that look after it."""

    def fill(self, rounds: int = 8) -> None:
        """Append and index by little, so that there are many entries, and several epochs."""
        for _ in range(rounds):
            self.append(2)
            self.index(batch=2)
        self.react()

    def lose(self, appends: int) -> None:
        """Append, and let no record of it reach the indexer: as if they had expired in the stream."""
        self.append(appends)
        for table in (
            self.settings.table("tips"),
            self.settings.table("snapshot"),
            self.settings.table("tags"),
        ):
            self._fresh(table)

    def delete(self, *prefixes: str) -> int:
        """Delete the items of the index whose partition keys begin so; how many there were."""
        gone = [item for item in self.items() if item["p"]["S"].startswith(prefixes)]
        for item in gone:
            self.perform(Delete(table=self.settings.index_table, key={"p": item["p"], "i": item["i"]}))
        return len(gone)

    def items(self) -> tuple[Item, ...]:
        reply = self.perform(Scan(table=self.settings.index_table))
        assert isinstance(reply, Items)
        return reply.items

    def switch(self, table: str) -> None:
        """Deploy anew with another table as the index: functions start afresh, and whoever handles begins again."""
        self.settings = replace(self.settings, index_table=table)
        self.indexer = IndexerFunction(self._indexer)
        self.handler = Handler(clock=self.clock)

    def mender(self, table: str = "") -> Mender:
        driver = Driver(execute=self.perform, meter=Meter(), sleep=lambda _: None)
        return Mender(driver=driver, index_table=table or self.settings.index_table, limits=LIMITS)

    def verifier(self) -> Verifier:
        return Verifier(mender=self.mender(), sources=sources_of(self.settings))

    def wrong(self) -> Counter[FindingKind]:
        """What verifying says, by kind."""
        return Counter(finding.kind for finding in self.verifier().findings())

    def repair(self) -> None:
        assert all(each.mended for each in Repairer(self.verifier()).repair())

    def rebuild(self, table: str) -> list[Rebuilt]:
        sources, mender = sources_of(self.settings), self.mender(table)
        counts = {source.name: source.partitions for source in sources}
        mender.driver.run(register(table, counts, mender.ids()))
        rebuilder = Rebuilder(mender=mender, readers=4, segments=2)
        return [rebuilder.from_tables(source) for source in sources]


@pytest.fixture
def cared(ddbl_tables: Tables) -> Iterator[Cared]:
    endpoint = ddbl_tables.endpoint
    client: Any = boto3.client("dynamodbstreams", endpoint_url=endpoint.url, region_name=endpoint.region)
    yield Cared(tables=ddbl_tables, table_streams=client)
    client.close()


def told_and_handled(cared: Cared) -> None:
    """The reaction does its work, which its schedule wakes it to; then all is well."""
    cared.react()
    cared.clock.sleep(15 * 60)
    cared.invoke({})
    cared.react()
    assert cared.missing() == []
    assert cared.parked() == {}
    assert cared.wrong() == {}


@pytest.mark.proof
def test_what_no_record_told_of_is_told_by_verifying_and_once_mended_it_is_handled(cared: Cared) -> None:
    cared.append(6)
    cared.flow()
    assert cared.wrong() == {}
    cared.lose(6)
    assert set(cared.wrong()) == {"missing"}
    cared.flow()
    assert cared.missing() != [], "only the heads know of it"
    cared.repair()
    told_and_handled(cared)


def test_the_auditor_brings_it_too_without_being_asked(cared: Cared) -> None:
    cared.append(6)
    cared.flow()
    cared.lose(6)
    lost = len(cared.missing())
    auditor = Auditor(mender=cared.mender(), sources=sources_of(cared.settings))
    assert 0 < lost <= auditor.audit(60).healed
    told_and_handled(cared)


@pytest.mark.proof
def test_a_lost_index_is_told_and_mended_and_groups_that_lost_their_place_with_it_begin_anew(
    cared: Cared,
) -> None:
    cared.append(8)
    cared.flow()
    cared.delete("$")
    assert cared.items() == ()
    assert set(cared.wrong()) == {"missing", "unregistered"}
    cared.switch(cared.settings.index_table)
    cared.repair()
    told_and_handled(cared)


@pytest.mark.proof
def test_a_lost_epoch_is_told_to_need_a_rebuild_which_repair_is_not(cared: Cared) -> None:
    cared.fill()
    assert cared.wrong() == {}
    assert cared.delete(LOST) > 0
    found = set(cared.verifier().findings())
    assert {each.remedy for each in found} == {"rebuild"}
    assert not [each for each in Repairer(cared.verifier()).repair() if each.mended]
    assert set(cared.verifier().findings()) == found


@pytest.mark.proof
@pytest.mark.parametrize("faults", [0.0, 0.05])
def test_a_rebuild_beside_a_running_indexer_loses_nothing_and_the_switch_hands_everything_on(
    ddbl_tables: Tables, cared: Cared, faults: float
) -> None:
    cared.fill()
    cared.delete(LOST)
    anew = ddbl_tables.create(INDEX)
    cared.faults = faults
    with ThreadPoolExecutor(1) as pool:
        rebuilding = pool.submit(cared.rebuild, anew)
        for _ in range(4):
            cared.append(2)
            cared.index()
        assert [each.troubles for each in rebuilding.result()] == [[], [], []]
    cared.switch(anew)
    cared.append(2)
    cared.index()
    cared.faults = 0.0
    cared.repair()  # what was appended between a scan and the switch, to streams of which nothing came since
    told_and_handled(cared)
    cared.append(4)
    cared.flow()
    assert cared.missing() == []
