"""What a writer expects of streams, the token that makes its next append one request, and how an append can end.

A version counts events: a stream of n events is at version n, and the next event gets index n. A token is a version
with the Tip's etag and the few figures that the calving rule needs, so that a writer that holds one need not read.
A position is the same for a query over events with tags: how far a read has seen each tag.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.kinds import must_be, must_be_whole

if TYPE_CHECKING:
    from epochal.model.events import Event, Recorded, Unfold


MAX_VERSION: Final = 2_147_483_646
"""Sort key 2147483647 is the Tip's, so indices end below it (FORMATS §1)."""

_TOKEN: Final = re.compile(
    r"(0|[1-9]\d{0,9})"
    r"(?:\.([0-9a-f]{32})\.(\d{1,7})\.(\d{1,7})\.(\d{1,7})\.(\d{1,7})\.(\d{1,7})"
    r"(?:\.(0|[1-9]\d{0,9})(?:\.([0-9a-f]{32}))?)?)?",
    re.ASCII,
)


class Expected(Enum):
    """Expected versions that need no number: any, no stream, or an existing stream. A stream exists once anything was
    written to it, even if only unfolds.
    """

    ANY = "any"
    NO_STREAM = "no_stream"
    STREAM_EXISTS = "stream_exists"


ANY: Final = Expected.ANY
"""Expected version that accepts any stream, existing or not; only a deleted one is refused."""
NO_STREAM: Final = Expected.NO_STREAM
"""Expected version of a stream to which nothing has been written yet."""
STREAM_EXISTS: Final = Expected.STREAM_EXISTS
"""Expected version of a stream to which something has been written, even if only unfolds."""


