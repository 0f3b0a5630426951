"""What tagged events cost as pages: write units an event, over many appends under the same tags.

Units are what memory charges by AWS's rules, transactions twice. Events are JSON, alike as events of one type are;
each append is after the position of the one before, on the condition that nothing else has come.
"""

from __future__ import annotations

import json
import random
from typing import Final

from epochal.model.events import Event
from epochal.model.tags import Query, QueryItem
from epochal.testing.stores import memory_tagged_events

APPENDS: Final = 120

BOUNDS: Final = {0: 1.05, 1: 1.05, 2: 4.1, 3: 6.1}
"""Write units an event at most, by its tags."""

SIZES: Final = (300, 1_000)


def event(tags: tuple[str, ...], size: int, dice: random.Random) -> Event:
    """Return an event with a body of JSON of this size."""
    body = {"id": dice.randbytes(8).hex(), "amount": dice.randrange(10**6), "note": ""}
    words = ["paid", "on", "account", "late", "student", "course", "of", "physics", "term", "first"]
    while len(json.dumps(body)) < size:
        body["note"] = f"{body['note']} {dice.choice(words)}"
    return Event(type="StudentSubscribedToCourse", data=json.dumps(body).encode(), tags=tags)


def units(tags: int, size: int, appends: int = APPENDS) -> tuple[float, float]:
    """Return the write units and the requests of an event."""
    names = tuple(f"group{number}:{number:08}" for number in range(tags))
    dice = random.Random(size)
    store = memory_tagged_events()
    query = Query(items=(QueryItem(tags=frozenset(names)),)) if names else None
    position = None if query is None else store.read(query).position
    write = requests = 0.0
    for _ in range(appends):
        done = store.append([event(names, size, dice)], fail_if=query, after=position)
        position = None if query is None else done.position
        write, requests = write + done.capacity.write, requests + done.capacity.requests
    return write / appends, requests / appends


def main() -> int:
    """Print the table, and exit with an error if a bound is exceeded."""
    rows = [(tags, size, *units(tags, size)) for tags in BOUNDS for size in SIZES]
    print("| tags | bytes | write units | requests |", "|---|---|---|---|", sep="\n")
    for tags, size, write, requests in rows:
        print(f"| {tags} | {size:,} | {write:.2f} | {requests:.2f} |")
    return int(any(write > BOUNDS[tags] for tags, _, write, _ in rows))


if __name__ == "__main__":
    raise SystemExit(main())
