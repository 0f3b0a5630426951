"""Every error Epochal raises, in one tree.

    EpochalError
    ├── InvalidInput (ValueError)        the caller's fault: names the field and the rule; nothing was written
    │   ├── TooLarge                     a body, item or transaction over a limit: carries size and limit
    │   ├── WrongTable                   a table of another kind than the store that was handed it
    │   └── BeyondTheEnd                 a checkpoint past the end of the index: it is of another one
    ├── ConflictError                    another writer was first, nothing was written: carries the outcome
    │   ├── WrongExpectedVersion         the stream or aggregate is not where the caller expected it
    │   ├── StreamDeleted                the stream carries a tombstone and takes no more events
    │   ├── ConditionUnmet               a condition of what was to go with the events does not hold
    │   └── Contended                    a decision was overtaken by other writers at each of its attempts
    ├── GroupMissing (LookupError)       no reaction of that name has begun in the index
    ├── EventsPruned (LookupError)       a read, or a state, needs events that are pruned and in no archive
    ├── UnknownType (LookupError)        an event or unfold of a type that the codec given does not know
    ├── SubjectForgotten (LookupError)   the subject's key was destroyed: nothing is sealed for it any more
    ├── OutcomeUndetermined              a response was lost and the evidence has been pruned since
    ├── CorruptData                      what is stored breaks a format or leaves a hole
    │   └── UnknownEncoding              a body under an encoding this version cannot read
    ├── MissingBody (LookupError)        a claim check whose object is gone
    ├── MissingTable (LookupError)       a table that settings name does not exist
    ├── Misconfigured                    AWS's own settings lack something, a region or credentials: says what to do
    ├── MissingBucket (LookupError)      a bucket that settings name does not exist
    ├── Refused (PermissionError)        AWS denied the request
    │   └── DeniedBody                   for an object, outside of where bodies lie, that a claim check names
    ├── InvalidRequest                   AWS takes the request for malformed: carries its code and its words
    └── Unavailable (TimeoutError)       throttling or an outage outlasted the time allowed
        ├── NotTried                     the time was over before anything was sent
        └── KeyAhead                     an idempotency key was made by a clock that is ahead of this one

docs/reference/errors.md says of each what to do.

Conflicts are values inside the library (DESIGN §5.1). What a user calls raises them, so that a lost write cannot pass
unseen, and has a twin named `try_…` that answers them as values. docs/reference/errors.md says of each what to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class EpochalError(Exception):
    """The base of all errors that Epochal raises on purpose.

    Attributes:
        capacity: the `Capacity` that the call consumed before it failed; None where it was not measured.
    """

    capacity: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the error by its fields, so that an error of a worker process reaches the caller.

        The constructor does not take the message, so pickling by arguments would fail.
        """
        return _bare, (type(self),), {**vars(self), "args": self.args}


def _bare(kind: type[EpochalError]) -> EpochalError:
    """Make an error without fields, for unpickling."""
    return kind.__new__(kind)


class InvalidInput(EpochalError, ValueError):
    """The argument `field` broke the rule `rule`; nothing was written.

    Args:
        field: name of the faulty argument, or of the part of it that is faulty.
        rule: what is wrong with the value, or what it must be.
    """

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field}: {rule}")
        self.field = field
        self.rule = rule

    def call_it(self, field: str) -> None:
        """Change the name of the field in the error to the name by which the caller knows it.

        Args:
            field: name of the argument that the caller passed.
        """
        self.field = field
        self.args = (f"{field}: {self.rule}",)


class TooLarge(InvalidInput):
    """The argument `field` has `size` bytes or items, more than the `limit`.

    `advice` in the message is what would help.

    Attributes:
        field: name of the argument.
        size: number of bytes or items that the argument has.
        limit: largest allowed number of bytes or items of the argument.

    Args:
        unit: what `size` counts, such as `bytes` or `items`.
        advice: what would help; empty for nothing.
    """

    def __init__(self, field: str, size: int, limit: int, unit: str = "bytes", advice: str = "") -> None:
        super().__init__(field, f"{size:,} {unit}, at most {limit:,} allowed{advice and f': {advice}'}")
        self.size = size
        self.limit = limit


