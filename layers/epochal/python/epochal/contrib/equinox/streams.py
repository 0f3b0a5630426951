"""Named streams as tips and calves: what the store asks of the layout (see `layout.streams`), and opening them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from epochal.contrib.equinox import EquinoxOptions, append, port, pruning
from epochal.contrib.equinox.append import ByCost, Calving, Result, calving_of
from epochal.contrib.equinox.port import ARCHIVE, TIPS
from epochal.deployment import Deployment
from epochal.dynamo.stores import HERE, Place
from epochal.errors import InvalidInput
from epochal.index.tip import StoredSpan, Tip, TipCursor, load_tip, unfolds_size, write_unfold
from epochal.index.tip_append import ROOM, TipOrToken, WireBatch, batch_of
from epochal.layout import streams
from epochal.layout.once import KeyRecord
from epochal.layout.streams import Answer, EncodedUnfold, ReadPart
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.events import Ticks, unix_seconds
from epochal.model.versions import ExpectedVersion
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
    """Streams as tips and calves.

    Attributes:
        calving: when events leave the Tip.
    """

    calving: Calving = field(default_factory=ByCost)
    name = "tips"
    compress_from = 0
    decided = staticmethod(append.decided)
    stand = staticmethod(port.stand)
    prune = staticmethod(pruning.prune)
    delete = staticmethod(pruning.delete)
    begin_pruned = staticmethod(pruning.begin_pruned)
    archive = staticmethod(pruning.archive)
    keeps_unfolds = True
    keeps_ids = False

    def room(self, unfolds: Sequence[EncodedUnfold]) -> int:
        """Bytes that an append has beside these unfolds, in a Tip without other events."""
        return ITEM_BYTES - ROOM - unfolds_size(tuple(map(write_unfold, unfolds)))

    def append(
        self, table: str, batch: streams.Batch, expected: ExpectedVersion, key: str | None = None
    ) -> Steps[Answer[Tip]]:
        """See `append.append`, and of a keyed one `append.append_once`."""
        if key is None:
            return append.append(table, _in_wire_form(batch), expected, self.calving)
        record = KeyRecord.of(batch.stream, key, unix_seconds(batch.now))
        return append.append_once(table, _in_wire_form(batch), expected, self.calving, record)

    def told_by(self, key: str, now: Ticks) -> Ticks:  # noqa: ARG002  an append is known by its Tip's etag alone
        """None: a record bounds the search."""
        return streams.NEVER

    def is_new(self, known: TipOrToken, above: Ticks) -> None:
        """None: likewise."""

    def append_on(self, table: str, batch: streams.Batch, known: TipOrToken) -> Steps[Result]:
        """See `append.append_on`."""
        return append.append_on(table, _in_wire_form(batch), known, self.calving, repeatable=batch.keyed)

    def load(
        self,
        table: str,
        stream: str,
        *,
        consistent: bool = True,
        whole: bool = False,  # noqa: ARG002  what was calved is elsewhere
    ) -> Steps[Tip | None]:
        """The Tip."""
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
        """See `port.begin`."""
        return port.begin(table, stream, start, forward=forward)

    def advance(
        self, table: str, cursor: TipCursor, limit: int | None, *, consistent: bool = True
    ) -> Steps[ReadPart[StoredSpan, TipCursor]]:
        """See `port.advance`. Equinox applications may prune the stream."""
        return port.advance(table, cursor, limit, shared=True, consistent=consistent)


def _in_wire_form(batch: streams.Batch) -> WireBatch:
    return batch_of(
        batch.stream,
        batch.events,
        batch.unfolds,
        etag=batch.etag,
        append_id=batch.append_id,
        keyed=batch.keyed,
    )


def opened(deployment: Deployment, calving: Calving | None = None) -> Streams:
    """The streams of a deployment that are stored as tips; `calving` wins over what the settings say."""
    return tips_of(deployment.settings, deployment.driver, deployment.codec, calving)


def tips_of(settings: Settings, driver: Driver, codec: BodyCodec, calving: Calving | None = None) -> Streams:
    """The same, and their archive, if there is one."""
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
    """Named streams in a table of the `tips` layout.

    Args:
        bucket: of bodies too large for an item; without one they are refused.
        calving: when events leave the Tip; None for the cheapest, or with `equinox` for Equinox's own rule.
        equinox: Equinox applications use the table too. Calves are then written in one transaction with the Tip, at
            32 KiB of events, and no stream keeps a tombstone.

    Raises:
        InvalidInput: `calving` in two steps, which Equinox cannot live with.
    """
    if equinox and calving is not None and calving.mode != "transactional":
        raise InvalidInput("calving", "must be transactional where Equinox applications use the table too")
    return opened(place.opened(Settings.of(tips_table=table, bucket=bucket, equinox=equinox)), calving)


def memory_tips(tables: MemoryTables | None = None) -> Streams:
    """A store of streams in memory that are stored as tips, with a bucket."""
    from epochal.testing.stores import memory_deployment  # noqa: PLC0415  layers are without it

    return opened(memory_deployment(tables))
