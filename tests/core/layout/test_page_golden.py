"""Stored bytes as they were first written. Where one of these fails, the format has changed; what is stored is lost.

Compressed contents are only read, not written: a later brotli may find shorter ones.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from epochal.codec.bodies import BROTLI, DIRECT, EMPTY, Encoded, encode_claim
from epochal.errors import CorruptData, UnknownEncoding
from epochal.layout.streams import EncodedEvent, EncodedUnfold
from epochal.model.bodies import Claim
from epochal.model.moments import Ticks, parse_time
from epochal.pages.frames import (
    Frame,
    Unfolds,
    pack_events,
    read_frame,
    read_unfolds,
    stamp_of,
    write_events,
    write_unfolds,
)
from epochal.pages.items import Page, read_page, write_page
from epochal.pages.tags.entries import Label, read_label

MOMENT = "2026-11-22T08:00:00.1234567+00:00"
NOW = parse_time(MOMENT)
STAMP = stamp_of(NOW, bytes.fromhex("0123456789abcdef"))

EVENTS = (
    EncodedEvent(type="ItemAdded", data=Encoded(DIRECT, b'{"sku":"A-1","quantity":2}'), timestamp=MOMENT),
    EncodedEvent(
        type="NoteTaken",
        data=encode_claim(Claim(key="bodies/ab", sha256="ab", size=500_000, encoding=2)),
        meta=Encoded(DIRECT, b'{"by":"desk"}'),
        timestamp="2026-11-22T07:59:59.0000000+00:00",
        correlation_id="visit-7",
        causation_id="café",
    ),
    EncodedEvent(
        type="Moved",
        data=Encoded(BROTLI, bytes.fromhex("0b028061626303")),
        timestamp="1969-12-31T23:59:59.9999999+00:00",
    ),
)
AS_THEY_ARE = bytes.fromhex(
    "00"  # as it is
    "08df486e9b6ed687"  # time
    "0123456789abcdef"
    "03"  # events
    "00094974656d4164646564"  # nothing but type
    "1a7b22736b75223a22412d31222c227175616e74697479223a327d"  # and data
    "1f094e6f746554616b656e"  # metadata, time, both ids, encoded data
    "80a6efb0949ee43f"  # since 1970
    "0776697369742d37"
    "05636166c3a9"
    "403d7b226b6579223a22626f646965732f6162222c22736861323536223a226162222c226279746573223a3530303030302c22656e636f64"
    "696e67223a327d"
    "0d7b226279223a226465736b227d"
    "12054d6f766564"  # time, encoded data
    "81a6efb0949ee43f"  # before the one before
    "02070b028061626303"
)

TAGGED = (
    EncodedEvent(type="Left", data=EMPTY, timestamp=MOMENT),
    EncodedEvent(
        type="Enrolled",
        data=Encoded(DIRECT, b"{}"),
        meta=Encoded(DIRECT, b"m"),
        timestamp=MOMENT,
        label=Label(number=1, others=("course:1", "term:2")).encoded().data,
    ),
)
WITH_TAGS = bytes.fromhex(
    "0008df486e9b6ed6870123456789abcdef02"
    "00044c65667400"
    "4108456e726f6c6c6564027b7d016d"  # metadata, label
    "13000102"  # of 19 bytes: no flags, its place in the append, two tags
    "08636f757273653a31"
    "067465726d3a32"
)

ALIKE = tuple(
    EncodedEvent(
        type="Delayed", data=Encoded(DIRECT, b'{"flight":"AA1141","minutes":%d}' % k), timestamp=MOMENT
    )
    for k in range(4)
)
COMPRESSED = bytes.fromhex(
    "0208df486e9b6ed6870123456789abcdef04"
    "1ba3000004ca6d6b2b51b86cf0d5b43630452d49061b70009643a0cf3cd96d65da29e6e76d09bded53730932a52d3a8e05310a46844c5701"
)
OF_ENCODING_3 = bytes.fromhex(
    "0308df486e9b6ed6870123456789abcdef04"
    "6bbebbe1"  # the id of a dictionary
    "381f307d3132337d0530955279b125beacb44d2b"
)

UNFOLDS = (
    EncodedUnfold(version=300, type="Cart", data=Encoded(DIRECT, b'{"items":{"A-1":2}}'), timestamp=MOMENT),
    EncodedUnfold(
        version=300,
        type="Total",
        data=Encoded(DIRECT, b""),
        meta=Encoded(DIRECT, b"m"),
        timestamp="2026-11-22T08:00:00.0000000+00:00",
    ),
)
KEPT = bytes.fromhex(
    "00"
    "02"  # unfolds
    "ac02"  # version 300
    "08df486e9b6ed687"
    "000443617274"
    "137b226974656d73223a7b22412d31223a327d7d"
    "0305546f74616c8080b4ba949ee43f00016d"
)


def test_events_as_they_are_are_these_bytes() -> None:
    frame = read_frame(AS_THEY_ARE)

    assert (frame.stamp, frame.count) == (STAMP, 3)
    assert frame.events() == (EVENTS[0]._replace(append_id=STAMP), *EVENTS[1:])
    content = Encoded(DIRECT, write_events(EVENTS, NOW))
    assert Frame(STAMP, 3, *content).binary() == AS_THEY_ARE


def test_an_event_with_tags_in_a_named_stream_is_these_bytes() -> None:
    frame = read_frame(WITH_TAGS)

    assert frame.events() == (TAGGED[0]._replace(append_id=STAMP), TAGGED[1]._replace(stamp=STAMP))
    assert read_label(Encoded(DIRECT, TAGGED[1].label)).others == ("course:1", "term:2")
    content = Encoded(DIRECT, write_events(TAGGED, NOW))
    assert Frame(STAMP, 2, *content).binary() == WITH_TAGS


def test_events_under_brotli_are_read_from_these_bytes() -> None:
    frame = read_frame(COMPRESSED)

    assert frame.events() == (ALIKE[0]._replace(append_id=STAMP), *ALIKE[1:])
    assert pack_events(ALIKE, NOW).encoding == BROTLI


def test_a_frame_of_the_retired_encoding_3_is_refused_with_the_page_that_holds_it() -> None:
    with pytest.raises(UnknownEncoding, match="unknown body encoding 3"):
        read_frame(OF_ENCODING_3)
    item = write_page(Page(stream="Cart-1", index=7, version=11, frames=(Frame(STAMP, 4, DIRECT, b""),)))
    with pytest.raises(CorruptData, match="^Cart-1: page 7: unknown body encoding 3$"):
        read_page({**item, "f": {"L": [{"B": OF_ENCODING_3}]}})


def test_unfolds_are_these_bytes() -> None:
    assert read_unfolds(KEPT).unfolds() == UNFOLDS
    content = Encoded(DIRECT, write_unfolds(UNFOLDS, NOW))
    assert Unfolds(version=300, moment=NOW, count=2, content=content).binary() == KEPT


def test_a_page_is_this_item() -> None:
    later = stamp_of(Ticks(NOW + 1), bytes(8))
    item = {
        "p": {"S": "Cart-1"},
        "i": {"N": "297"},
        "n": {"N": "304"},
        "r": {"N": "639309312001234568"},
        "f": {"L": [{"B": AS_THEY_ARE}]},
        "u": {"B": KEPT},
        "x": {"N": "1"},
        "z": {"N": "1"},
        "l": {"N": "302"},
        "w": {"B": later},
    }
    page = read_page(item)

    assert write_page(page) == item
    assert page == Page(
        stream="Cart-1",
        index=297,
        version=304,
        frames=(read_frame(AS_THEY_ARE),),
        unfolds=KEPT,
        full=True,
        deleted=True,
        low_water=302,
        stamp=later,
    )
    assert page.etag == "0000012900000000" + "08df486e9b6ed688"
    assert replace(page, deleted=False).etag == "0000012980000000" + "08df486e9b6ed688"