class WrongTable(InvalidInput):
    """The table is of the kind `found`, not of the kind `wanted`; `found` is empty if no known kind fits it.

    For a transaction over several tables DynamoDB may not tell which table is wrong; then all of them are named.
    `advice` in the message is what may be the cause.

    Args:
        table: name of the table.
        wanted: kind of table that is needed; empty if it is not known.
        found: kind of table that was found; empty if its keys and indexes match no known kind.
        advice: what may be the cause; empty for nothing.
    """

    def __init__(self, table: str, wanted: str = "", found: str = "", advice: str = "") -> None:
        what = f"is a table of {found}" if found else "has other keys or indexes"
        rule = f"{table} {what}, not a table of {wanted}" if wanted else f"{table} {what}"
        super().__init__("table", f"{rule}{advice and f': {advice}'}")
        self.table = table
        self.wanted = wanted
        self.found = found


class BeyondTheEnd(InvalidInput):
    """The checkpoint is beyond the end of `partition`: it is of another or a rebuilt index."""

    def __init__(self, partition: int, checkpoint: object, field: str = "from") -> None:
        """Make the error for a checkpoint beyond the end of a partition.

        Args:
            partition: number of the partition of the feed.
            checkpoint: the checkpoint that is beyond the end of the partition.
            field: name of the argument that holds the checkpoint.
        """
        super().__init__(
            field,
            f"{checkpoint} lies beyond the end of partition {partition}: a checkpoint of another index, or of "
            "one that has been rebuilt since",
        )
        self.partition = partition
        self.checkpoint = checkpoint


class ConflictError(EpochalError):
    """Another writer was first, and nothing was written: read again, and decide on the new state.

    Attributes:
        outcome: result that the `try_…` variant of the call returns instead: `Conflict`, `AggregateConflict`, or the
            `StoredState` that is ahead. None if the error is about several calls.

    Args:
        message: what the conflict is about.
    """

    def __init__(self, message: str, outcome: Any = None) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.capacity = getattr(outcome, "capacity", None)


class WrongExpectedVersion(ConflictError):
    """The stream is at version `actual` (0: perhaps no stream), not at the version that was expected.

    Args:
        stream: name of the stream.
        expected: version that the caller expected.
        actual: version of the stream.
    """

    def __init__(self, stream: str, expected: object, actual: int, outcome: Any = None) -> None:
        there = f"the stream is at version {actual}" if actual else "there is no event"
        super().__init__(f"{stream}: expected {expected}, but {there}", outcome)
        self.stream = stream
        self.expected = expected
        self.actual = actual


class StreamDeleted(ConflictError):
    """The stream was deleted at `version`; its name takes no more events, whatever version is expected.

    Args:
        stream: name of the stream.
        version: the stream's next index when it was deleted.
    """

    def __init__(self, stream: str, version: int, outcome: Any = None) -> None:
        super().__init__(f"{stream}: deleted at version {version}, takes no more events", outcome)
        self.stream = stream
        self.version = version


class ConditionUnmet(ConflictError):
    """Conditions of the writes at `places` in `also` do not hold, so nothing was appended.

    The `outcome` has, as `unmet`, the item that made each of these conditions fail.

    Args:
        places: positions in `also`, from 0, of the writes whose conditions do not hold.
        outcome: result that the `try_…` variant of the call returns instead.
    """

    def __init__(self, places: Any, outcome: Any = None) -> None:
        super().__init__(f"not appended: in also, the conditions at {places} do not hold", outcome)
        self.places = places


class Contended(ConflictError):
    """A command was decided on `attempts` times, and each time another writer changed the stream or events first.

    Args:
        stream: name of the stream, or what else was decided on.
        attempts: number of times that the decision was made, and each time another writer was faster.
    """

    def __init__(self, stream: str, attempts: int) -> None:
        super().__init__(f"{stream}: overtaken by other writers at each of {attempts} attempts")
        self.stream = stream
        self.attempts = attempts


