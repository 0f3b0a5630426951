"""What other event stores on DynamoDB were measured to cost: recorded figures, not measured again.

DynamoDB Local 1.25.1 with AWS's billing rules (transactional writes twice per item, indexes once), libraries as
published, one run: event-store-adapter-js 2.2.94, Castore's DynamoDB adapter 2.4.2, aett 3.4.1, eventsourcing-dynamodb
0.1.0, and a replica of Equinox DynamoStore 4.1.3's request pattern (Tip of 32 KiB, brotli bodies, unfold in the Tip),
which is not the library itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Rows = Mapping[str, Sequence[str]]

ADAPTER = "event-store-adapter-js"
CASTORE = "Castore"
AETT = "aett"
SOURCING = "eventsourcing-dynamodb"
EQUINOX = "Equinox pattern"

LOAD_AND_APPEND: Rows = {
    ADAPTER: ("6", "1", "2.9", "3.88", "5.79", "1457"),
    CASTORE: ("1.1", "1", "2", "0.81", "1.54", "472"),
    AETT: ("3", "2.3", "3", "2.16", "4.11", "2094"),
    f"{SOURCING} (no locking)": ("1", "0.6", "2", "0.70", "1.37", "617"),
    EQUINOX: ("2.1", "0.5", "2", "1.38", "2.49", "296"),
    "floor": ("1", "0.5", "1", "0.63", "0.63", ""),
}
"""Write units, read units, calls, $ a million; $ a million at 1 KB; bytes stored."""

LONG_STREAM: Rows = {
    ADAPTER: ("6", "9"),
    CASTORE: ("1.0", "unsupported"),
    AETT: ("3", "5"),
    SOURCING: ("1", "crashes"),
    EQUINOX: ("17.6", "17.8"),
}
"""Write units without and with a snapshot of 1 KB each time."""

BATCHES: Rows = {
    f"{ADAPTER} (no batches, 10 calls)": ("6",),
    CASTORE: ("2.1",),
    AETT: ("1.5",),
    f"{SOURCING} (not atomic)": ("1",),
    EQUINOX: ("0.3",),
}
"""Write units."""

REPLAY: Rows = {
    f"{ADAPTER} (cut off)": ("804", "128", ""),
    CASTORE: ("5,000", "1,279", "11.8k"),
    f"{AETT} (cut off)": ("795", "257", ""),
    SOURCING: ("5,000", "758", "13.1k"),
    EQUINOX: ("5,000", "362", "22.1k"),
    "bare boto3, on the machine of the rivals": ("5,000", "", "22.7k"),
}
"""Events returned, read units, events a second."""

CONTENTION: Rows = {
    ADAPTER: ("160", "1,844", "3,618"),
    CASTORE: ("160", "363", "3,247"),
    AETT: ("160", "344", "7,285"),
    f"{SOURCING} (loses events)": ("38", "0", "229"),
    EQUINOX: ("160", "6,715", "2,091"),
}
"""Events kept, wasted write units, read units."""
