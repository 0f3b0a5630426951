"""Golden vectors of the pages format: items, and the events that they hold, for readers in other languages.

    python -m tests.vectors.pages      adds the vectors that docs/reference/pages-vectors.json lacks

A vector that is in the file is never written again: items that were once written must be readable for ever, also those
that today's writer would write in another way. `docs/reference/formats.md` says how to read the file.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, Final

import brotli

from epochal import Event, Query, QueryItem, StreamAppend, Unfold
from epochal.codec.bodies import BROTLI, DEFLATE, DIRECT, Encoded
from epochal.codec.bucket_bodies import PREFIX
from epochal.model.bodies import Claim
from epochal.model.events import Recorded
from epochal.model.expected_version import ANY
from epochal.model.stream_names import TAG_STREAMS
from epochal.plan.values import Item
from epochal.store.bulk import Bulk, BulkAppend
from epochal.store.reading import StreamState
from epochal.store.streams import Streams
from epochal.store.tagged_pages import TaggedEvents
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import MemoryBucket, memory_deployment, memory_tables

FILE: Final = Path(__file__).resolve().parents[2] / "docs" / "reference" / "pages-vectors.json"

BEGUN: Final = 1_767_322_800_000_000_000
"""Nanoseconds of the first write: 2026-01-02T03:00:00Z."""

TABLE: Final = "streams"

Shown = dict[str, Any]


@dataclass
class World:
    """A store in memory whose clock and random bytes are the same at each run."""

    tables: MemoryTables = field(default_factory=memory_tables)
    bucket: MemoryBucket = field(default_factory=MemoryBucket)
    ticks: Iterator[int] = field(default_factory=lambda: count(BEGUN, 1_000_000_000))
    numbers: Iterator[int] = field(default_factory=count)

    @property
    def streams(self) -> Streams:
        deployment = replace(
            memory_deployment(self.tables, tagged_types=("Defined",), tagged_everything=True),
            bucket=self.bucket,
        )
        return replace(deployment.streams, now=lambda: next(self.ticks), fresh=self._fresh)

    @property
    def tagged(self) -> TaggedEvents:
        return self.streams.tagged

    def append_encoded(self, stream: str, events: list[Event], **bodies: Any) -> None:
        """Append events whose data or metadata are stored under an encoding that the writer would not choose."""
        streams = self.streams
        batch = streams.batch(stream, events, None)
        encoded = tuple(event._replace(**bodies) for event in batch.events)
        streams.driver.run(streams.layout.append(streams.table, replace(batch, events=encoded), ANY, None))

    def _fresh(self, size: int) -> bytes:
        return hashlib.sha256(f"random {next(self.numbers)}".encode()).digest()[:size]


def shown_items(items: Iterable[Item]) -> list[Shown]:
    """Return items as DynamoDB JSON, binary values in base64, as exports and the command line of AWS have them."""
    return [json.loads(json.dumps(item, default=lambda value: b64encode(value).decode())) for item in items]


def shown_event(event: Recorded) -> Shown:
    """Return an event in a form for any language; fields without a value are left out."""
    fields: Shown = {
        "stream": event.stream,
        "index": event.index,
        "type": event.type,
        "timestamp": event.timestamp,
        "data64": b64encode(event.content).decode(),
        "meta64": b64encode(event.meta).decode() if isinstance(event.meta, bytes) else "",
        "correlationId": event.correlation_id,
        "causationId": event.causation_id,
        "tags": list(event.tags),
        "id": event.id,
        "place": event.place,
    }
    return {name: value for name, value in fields.items() if name in ("stream", "index") or value}


def shown_stream(state: StreamState, events: Iterable[Recorded]) -> Shown:
    """Return a named stream: where it is, its unfolds and its events."""
    return {
        "version": state.version,
        "deleted": state.deleted,
        "lowWater": state.low_water,
        "unfolds": [
            {
                "version": unfold.version,
                "type": unfold.type,
                "timestamp": unfold.timestamp,
                "data64": b64encode(unfold.content).decode(),
            }
            for unfold in state.unfolds
        ],
        "events": [shown_event(event) for event in events],
    }


def vector_of(world: World) -> Shown:
    """Return what is in a world: its items, the bodies in its bucket, its streams, and its tags with their events."""
    items = [*world.tables.items(TABLE)]
    names = sorted({item["p"]["S"] for item in items})
    streams, tags = dict[str, Shown](), dict[str, list[Shown]]()
    for name in names:
        if name.startswith(f"{TAG_STREAMS}$") or name == TAG_STREAMS:
            continue
        if name.startswith(TAG_STREAMS):
            tag = name.removeprefix(TAG_STREAMS)
            seen = world.tagged.read(Query(items=(QueryItem(tags=(tag,)),)))
            tags[tag] = [shown_event(event) for event in seen.events]
        elif not name.startswith("$"):
            state = world.streams.load(name)
            assert state is not None
            streams[name] = shown_stream(state, world.streams.read(name))
    bodies = {key: b64encode(content).decode() for key, content in world.bucket.bodies.objects.items()}
    vector: Shown = {"items": shown_items(items), "streams": streams}
    return {**vector, **({"tags": tags} if tags else {}), **({"bodies": bodies} if bodies else {})}


def _text(number: int, size: int = 200) -> bytes:
    """Return JSON that brotli makes smaller."""
    return json.dumps({"n": number, "text": f"event number {number} " * (size // 16)}).encode()


def _noise(number: int, size: int) -> bytes:
    """Return bytes that no encoding makes smaller."""
    return b"".join(hashlib.sha256(f"{number} {part}".encode()).digest() for part in range(size // 32))


def one_small_event(world: World) -> None:
    """One event in a frame that is stored as it is."""
    world.streams.append("Plain-1", [Event(type="A", data=b"{}")])


def several_appends(world: World) -> None:
    """Frames of one event and of several, some of them under brotli."""
    for number in range(3):
        world.streams.append("Plain-1", [Event(type="Opened", data=_text(number))])
    world.streams.append("Plain-1", [Event(type=f"T{number}", data=b'{"n":1}') for number in range(40)])


def bodies_of_all_kinds(world: World) -> None:
    """Empty bodies, JSON, bytes, and types and bodies whose lengths take two bytes."""
    bodies = (b"", b"null", b"\x00\xff", "ü€".encode(), b"x" * 127, b"x" * 128, _noise(1, 320))
    world.streams.append("Bodies-1", [Event(type="A", data=body) for body in bodies])
    world.streams.append("Bodies-1", [Event(type="T" * 300, data=b"1", meta=b'{"user":"ada"}')])
    world.streams.append("Bodies-1", [Event(type="A", meta=_noise(2, 160))])


def times_and_ids(world: World) -> None:
    """Times of their own: before 1970, of 100 ns, going back; correlation and causation ids; ids of events."""
    own = ("1969-12-31T23:59:59.9999999Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.9999999Z")
    times = (*own, None, "2013-01-01T05:17:00-05:00", "2013-01-01T05:17:00.1234567-05:00")
    world.streams.append("Times-1", [Event(type="A", data=b"1", timestamp=time) for time in times])
    world.streams.append(
        "Times-1",
        [
            Event(type="A", correlation_id="c-1"),
            Event(type="A", causation_id="e-ü"),
            Event(
                type="A", correlation_id="c", causation_id="e", meta=b"{}", timestamp="2020-02-29T00:00:00Z"
            ),
        ],
    )
    ids = ("1f0c5f8e-6c1b-4b6a-9e3f-0d6b9f3f8a11", "ffffffff-ffff-4fff-bfff-ffffffffffff")
    world.streams.append("Times-2", [Event(type="A", data=b"1", id=event_id) for event_id in ids])


def encoded_bodies(world: World) -> None:
    """Data and metadata under the encodings of §1: deflate, which may end with a flush, and brotli."""
    for number, stream in enumerate(("Encoded-1", "Encoded-2")):
        body = _text(number)
        deflater = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        packed = deflater.compress(body) + deflater.flush()
        flushed = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        cut = flushed.compress(body) + flushed.flush(zlib.Z_SYNC_FLUSH)
        world.append_encoded(stream, [Event(type="A")], data=Encoded(DEFLATE, packed))
        world.append_encoded(stream, [Event(type="A")], data=Encoded(DEFLATE, cut))
        world.append_encoded(stream, [Event(type="A")], data=Encoded(BROTLI, brotli.compress(body)))
        meta = Encoded(BROTLI, brotli.compress(b'{"user":"' + b"ada" * 40 + b'"}'))
        world.append_encoded(stream, [Event(type="A", meta=b"1")], meta=meta)


def bodies_in_the_bucket(world: World) -> None:
    """Bodies in the bucket, named by claim checks: as they are, and under brotli."""
    body = _text(3)
    for encoding, content in ((DIRECT, body), (BROTLI, brotli.compress(body))):
        digest = hashlib.sha256(content).hexdigest()
        claim = Claim(key=f"{PREFIX}{digest}", sha256=digest, size=len(content), encoding=encoding)
        world.bucket.bodies.put(claim, content)
        world.streams.append("Large-1", [Event(type="A", data=claim), Event(type="B", data=b"2")])


def many_pages(world: World) -> None:
    """A stream of several pages, all but the last full."""
    for number in range(12):
        world.streams.append("Pages-1", [Event(type="A", data=_noise(number, 512)) for _ in range(2)])


def unfolds(world: World) -> None:
    """Unfolds beside events, replaced, alone, removed, and on an earlier page."""
    streams = world.streams
    streams.append("Unfolds-1", [Event(type="A")], unfolds=[Unfold(type="S", data=b'{"n":1}')])
    streams.append(
        "Unfolds-1", [], unfolds=[Unfold(type="S", data=b'{"n":2}'), Unfold(type="T", data=_text(2))]
    )
    streams.append("Unfolds-2", [Event(type="A")], unfolds=[Unfold(type="S", data=b"1")])
    streams.append("Unfolds-2", [Event(type="A")], unfolds=[])
    streams.append("Unfolds-3", [], unfolds=[Unfold(type="S", data=b"1")])
    streams.append("Unfolds-4", [Event(type="A")], unfolds=[Unfold(type="S", data=_noise(4, 1_024))])
    for number in range(8):
        streams.append("Unfolds-4", [Event(type="A", data=_noise(number, 1_024))])


def pruned(world: World) -> None:
    """Streams whose first events are gone, within a page and over pages, and one that has none left."""
    streams = world.streams
    for name in ("Pruned-1", "Pruned-2", "Pruned-3"):
        for number in range(8):
            streams.append(name, [Event(type=f"T{number}", data=_noise(number, 1_024))])
    streams.prune("Pruned-1", 3)
    streams.prune("Pruned-2", 8)
    streams.delete("Pruned-3", leave_open=True)
    streams.append("Pruned-3", [Event(type="Again")])


def deleted(world: World) -> None:
    """A stream with a tombstone."""
    world.streams.append("Deleted-1", [Event(type="A", data=b"1"), Event(type="B")])
    world.streams.delete("Deleted-1")


def keyed(world: World) -> None:
    """Appends under a key that ends with a UUIDv7, and under another one, which has a record."""
    streams = world.streams
    streams.append("Keyed-1", [Event(type="A")], idempotency_key="order-019b7c1c-6f00-7000-8000-000000000001")
    streams.append("Keyed-1", [Event(type="B")], idempotency_key="order-2")


def joined(world: World) -> None:
    """Several appends in one write, with a frame each."""
    appends = [BulkAppend(stream="Joined-1", events=[Event(type=f"T{number}")]) for number in range(3)]
    Bulk(world.streams, at_once=1).append(appends)


def several_streams(world: World) -> None:
    """One append to two streams, with one stamp."""
    appends = [
        StreamAppend(stream=name, events=[Event(type="Moved", data=b"5")]) for name in ("Two-a", "Two-b")
    ]
    world.streams.append_all(appends)


def tags_of_streams(world: World) -> None:
    """Events of named streams that carry tags, with metadata and without, small and large."""
    world.streams.append("Order-1", [Event(type="Placed", data=b"1", tags=("customer:7", "shop:1"))])
    world.streams.append(
        "Order-1",
        [
            Event(type="Paid", data=_text(1), meta=b'{"user":"ada"}', tags=("customer:7",)),
            Event(type="Noted", data=b"plain"),
            Event(type="Sent", data=_noise(5, 640), tags=("customer:7", "shop:1", "ü")),
        ],
    )


def tags_alone(world: World) -> None:
    """Tagged events without a stream: several tags, ids that the caller chose, metadata, types that are queried."""
    ids = ("1f0c5f8e-6c1b-4b6a-9e3f-0d6b9f3f8a11", "2f0c5f8e-6c1b-4b6a-9e3f-0d6b9f3f8a12")
    world.tagged.append([Event(type="Defined", data=b"1", tags=("course:1",), id=ids[0])])
    world.tagged.append(
        [
            Event(
                type="Subscribed",
                data=_text(2),
                meta=b'{"by":"bob"}',
                tags=("student:7", "course:1"),
                id=ids[1],
            ),
            Event(type="Left", data=b"", tags=("course:1", "student:7")),
        ]
    )


WRITERS: Final[tuple[Callable[[World], None], ...]] = (
    one_small_event,
    several_appends,
    bodies_of_all_kinds,
    times_and_ids,
    encoded_bodies,
    bodies_in_the_bucket,
    many_pages,
    unfolds,
    pruned,
    deleted,
    keyed,
    joined,
    several_streams,
    tags_of_streams,
    tags_alone,
)


def generated(writer: Callable[[World], None]) -> Shown:
    """Write a world, and return its vector."""
    world = World()
    writer(world)
    return vector_of(world)


def named(writer: Callable[[World], None]) -> str:
    """Return the name of the vector that a writer writes."""
    return writer.__name__.replace("_", " ")


def kept() -> dict[str, Shown]:
    """Return the vectors of the file by name."""
    return json.loads(FILE.read_text("utf-8"))["vectors"] if FILE.exists() else {}


def main() -> None:
    """Add vectors to the file that it lacks."""
    vectors: Mapping[str, Shown] = kept()
    lacking = {named(writer): generated(writer) for writer in WRITERS if named(writer) not in vectors}
    text = json.dumps({"format": "pages", "vectors": {**vectors, **lacking}}, indent=1, ensure_ascii=False)
    FILE.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