class EventsPruned(EpochalError, LookupError):
    """A read or state needs the events of `stream` from index `needed` on, but some of them have been pruned.

    Those below `low_water` are gone.

    `because` in the message says what they are needed for, and what to do.

    Args:
        stream: name of the stream.
        needed: index from which on events are needed.
        low_water: index below which events are gone.
        because: what the events are needed for, and what to do; empty for nothing.
    """

    def __init__(self, stream: str, needed: int, low_water: int, because: str = "") -> None:
        words = f"{stream}: events from {needed} on are needed, those below {low_water} are pruned"
        super().__init__(f"{words}; {because}" if because else words)
        self.stream = stream
        self.needed = needed
        self.low_water = low_water


class GroupMissing(EpochalError, LookupError):
    """No reaction with the name `group` has a checkpoint in this index.

    Args:
        group: name of the consumer group.
    """

    def __init__(self, group: str) -> None:
        super().__init__(
            f"{group}: no reaction of this name has begun here; `epochal index status --all-groups` tells which have"
        )
        self.group = group


class UnknownType(EpochalError, LookupError):
    """The stream holds, at `index`, an event or unfold of a type that the codec does not know.

    Args:
        stream: name of the stream.
        index: index of the event in its stream, or version of the unfold.
        kind: type of the event or unfold.
    """

    def __init__(self, stream: str, index: int, kind: str) -> None:
        super().__init__(f"{stream}: the codec does not know type {kind} (index {index})")
        self.stream = stream
        self.index = index
        self.kind = kind


class SubjectForgotten(EpochalError, LookupError):
    """The subject was forgotten: its key was destroyed, and it gets no new one.

    Args:
        subject: name of the subject.
    """

    def __init__(self, subject: str) -> None:
        super().__init__(f"{subject}: forgotten, nothing more is sealed for it")
        self.subject = subject


class OutcomeUndetermined(EpochalError):
    """Whether an append was applied is unknown: its response was lost, and events that would show it were pruned.

    Args:
        stream: name of the stream of the append.
        version: index of the first event that the append would have written.
    """

    def __init__(self, stream: str, version: int) -> None:
        super().__init__(
            f"{stream}: the outcome of the append at version {version} can no longer be determined"
        )
        self.stream = stream
        self.version = version


class CorruptData(EpochalError):
    """Stored data break a rule of the stored formats; they are neither repaired silently nor passed on.

    Attributes:
        missing: number of an event that an aggregate's head counts, but that its journal lacks; None for other faults.
    """

    missing: int | None = None


class UnknownEncoding(CorruptData):
    """A body is stored under an encoding that this version does not know.

    Args:
        encoding: number of the encoding.
    """

    def __init__(self, encoding: int) -> None:
        super().__init__(f"unknown body encoding {encoding}")
        self.encoding = encoding


class MissingBody(EpochalError, LookupError):
    """The object that a claim check names is not in the bucket.

    Args:
        key: key of the object in the bucket.
    """

    def __init__(self, key: str) -> None:
        super().__init__(f"the body {key} is not in the bucket")
        self.key = key


class MissingTable(EpochalError, LookupError):
    """A table named by the settings does not exist in this account and region.

    Attributes:
        table: name of the table.
        where: region and address of the database; empty if there is none, as in memory.
    """

    def __init__(self, table: str, where: str = "") -> None:
        place = f"in {where}" if where else "here"
        super().__init__(
            f"table {table} does not exist {place}: deploy first, or check the settings and the region"
        )
        self.table = table
        self.where = where


class Misconfigured(EpochalError):
    """The AWS configuration of this process has a fault: `what` is wrong, and `how` says how to fix it.

    Nothing was sent.

    Args:
        what: the setting that is wrong, and what is wrong with it.
        how: what to do about it.
    """

    def __init__(self, what: str, how: str) -> None:
        super().__init__(f"{what}: {how}")
        self.what = what
        self.how = how


