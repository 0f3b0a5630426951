"""Whether the indexers of a table's shards rest, since too many of them write to one partition of the index.

    shards    each has an indexer, which writes to every partition of its source; the table's stream lists them
    window    seconds for which each indexer gathers changes, as its event source mapping says
    rests     their sum in the last hour, by the metric that the indexer's function writes (`epochal.index.crowding`)

Few shards never rest, so CloudWatch is asked only about tables with many.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from epochal.deployment import Deployment
from epochal.dynamo.aws_errors import translate_errors
from epochal.feed.stream_records import table_of
from epochal.hosting.indexer_state import indexer_function
from epochal.hosting.mapping_states import mappings_to
from epochal.hosting.services import Measure, Metric, measuring
from epochal.index.crowding import CROWD
from epochal.lazy_dataclasses import dataclass
from epochal.model.quantities import quantity

PERIOD: Final = 3_600.0
"""Seconds for which rests are added up."""

SHARDS_A_SECOND: Final = 20
"""Shards for which a window should last one second: then a partition takes some 20 entries a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """The indexers of a source whose table has many shards.

    Attributes:
        source: name of the source.
        shards: number of open shards of the table's stream.
        window: seconds for which each indexer gathers changes.
        rested: seconds that the indexers have rested in the last hour, all together.
    """

    source: str
    shards: int
    window: int
    rested: float

    @property
    def text(self) -> str:
        """The state in a sentence."""
        shards = f"{quantity(self.shards, 'shard')} write to each partition of the index"
        if not self.rested:
            return f"{shards}, and no indexer has paused in the last hour"
        rests = (
            f"too often, so their indexers have paused for {max(1, round(self.rested)):,} s in the last hour"
        )
        return f"{shards} {rests}, which Lambda charges for"

    @property
    def remedy(self) -> str:
        """What to do; empty if the indexers do not rest."""
        if not self.rested:
            return ""
        window, more = -(-self.shards // SHARDS_A_SECOND), "docs/guide/index-care.md#many-shards"
        if self.window < window:
            twentieth = f"Set `feed_window_seconds` to {window}, a twentieth of the number of shards"
            return f"{twentieth}, or send the changes through Kinesis: {more}."
        return f"Send the changes through Kinesis: {more}."


def crowds(
    deployment: Deployment, client: Callable[[str], Any], now: Callable[[], float] = time.time
) -> Iterator[Crowd]:
    """Yield the indexers of each source whose table has so many shards that they may rest.

    Args:
        client: makes a client of an AWS service.
        now: the clock, in seconds since 1970.

    Raises:
        Refused: the credentials may not list mappings or shards, or read metrics.
        Unavailable: throttling, an outage, or no answer in time.
    """
    function = indexer_function(deployment.settings.index_table)
    sources = {source.table: source.name for source in deployment.sources}
    for mapping in mappings_to(client("lambda"), function):
        source = sources.get(table_of(mapping.source))  # a Kinesis stream is of no table
        if source is None:
            continue
        shards = _open_shards(client("dynamodbstreams"), mapping.source)
        if shards > CROWD:
            rested = _rested(measuring(client("cloudwatch")), function, now())
            yield Crowd(source=source, shards=shards, window=mapping.window, rested=rested)


def _open_shards(client: Any, stream: str) -> int:
    """Count the shards of a table's stream that still get changes.

    It takes a request for each hundred shards of a day.
    """
    count, page = 0, dict[str, Any]()
    while True:
        with translate_errors("DescribeStream"):
            description = client.describe_stream(StreamArn=stream, **page)["StreamDescription"]
        ranges = (shard.get("SequenceNumberRange", {}) for shard in description.get("Shards", ()))
        count += sum("EndingSequenceNumber" not in numbers for numbers in ranges)
        last = description.get("LastEvaluatedShardId")
        if not last:
            return count
        page = {"ExclusiveStartShardId": last}


def _rested(measure: Measure, function: str, now: float) -> float:
    """Return the seconds that the indexer's function has rested in the last hour."""
    metric = Metric(namespace="Epochal", name="Indexer.rest", dimensions={"service": function})
    (milliseconds,) = measure([metric], now - PERIOD, now, 60)
    return sum(milliseconds.values()) / 1_000
