"""Mends what `verify` finds, where that is possible in place, beside running indexers.

    unregistered    the sources' numbers of partitions are put on record again
    mark low        is raised to where the chain leaves the stream
    missing         is ingested, as if a stream record had come late

Marks come before heads, since they tell what is missing. Gaps inside a chain cannot be filled: readers may have
passed them. Where a chain's epochs are broken nothing is written to it at all, since nobody can tell which of them
an indexer would go on with.
"""

from __future__ import annotations

from collections.abc import Iterator

from epochal.care.heads import ScannedHead
from epochal.care.verify import Verifier
from epochal.errors import CorruptData
from epochal.index.chain_check import Finding
from epochal.index.marks import Leaves, write_marks
from epochal.index.series import register
from epochal.layout.source import Source
from epochal.lazy_dataclasses import dataclass, field

MENDED_AT_ONCE = 100
"""Streams that are ingested together: an entry of the index holds many."""

BROKEN = ("epoch lost", "epoch left open", "epoch continued", "epoch unreadable")


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """A finding, and what became of it.

    Attributes:
        finding: what was wrong.
        why: why it was not mended; empty where it was.
    """

    finding: Finding
    why: str = ""

    @property
    def mended(self) -> bool:
        """It is no longer so."""
        return not self.why


@dataclass(frozen=True, slots=True)
class Repairer:
    """Mends an index while it is verified.

    Attributes:
        broken: numbers of partitions whose epochs are damaged, so that nothing is written to them.
    """

    verifier: Verifier
    broken: set[int] = field(default_factory=set)

    def repair(self) -> Iterator[Repaired]:
        """Verify the index, mend what can be mended, and yield each finding with what became of it."""
        waiting: list[Finding] = []
        for finding in self.verifier.findings():
            together = finding.kind == "missing" and all(_alike(finding, other) for other in waiting)
            if not together or len(waiting) == MENDED_AT_ONCE:
                yield from self._ingest(waiting)
                waiting = []
            if finding.kind == "missing":
                waiting.append(finding)
            else:
                yield self._mend(finding)
        yield from self._ingest(waiting)

    def _mend(self, finding: Finding) -> Repaired:
        """Mend a finding that is not about missing events, or say why it has to stay."""
        mender = self.verifier.mender
        if finding.kind == "unregistered":
            counts = {source.name: source.partitions for source in self.verifier.sources}
            mender.driver.run(register(mender.index_table, counts, mender.ids()))
            return Repaired(finding=finding)
        if finding.kind == "mark low":
            if finding.partition in self.broken:
                return Repaired(finding=finding, why="rebuild")
            mark = (str(finding.stream), finding.end or 0)
            mender.driver.run(
                write_marks(mender.index_table, finding.partition or 0, Leaves(lenient=True), [mark])
            )
            return Repaired(finding=finding)
        if finding.kind in BROKEN and finding.partition is not None:
            self.broken.add(finding.partition)
        return Repaired(finding=finding, why=finding.remedy)

    def _ingest(self, findings: list[Finding]) -> Iterator[Repaired]:
        """Index the missing events of one partition's streams; yield each finding with what became of it."""
        if not findings:
            return
        source, number = self._source(findings[0]), findings[0].partition or 0
        why: dict[str, str] = {}
        if number in self.broken:
            why = {str(finding.stream): "rebuild" for finding in findings}
        else:
            try:
                mended = self.verifier.mender.mend(source, number, self._heads(source, findings))
                why = {stream: str(unhealed.cause) for stream, unhealed in mended.unhealed.items()}
            except CorruptData as error:
                why = {str(finding.stream): str(error) for finding in findings}
        for finding in findings:
            yield Repaired(finding=finding, why=why.get(str(finding.stream), ""))

    def _heads(self, source: Source, findings: list[Finding]) -> Iterator[ScannedHead]:
        """Read the heads of the findings again, and yield those that are still there.

        They may tell of more by now.
        """
        for finding in findings:
            if finding.key is not None:
                fresh = self.verifier.mender.again(source, finding.key)
                if fresh is not None:
                    yield fresh

    def _source(self, finding: Finding) -> Source:
        return next(source for source in self.verifier.sources if source.name == finding.source)


def _alike(one: Finding, other: Finding) -> bool:
    return (one.source, one.partition) == (other.source, other.partition)