class InvalidRequest(EpochalError):
    """AWS, or boto before it, refused the request `action` as malformed; nothing was written.

    If input and settings are right, this is a defect of Epochal, or a limit that AWS has introduced since.

    Args:
        action: operation of the AWS API.
        code: AWS's code for the error.
        message: AWS's message; may be empty.
    """

    def __init__(self, action: str, code: str, message: str) -> None:
        super().__init__(f"{action} was refused as malformed: {code}" + (f": {message}" if message else ""))
        self.action = action
        self.code = code
        self.message = message


class MissingBucket(EpochalError, LookupError):
    """A bucket named by the settings does not exist.

    Args:
        bucket: name of the bucket.
    """

    def __init__(self, bucket: str) -> None:
        super().__init__(
            f"bucket {bucket} does not exist here: deploy first, or check the settings and the region"
        )
        self.bucket = bucket


class Refused(EpochalError, PermissionError):
    """AWS denied the request; `action` is what was attempted.

    Args:
        action: operation that was attempted.
        reason: AWS's message.
    """

    def __init__(self, action: str, reason: str) -> None:
        super().__init__(f"{action} was denied: {reason}")
        self.action = action


class DeniedBody(Refused):
    """The claim check of a body names an object, `key`, outside the place for bodies, which may not be read.

    A retry does not help.

    Args:
        key: key of the object in the bucket.
        reason: why it may not be read.
    """

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"GetObject of {key}", reason)
        self.key = key


class Unavailable(EpochalError, TimeoutError):
    """The store could not be reached, or kept throttling, for as long as the caller allowed.

    `maybe_applied` is true if a write was under way whose response was lost: it may have been applied, or may still be.
    Repeating the call with the same idempotency key is safe. Where AWS denies or refuses the request that would find
    out, that error is the `__cause__`.

    Args:
        cause: the failure of the last attempt.
        maybe_applied: whether the failed call may have written something, or may still do so.
    """

    def __init__(self, cause: str, *, maybe_applied: bool = False) -> None:
        super().__init__(f"the store is unavailable: {cause}")
        self.cause = cause
        self.maybe_applied = maybe_applied


class NotTried(Unavailable):
    """One of many appends, not sent because the time allowed for all of them was over before its turn."""

    def __init__(self) -> None:
        super().__init__("the time allowed was over before this was tried")


class KeyAhead(Unavailable):
    """An idempotency key, a UUIDv7, was made more than five minutes ahead of this clock: nothing was written.

    One of the two clocks is wrong. A repeat with the same key is taken once the difference is five minutes or less.

    Attributes:
        seconds: number of seconds by which the key's time is ahead of this clock.
    """

    def __init__(self, seconds: int) -> None:
        super().__init__(
            "idempotency_key contains a time more than five minutes in the future, "
            f"{seconds:,} seconds: set the clocks, and repeat the call with the same key"
        )
        self.seconds = seconds


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and its causes, each once, even if the chain is a ring."""
    met: set[int] = set()
    while error is not None and id(error) not in met:
        met.add(id(error))
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


# Extras: what they bring is imported where it is used, and what is missing is told with the command that brings it.


@contextmanager
def brought_by(extra: str, what: str, *packages: str) -> Iterator[None]:
    """Turn failed imports of `packages` in the block into errors that name the extra to install.

    Args:
        extra: name of the extra.
        what: feature that needs the packages, for the message.
        packages: names of the packages that the extra installs.

    Raises:
        ModuleNotFoundError: a package is missing. For a package of the extra, the message says what to install; for any
            other package the error is unchanged.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in packages:
            raise
        how = f"{what} need {error.name}, which an extra installs: pip install 'epochal[{extra}]'"
        raise ModuleNotFoundError(how, name=error.name) from error


def __dir__() -> list[str]:
    return sorted(name for name, value in globals().items() if _is_error(value))


def _is_error(value: object) -> bool:
    """Return whether a value of this module is one of its error classes."""
    return isinstance(value, type) and issubclass(value, EpochalError)
