"""Named streams as tips and calves: what the store asks of the layout (see `layout.streams`), and opening them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from epochal.contrib.equinox import EquinoxOptions, append, archiving, keyed_appends, port, pruning
from epochal.contrib.equinox.calving import ByCost, Calving, calving_of
from epochal.contrib.equinox.port import ARCHIVE, TIPS
from epochal.deployment import Deployment
from epochal.dynamo.stores import HERE, Place
from epochal.errors import InvalidInput
from epochal.index.calf_costs import ROOM
from epochal.index.tip import StoredSpan, Tip, TipCursor, load_tip, unfolds_size, write_unfold
from epochal.index.tip_append import TipOrToken
from epochal.index.wire_batch import WireBatch, batch_of
from epochal.layout import streams
from epochal.layout.key_records import KeyRecord
from epochal.layout.streams import EncodedUnfold, ReadPart
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.expected_version import ExpectedVersion
from epochal.model.moments import Ticks, unix_seconds
from epochal.model.outcomes import Outcome
from epochal.plan.limits import ITEM_BYTES
from epochal.plan.ops import Steps
from epochal.settings import Settings
from epochal.store.driver import Driver
from epochal.store.encoding import BodyCodec
from epochal.store.streams import Streams

if TYPE_CHECKING:
    from epochal.testing.memory import MemoryTables


@dataclass(frozen=True, slots=True, kw_only=True)
class Tips:
    """Layout of named streams as tips and calves, which the store of streams calls.

    Attributes:
        calving: rule that says when events leave the Tip.
    """

    calving: Calving = field(default_factory=ByCost)
    name = "tips"
    compress_from = 0
    decided = staticmethod(append.decided)
    stand = staticmethod(port.stand)
    prune = staticmethod(pruning.prune)
    delete = staticmethod(pruning.delete)
    begin_pruned = staticmethod(pruning.begin_pruned)
    archive = staticmethod(archiving.archive)
    keeps_unfolds = True
    keeps_ids = False

    def room(self, unfolds: Sequence[EncodedUnfold]) -> int:
        """Return the bytes that an append has beside these unfolds, in a Tip without other events."""
        return ITEM_BYTES - ROOM - unfolds_size(tuple(map(write_unfold, unfolds)))

    def append(
        self, table: str, batch: streams.Batch, expected: ExpectedVersion, key: str | None = None
    ) -> Steps[Outcome]:
        """Append a batch at the expected version, under a key only once; return the outcome.

        See `append.append`, and for a keyed one `keyed_appends.append_once`.
        """
        if key is None:
            return append.append(table, _in_wire_form(batch), expected, self.calving)
        record = KeyRecord.of(batch.stream, key, unix_seconds(batch.now))
        return keyed_appends.append_once(table, _in_wire_form(batch), expected, self.calving, record)

    def moment_of_key(self, key: str, now: Ticks) -> Ticks:  # noqa: ARG002  an append is known by its Tip's etag alone
        """Return `NEVER`: a key has no moment here, as its record bounds the search for its append."""
        return streams.NEVER

    def is_new(self, known_head: TipOrToken, above: Ticks) -> None:
        """Return None: a key has no moment here, as its record bounds the search for its append."""

    def append_on(self, table: str, batch: streams.Batch, known_head: TipOrToken) -> Steps[Outcome]:
        """Append a batch on exactly the Tip that is known; see `append.append_on`."""
        return append.append_on(table, _in_wire_form(batch), known_head, self.calving, repeatable=batch.keyed)

    def load(
        self,
        table: str,
        stream: str,
        *,
        consistent: bool = True,
        whole: bool = False,  # noqa: ARG002  what was calved is elsewhere
        recent: bool = False,  # noqa: ARG002  likewise
    ) -> Steps[Tip | None]:
        """Read the Tip of a stream; None if there is no such stream."""
        return load_tip(table, stream, consistent=consistent)

    def begin(
        self,
        table: str,
        stream: str,
        start: int | None,
        *,
        forward: bool,
        limit: int | None = None,  # noqa: ARG002  a Tip is read first, whatever is wanted
    ) -> Steps[TipCursor | None]:
        """Read the Tip of a stream and return a cursor before event `start`; None if there is no such stream.

        See `port.begin`.
        """
        return port.begin(table, stream, start, forward=forward)

    def advance(
        self, table: str, cursor: TipCursor, limit: int | None, *, consistent: bool = True
    ) -> Steps[ReadPart[StoredSpan, TipCursor]]:
        """Read the next part of a stream after a cursor; see `port.advance`.

        Equinox applications may prune the stream meanwhile.
        """
        return port.advance(table, cursor, limit, shared=True, consistent=consistent)


def _in_wire_form(batch: streams.Batch) -> WireBatch:
    """Encode a batch of events and unfolds in the form in which a Tip holds them."""
    return batch_of(
        batch.stream,
        batch.events,
        batch.unfolds,
        etag=batch.etag,
        append_id=batch.append_id,
        keyed=batch.keyed,
    )


def opened(deployment: Deployment, calving: Calving | None = None) -> Streams:
    """Open the store of a deployment's streams that are stored as tips.

    Args:
        calving: rule that says when events leave the Tip; None for that of the settings.
    """
    return tips_of(deployment.settings, deployment.driver, deployment.codec, calving)


def tips_of(settings: Settings, driver: Driver, codec: BodyCodec, calving: Calving | None = None) -> Streams:
    """Make the store of streams as tips, by settings, with their archive if there is one.

    Args:
        calving: rule that says when events leave the Tip; None for that of the settings.
    """
    archive = settings.table(ARCHIVE.kind)
    return Streams(
        driver=driver,
        table=settings.table(TIPS.kind),
        codec=codec,
        layout=Tips(calving=calving or calving_of(settings)),
        tombstones=not settings.of_plugin(EquinoxOptions).equinox,
        archive=Streams(driver=driver, table=archive, codec=codec, layout=Tips()) if archive else None,
    )


def open_tips(
    table: str,
    *,
    bucket: str = "",
    calving: Calving | None = None,
    equinox: bool = False,
    place: Place = HERE,
) -> Streams:
    """Open a store of named streams in a table of the `tips` layout.

    Args:
        table: name of the table.
        bucket: name of the bucket of bodies too large for an item; without a bucket they are refused.
        calving: rule that says when events leave the Tip; None for the cheapest, or with `equinox` for Equinox's own
            rule.
        equinox: whether Equinox applications use the table too. Calves are then written in one transaction with the
            Tip, at 32 KiB of events, and no stream keeps a tombstone.
        place: endpoint and region of the table.

    Raises:
        InvalidInput: `calving` is in two steps, which Equinox cannot handle.
    """
    if equinox and calving is not None and calving.mode != "transactional":
        raise InvalidInput("calving", "must be transactional if Equinox applications use the table too")
    return opened(place.opened(Settings.of(tips_table=table, bucket=bucket, equinox=equinox)), calving)


def memory_tips(tables: MemoryTables | None = None) -> Streams:
    """Open an in-memory store of streams in the `tips` layout, with an in-memory bucket for large bodies.

    Args:
        tables: tables to use; None creates new ones.
    """
    from epochal.testing.stores import memory_deployment  # noqa: PLC0415  layers are without it

    return opened(memory_deployment(tables))
