"""The check of `epochal prove` that a lake gets the events of its store, and that Athena reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from epochal.contrib.lake import TABLE, VIEW
from epochal.contrib.proving.deployed_stacks import AWS
from epochal.contrib.proving.proof import CATEGORY, Broken, ProofRun, Trial, Unproven, trial
from epochal.contrib.publish.proofs import publications_of
from epochal.dynamo.aws_errors import translate_errors

BEYOND_BUFFER: Final = 120.0
"""Seconds beyond Firehose's buffering for events to be indexed, sent, converted and written."""

QUERY_SECONDS: Final = 60.0


def trials(_: ProofRun) -> Iterator[Trial]:
    """Yield the checks of this package."""
    yield lake


@trial("a lake returns each event of a stream once, by its day of arrival and through its view", 0.002)
def lake(proof: ProofRun) -> str:
    """Wait until Athena counts all events of a stream of the proof in the lake; return a report, or raise.

    Raises:
        Broken: the lake lacks events, or its view has them more than once.
        Unproven: the stage has no lake, or the lake is not sent the proof's events.
    """
    workgroups = [name for stack in proof.stacks for name, _ in stack.of("AWS::Athena::WorkGroup")]
    if not workgroups:
        raise Unproven("the stage has no lake: add the stack of a lake with --also")
    sent = {publication.place for publication in publications_of(proof) if publication.as_rows}
    lakes = [name for name in workgroups if name in sent]
    if not lakes:
        raise Unproven(f"no lake receives events of {CATEGORY}: add it to the categories of a lake")
    stream, count = _written(proof)
    athena, workgroup = proof.client("athena"), lakes[0]
    database = workgroup.replace("-", "_")
    counting = f'count(DISTINCT "index") FROM "{database}"'
    which = f"WHERE stream = '{stream}'"
    by_day = f"SELECT {counting}.\"{TABLE}\" {which} AND day >= current_date - interval '1' day"
    began, arrivals = proof.clock(), [0]

    def complete() -> bool:
        """Whether the table has all events of the stream."""
        arrivals[0] = _number(proof, athena, workgroup, by_day)
        return arrivals[0] >= count

    seconds = _buffer_seconds(proof, workgroup) + BEYOND_BUFFER
    if not proof.until(complete, seconds, every=30.0):
        raise Broken(f"after {seconds:.0f} s, the lake has {arrivals[0]} of {count} events of {stream}")
    took = proof.clock() - began
    if AWS in athena.meta.endpoint_url:  # the embedded AWS knows no views
        view = _number(proof, athena, workgroup, f'SELECT count(*) FROM "{database}"."{VIEW}" {which}')  # noqa: S608  our own names
        if view != count:
            raise Broken(f"the view of the lake has {view} rows of {stream}, which has {count} events")
    return f"{count} events in {workgroup}, after {took:.0f} s"


def _written(proof: ProofRun) -> tuple[str, int]:
    """Return a named stream that the proof has written, and its number of events; raise if there is none.

    Raises:
        Unproven: there is none.
    """
    for stream, numbers in proof.written.items():
        if numbers and stream.startswith(f"{CATEGORY}-"):
            return stream, len(numbers)
    raise Unproven("nothing was appended")


def _buffer_seconds(proof: ProofRun, name: str) -> float:
    """Return the seconds for which Firehose buffers rows of the lake `name`; 0 if there is no such lake."""
    for stack in proof.stacks:
        for delivery, properties in stack.of("AWS::KinesisFirehose::DeliveryStream"):
            if delivery == name:
                hints = properties["ExtendedS3DestinationConfiguration"]["BufferingHints"]
                return float(hints["IntervalInSeconds"])
    return 0.0


def _number(proof: ProofRun, athena: Any, workgroup: str, sql: str) -> int:
    """Run a query in Athena and return the number in its only row; raise if the query does not succeed.

    Raises:
        Broken: Athena does not answer the query.
    """
    with translate_errors("StartQueryExecution"):
        query = athena.start_query_execution(QueryString=sql, WorkGroup=workgroup)["QueryExecutionId"]
    status: dict[str, Any] = {"State": "QUEUED"}

    def ended() -> bool:
        """Whether the query has ended, well or not."""
        with translate_errors("GetQueryExecution"):
            status.update(athena.get_query_execution(QueryExecutionId=query)["QueryExecution"]["Status"])
        return status["State"] not in ("QUEUED", "RUNNING")

    if not proof.until(ended, QUERY_SECONDS, every=1.0) or status["State"] != "SUCCEEDED":
        raise Broken(f"Athena: {status['State']}, {status.get('StateChangeReason', 'still running')}")
    with translate_errors("GetQueryResults"):
        rows = athena.get_query_results(QueryExecutionId=query)["ResultSet"]["Rows"]
    return int(rows[-1]["Data"][0]["VarCharValue"])
