"""Events and snapshots of aggregates, as users have them, and what a writer expects of an aggregate."""

from __future__ import annotations

from typing import Any

from epochal.contrib.event_store_adapter.ids import AggregateId
from epochal.lazy_dataclasses import dataclass
from epochal.model.expected_version import AtVersion, Expected
from epochal.model.kinds import must_be
from epochal.model.plain_json import read_json, write_json


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateEvent:
    """An event to append to an aggregate.

    Attributes:
        type: name of the event's type, such as `OrderPlaced`.
        data: body of the event, as UTF-8 JSON.
        occurred_at: when the event happened, ISO 8601; None for the moment of the append.
    """

    type: str
    data: bytes
    occurred_at: str | None = None

    def __post_init__(self) -> None:
        """Refuse values of wrong Python types, above all bodies that are not encoded yet."""
        must_be(str, self.type, "type", "text")
        must_be(bytes, self.data, "data", "bytes")
        must_be((str, type(None)), self.occurred_at, "occurred_at", "ISO 8601 text")

    @classmethod
    def json(cls, type: str, value: object, /, *, occurred_at: str | None = None) -> AggregateEvent:  # noqa: A002
        """Make an event whose data is a value serialized as plain JSON, as `json.dumps` writes it.

        Args:
            type: type of the event.
            value: value that `json.dumps` can write.
            occurred_at: time of the event, as of `AggregateEvent`; None for the moment of the append.

        Raises:
            InvalidInput: the value, or what is at the path that is named, is not JSON. NaN is not, nor are members that
                only codecs and subjects write.
        """
        return cls(type=type, data=write_json(value), occurred_at=occurred_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAggregateEvent:
    """An event as it is stored in an aggregate.

    Attributes:
        aggregate: id of the event's aggregate.
        seq_nr: number of the event in its aggregate, counted from 1.
        type: name of the event's type, such as `OrderPlaced`.
        data: body of the event, as UTF-8 JSON.
        occurred_at: when the event happened, as it is stored; other libraries store a number, which is kept as its
            digits.
    """

    aggregate: AggregateId
    seq_nr: int
    type: str
    data: bytes
    occurred_at: str

    @property
    def stream(self) -> str:
        """The aggregate's id as text, which is the name of its stream in the feed."""
        return str(self.aggregate)

    def json(self) -> Any:
        """Parse the event's data as JSON; raise `CorruptData` if it is none, `InvalidInput` if it is sealed.

        Raises:
            InvalidInput: the data is sealed, or of a version above 1: its codec reads that.
            CorruptData: the data is not JSON.
        """
        return read_json(self.data, f"{self.aggregate} (event {self.seq_nr}), {self.type}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """Version and last event number of an aggregate. An append that is given them takes one request.

    Attributes:
        version: version of the aggregate for optimistic locking, from 1; every append raises it.
        seq_nr: number of the aggregate's last event.
    """

    version: int
    seq_nr: int


ExpectedLock = Expected | AtVersion | Lock
"""What an append expects of an aggregate: a state, a version, or a whole `Lock`, with which it takes one request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateSnapshot:
    """A snapshot: an aggregate's state as of one of its events, and the aggregate's lock.

    Attributes:
        aggregate: id of the aggregate.
        data: aggregate's state, as UTF-8 JSON.
        seq_nr: number of the last event that is folded into the state.
        lock: version and last event number of the aggregate.
        made_with: class of the state and version of the rules that a decider made the snapshot with; empty if unknown,
            as for other libraries' snapshots.
    """

    aggregate: AggregateId
    data: bytes
    seq_nr: int
    lock: Lock
    made_with: str = ""
