"""Whether the indexer works, judged by what can be read without it.

    its failures     what it has recorded (`index.indexer_failures`)
    its mappings     whether Lambda brings it the changes of tables, and how its last batch ended
    heads            whether the index lacks events that are in the tables (`care.head_comparison`)

A process that dies leaves no record, an index that cannot be written keeps none, credentials may not allow requests to
Lambda, and of a large table not every head is compared. So each source finds what the others miss; if none of them
shows whether the indexer works, the state says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from epochal.care.head_comparison import HeadComparison, compare_heads
from epochal.care.mender import Mender
from epochal.deployment import Deployment
from epochal.errors import EpochalError, Refused
from epochal.feed.stream_records import table_of
from epochal.hosting.mapping_states import MappingState, mappings_to
from epochal.hosting.services import IDLE
from epochal.index.indexer_failures import indexer_failures
from epochal.index.series import Series, read_series
from epochal.layout.source import Source
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.moments import PER_SECOND, Ticks, from_unix_nanoseconds
from epochal.model.quantities import quantity

if TYPE_CHECKING:
    from mypy_boto3_lambda.client import LambdaClient

NO_STREAMS: Final = "there are no streams to index"

FAILED: Final = ("PROBLEM", "FAILED")
"""Beginning of the result of a mapping's last batch if the function failed: on AWS, and on the embedded AWS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexerState:
    """Whether the indexer of a source works.

    Attributes:
        failure: why the indexer writes nothing to the index; empty if there is no sign of a failure.
        missing: events of the table that the index lacks, in words; empty if none are known to be missing.
        unknown: why it is unknown whether the indexer works; empty if it is known.
        works: evidence that the indexer works; empty if it fails, lags, or its state is unknown.
    """

    failure: str = ""
    missing: str = ""
    unknown: str = ""
    works: str = ""

    @property
    def text(self) -> str:
        """The state in a sentence."""
        unknown = f"it is unknown whether the indexer works: {self.unknown}" if self.unknown else ""
        return self.failure or self.missing or unknown or self.works

    @property
    def view(self) -> dict[str, str | None]:
        """The state as JSON."""
        return {
            "failure": self.failure or None,
            "missing": self.missing or None,
            "unknown": self.unknown or None,
            "works": self.works or None,
        }


def indexer_function(index_table: str) -> str:
    """Return the name of the indexer's function in a deployment with this index table."""
    return f"{index_table.removesuffix('-index')}-indexer"


def indexer_states(
    deployment: Deployment,
    client: Callable[[], LambdaClient],
    now: Callable[[], int] = time.time_ns,
    series: Series | None = None,
) -> dict[str, IndexerState]:
    """Return the state of the indexer by source, for each source that has streams or is on record.

    Args:
        client: makes a Lambda client; it is called once.
        now: the clock, in nanoseconds since 1970.
        series: partitions that there are, if they have been read.
    """
    driver, table = deployment.driver, deployment.settings.index_table
    series = series or driver.run(read_series(table))
    moment = from_unix_nanoseconds(now())
    failures = driver.run(indexer_failures(table, series, moment))
    function = indexer_function(table)
    mappings, unknown = _mappings(client, function)
    states: dict[str, IndexerState] = {}
    for declared in deployment.sources:
        source = replace(declared, partitions=series.partitions.get(declared.name, declared.partitions))
        heads = _of_heads(Mender(driver=driver, index_table=table), source, series, moment)
        if heads is not None or source.name in series.partitions:
            of_mapping = _of_mappings(source, function, mappings, unknown)
            failure = failures.get(source.name, "") or of_mapping.failure
            states[source.name] = _joined(failure, of_mapping, heads or IndexerState(works=NO_STREAMS))
    return states


def _joined(failure: str, mapping: IndexerState, heads: IndexerState) -> IndexerState:
    """Combine what records, mappings and heads say: a failure counts first, then a gap, then success."""
    if failure:
        return IndexerState(failure=failure, missing=heads.missing)
    if heads.missing:
        return IndexerState(missing=heads.missing)
    if heads.works or mapping.works:
        return IndexerState(works=heads.works or mapping.works)
    return IndexerState(unknown="; ".join(filter(None, (mapping.unknown, heads.unknown))))


def _of_heads(mender: Mender, source: Source, series: Series, now: Ticks) -> IndexerState | None:
    """Return the state of the indexer by a source's heads; None if the source has no streams."""
    try:
        compared = compare_heads(mender, source, series)
    except EpochalError as error:
        return IndexerState(
            unknown=f"the streams of {source.name} cannot be compared with the index ({error})"
        )
    if compared.lacking:
        return IndexerState(missing=_missing(compared, now))
    if compared.whole and not compared.streams:
        return None
    if compared.whole:
        return IndexerState(works=f"the index has all events of {quantity(compared.streams, 'stream')}")
    return IndexerState(
        unknown=f"the table of {source.name} is too large to be compared with the index as a whole"
    )


def _missing(compared: HeadComparison, now: Ticks) -> str:
    """Say how many events the index lacks, of how many streams, and for how long."""
    events, streams = quantity(compared.events), quantity(compared.lacking, "stream")
    least = "" if compared.whole else "at least "
    oldest = compared.oldest
    since = "" if oldest is None else f", the oldest for {max(0, now - oldest) // PER_SECOND:,} s"
    return f"the index lacks {least}{events} of {streams}{since}"


def _mappings(client: Callable[[], Any], function: str) -> tuple[Sequence[MappingState], str]:
    """Return the event source mappings to the indexer and, if they are not known, the reason."""
    try:
        mappings = mappings_to(client(), function)
    except Refused as error:
        return (), f"the credentials do not allow reading its state from Lambda ({error})"
    except EpochalError as error:
        return (), f"its state cannot be read from Lambda ({error})"
    return (
        mappings,
        "" if mappings else f"Lambda has no function {function} that receives the changes of a table",
    )


def _of_mappings(
    source: Source, function: str, mappings: Sequence[MappingState], unknown: str
) -> IndexerState:
    """Return the state of a source's indexer by the state of its event source mappings."""
    if unknown:
        return IndexerState(unknown=unknown)
    # A Kinesis stream has the changes of all tables.
    of_source = [mapping for mapping in mappings if table_of(mapping.source) in ("", source.table)]
    if not of_source:
        return IndexerState(
            failure=f"{function} receives no changes of {source.table}: its mapping does not exist"
        )
    for mapping in of_source:
        if mapping.state in IDLE:
            return IndexerState(
                failure=f"{function} receives no changes of {source.table}: its mapping is {mapping.state.lower()}"
            )
        if mapping.result.startswith(FAILED):
            return IndexerState(
                failure=f"{function} fails on the changes of {source.table}: {mapping.result}"
            )
    return IndexerState(
        works=f"{function} receives the changes of {source.table}, and did not fail on the last"
    )