@dataclass(frozen=True, slots=True)
class AtVersion:
    """Expects that the stream holds exactly `version` events, as in `AtVersion(2)`.

    Unfolds may have changed meanwhile.

    Attributes:
        version: number of events that the stream must have, 0 or more.
    """

    version: int

    def __post_init__(self) -> None:
        """Check that the version is an integer within bounds."""
        if isinstance(self.version, bool):
            raise InvalidInput("version", "must be a number, not bool")
        must_be(int, self.version, "version", "a number")
        if not 0 <= self.version <= MAX_VERSION:
            raise InvalidInput(
                "expected", f"must be a version from 0 to {MAX_VERSION:,}, got {self.version:,}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """The exact state of a stream. An append that expects it is refused after any other write, of events or unfolds.

    Take it from an answer, and pass it back unchanged: its parts may change in a later release.

    Attributes:
        version: index of the stream's next event.
        etag: etag of the latest write to the head (the stream's last item); None if the token is only a version.
        size: number of bytes of the head (the stream's last item), accurate to a few bytes.
        carried: number of bytes of the events in the head (the stream's last item), included in `size`.
        unfolds: number of bytes of the unfolds in the head (the stream's last item), included in `size`.
        events: number of events in the head (the stream's last item).
        appends: number of appends whose events are in the head (the stream's last item).
        of: stream and table that the token belongs to. Set only on tokens that this process created, since others may
            be forged. Ignored when tokens are compared, and not part of the text.
        low_water: index of the first event that is not pruned, as far as the stream's last item shows. Ignored when
            tokens are compared.
        seal: signature by which the stage recognizes tokens that it created (`store.seals`); empty without one. Ignored
            when tokens are compared.
        refused: number of consecutive appends that had been refused when the token was made. Ignored when tokens are
            compared, and not part of the text.
    """

    version: int
    etag: str | None = None
    size: int = 0
    carried: int = 0
    unfolds: int = 0
    events: int = 0
    appends: int = 0
    of: str = field(default="", compare=False, repr=False)
    low_water: int = field(default=0, compare=False, repr=False)
    seal: str = field(default="", compare=False, repr=False)
    refused: int = field(default=0, compare=False, repr=False)

    def text(self) -> str:
        """Encode the token as text of at most 127 ASCII bytes, or as its version if it has no etag.

        The parts are `version.etag.size.carried.unfolds.events.appends`, then the low-water mark if there is one or a
        seal follows, then the seal.
        """
        if self.etag is None:
            return str(self.version)
        mark = f".{self.low_water}" if self.low_water or self.seal else ""
        return f"{self.bare}{mark}.{self.seal}" if self.seal else f"{self.bare}{mark}"

    @property
    def bare(self) -> str:
        """Text of the token without its optional last parts, the low-water mark (for pruning) and the seal (a
        signature). It identifies the stream's state.
        """
        figures = (self.version, self.etag, self.size, self.carried, self.unfolds, self.events, self.appends)
        return ".".join(map(str, figures))


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a tag's events have been read: how many, and the place of the last.

    Attributes:
        count: number of events that have been read.
        last: place (sortable text) of the last event that has been read.
        token: if the tag is a stream, the token with which an append on exactly that state takes one request; only a
            hint.
    """

    count: int = 0
    last: str = ""
    token: Token | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """How far a read has read the events of each tag; callers pass it back unchanged.

    `model.tags` gives it its text form. Positions with the same tags are comparable: a later one is behind in none of
    them.

    Attributes:
        seen: for each tag that guards the read, how far its events have been read: an append is refused if such a tag
            has got more events.
        heads: how far tags that are not in `seen` had come at the read: a hint that saves an append from reading them.
        items: digests of those query items that more than one of the tags in `seen` could guard, so that each item
            stays guarded by the same tag.
    """

    seen: Mapping[str, Reached] = field(default_factory=dict)
    heads: Mapping[str, Reached] = field(default_factory=dict)
    items: frozenset[str] = frozenset()

    def __le__(self, other: Position) -> bool:
        return self.seen.keys() == other.seen.keys() and all(
            reached.count <= other.seen[tag].count for tag, reached in self.seen.items()
        )


ExpectedVersion = Expected | AtVersion | Token
"""What a writer expects a stream's version to be; an append to a stream in another state is refused."""


def meets(expected: Expected | AtVersion, version: int | None) -> bool:
    """Return whether a stream at `version` (None: no stream) meets a writer's expectation."""
    match expected:
        case Expected.ANY:
            return True
        case Expected.NO_STREAM:
            return version is None
        case Expected.STREAM_EXISTS:
            return version is not None
        case AtVersion(version=required):
            return (version or 0) == required


def state_meets(expected: ExpectedVersion, version: int | None, etag: str | None) -> bool:
    """Return whether a stream at `version` with this etag (None: no stream) meets a writer's expectation."""
    if isinstance(expected, Token):
        return (version or 0) == expected.version and expected.etag in (None, etag)
    return meets(expected, version)


class Unread(Enum):
    """Marks a stream whose head has not been read."""

    UNREAD = "unread"


UNREAD: Final = Unread.UNREAD


def expected_head(expected: ExpectedVersion) -> Token | Unread | None:
    """Return what an expectation alone tells about the head: a token, None for no stream, or `UNREAD`."""
    if expected is NO_STREAM:
        return None
    return expected if isinstance(expected, Token) and expected.etag is not None else UNREAD


def version_of(head: Any) -> int:
    """Return the next index of a stream by its head or token; 0 for no stream."""
    return 0 if head is None else head.version


def check_expected(expected: object) -> None:
    """Raise `InvalidInput` unless a value is an expectation: anything else would always conflict."""
    must_be(
        (Expected, AtVersion, Token),
        expected,
        "expected",
        "ANY, NO_STREAM, STREAM_EXISTS, AtVersion(version=…) or a token",
    )
    if isinstance(expected, Token):
        must_be_whole(expected.version, "expected.version", 0, MAX_VERSION)


def parse_token(text: str, field: str = "If-Match") -> Token:
    """Decode the text of a token, or a plain version, as a token; raise `InvalidInput` naming `field`.

    Args:
        text: text of a token, or a plain version.
        field: name of the argument that holds the text, for error messages.
    """
    match = _TOKEN.fullmatch(text)
    if match is None or int(match[1]) > MAX_VERSION:
        raise InvalidInput(field, "must be a token that an append or load returned, or a version")
    if match[2] is None:
        return Token(version=int(match[1]))
    size, carried, unfolds, events, appends = map(int, match.groups()[2:7])
    return Token(
        version=int(match[1]),
        etag=match[2],
        size=size,
        carried=carried,
        unfolds=unfolds,
        events=events,
        appends=appends,
        low_water=int(match[8] or 0),
        seal=match[9] or "",
    )


# How an append can end. Match on all three: a conflict is an answer, not an accident (DESIGN §5.1).


@dataclass(frozen=True, slots=True)
class Capacity:
    """The DynamoDB capacity that a call consumed, retries and refused writes included.

    Bodies in the bucket are not included.

    Attributes:
        read: read capacity units as DynamoDB reports them, secondary indexes included; a store in memory counts only
            tables. A request whose response was lost reports none.
        write: write capacity units as DynamoDB reports them, secondary indexes included, with the same exceptions as
            `read`.
        requests: number of requests to DynamoDB, whether they succeeded or not.
    """

    read: float = 0.0
    write: float = 0.0
    requests: int = 0

    def __add__(self, other: Capacity) -> Capacity:
        """Return the capacity of two calls together."""
        return Capacity(
            read=self.read + other.read,
            write=self.write + other.write,
            requests=self.requests + other.requests,
        )


NOTHING: Final = Capacity()


NO_EVENTS: Final = Token(version=0)
"""The token of a stream that does not exist."""

_NOWHERE: Final = Position()


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """The result of an append that was applied, exactly once.

    `first`, `version` and `token` are of the stream that the call named, and 0 if it named none, or several. `events`,
    `position` and `versions` are of tags, and empty if the events have none.

    Attributes:
        first: index of the append's first event (equal to `version` if only unfolds were written).
        version: the stream's next index after this append: its events are `first` to `version - 1`.
        token: token of the stream's state after this append; the next append takes one request if it expects this
            token.
        events: the appended events that have tags, as they are stored.
        position: position to pass as `after` to the next append: that of this append's condition, moved on past the
            append; without a condition, the end of the tags of the appended events. If `replayed`, it may be older, and
            the next append may conflict.
        versions: for each tag of the appended events, the number of its events after this append; `ReadModel.wait_for`
            takes it, with the tag's name in the feed. If `replayed`, it may count later events too.
        streams: for an append to several streams, the result of each, by the stream's name.
        replayed: whether an earlier call, with the same idempotency key or the same event ids, had already made this
            append.
        capacity: capacity that this call consumed; if `replayed`, without that of the earlier call.
    """

    first: int = 0
    version: int = 0
    token: Token = NO_EVENTS
    events: tuple[Recorded, ...] = ()
    position: Position = _NOWHERE
    versions: Mapping[str, int] = field(default_factory=dict)
    streams: Mapping[str, Appended] = field(default_factory=dict)
    replayed: bool = False
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """The result of an append that wrote nothing: the stream, matching events or `also` conditions did not allow it.

    The stream is not at the expected version, or events that match the condition (`fail_if`) exist, or conditions of
    items in `also` do not hold.

    Attributes:
        version: the stream's next index; 0 if there is no stream.
        token: token of the stream's present state; None if there is no stream, or if the reason is another.
        deleted: whether the stream was deleted, and so takes no more events.
        refused: stored state that came back with the refusal; with `load(…, refused=conflict)` it is not read again.
        events: stored events that match the query of the condition (`fail_if`), in order of their places.
        position: position that includes `events`: pass it as `after` to append again, once these have been taken into
            account.
        more: whether more events match, which neither `events` nor `position` include; query `after` the position to
            read them.
        unmet: stored items whose conditions in `also` do not hold, by the index of the write in `also`; None in place
            of an item that does not exist.
        streams: for an append to several streams, the streams that were found not to be as expected, by name, each with
            its version and token. More streams may differ: the first ones found end the append. Empty if the reason is
            another.
        capacity: capacity that the attempt consumed.
    """

    version: int = 0
    token: Token | None = None
    deleted: bool = False
    refused: Any = field(default=None, compare=False, repr=False)
    events: tuple[Recorded, ...] = ()
    position: Position = _NOWHERE
    more: bool = False
    unmet: Mapping[int, Mapping[str, Any] | None] = field(default_factory=dict)
    streams: Mapping[str, Conflict] = field(default_factory=dict)
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Undetermined:
    """The result of an append that may or may not be applied: its response was lost, and its events may be pruned.

    The events from index `first` on, which would tell, have been pruned since; for an append to several `streams`, in
    every one of them.

    Attributes:
        first: index of the first event whose content would tell whether the append was applied.
        streams: for an append to several streams, the outcome of each, by the stream's name.
        capacity: capacity that the attempt consumed.
    """

    first: int = 0
    streams: Mapping[str, Undetermined] = field(default_factory=dict)
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


Outcome = Appended | Conflict | Undetermined
"""How an append ends: `Appended`, `Conflict` or `Undetermined`. Match on all three."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamAppend:
    """The append to one stream within a call that appends to several, with the arguments of `Streams.append`.

    Attributes:
        stream: name of the stream.
        events: events to append; may be empty if there are unfolds.
        unfolds: unfolds that replace the stored ones; None keeps the stored ones, an empty sequence removes them.
        expected: version that the stream is expected to have.
    """

    stream: str
    events: Sequence[Event] = ()
    unfolds: Sequence[Unfold] | None = None
    expected: ExpectedVersion = ANY
