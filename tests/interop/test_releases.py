"""Two releases work on the same table at the same time, as functions do while a deployment is under way.

The release before is the wheel that `EPOCHAL_BEFORE` names. Where it names none, as long as there is no release, it is
the wheel of this checkout: then the test shows that its two sides work, and nothing of two releases.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from epochal.contrib.local.endpoint import Endpoint
from epochal.layout.tables import store_tables
from tests.support import wheel
from tests.support.tables import Tables

TURNS = 8

SIDE = """
import json, sys
from epochal import NO_STREAM, AtVersion, ConflictError, Event, Query, QueryItem
from epochal import Event
from epochal.dynamo.stores import Place, open_streams, open_tagged_events

url, table, side = sys.argv[1:]
place = Place(endpoint=url, region="us-east-1")
streams, tagged = open_streams(table, place=place), open_tagged_events(table, place=place)
query = Query(items=(QueryItem(tags=frozenset({"seat:1"})),))


def turned(by, number):
    return [Event.json("Turned", {"by": by, "n": number}), Event(type="Body", data=bytes([number]) * 700)]


for line in sys.stdin:
    number, before = json.loads(line)
    at = AtVersion(version=2 * number) if number else NO_STREAM
    made = streams.append("Order-1", turned(side, number), expected=at, idempotency_key=f"turn-{number}")
    try:
        streams.append("Order-1", [Event(type="Never")], expected=at)
        refused = False
    except ConflictError:
        refused = True
    last, key = turned(before, number - 1) if number else [], f"turn-{number - 1}"
    again = streams.append("Order-1", last, idempotency_key=key) if number else None
    read = tagged.read(query)
    tagged.append([Event.json("Taken", {"n": number}, tags=("seat:1",))], fail_if=query, after=read.position)
    events = list(streams.read("Order-1"))
    print(json.dumps({
        "version": made.version,
        "refused": refused,
        "replayed": again is None or again.replayed,
        "turns": [each.json()["by"] for each in events if each.type == "Turned"],
        "bodies": all(each.content == bytes([each.index // 2]) * 700 for each in events if each.type == "Body"),
        "taken": len(read.events),
    }), flush=True)
"""

(STREAMS,) = (spec for spec in store_tables() if spec.kind == "streams")


class Side:
    """A process with one of the two libraries."""

    def __init__(self, name: str, python: str, place: Path, *arguments: str) -> None:
        self.name = name
        clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        self.process = subprocess.Popen(
            [python, "-c", SIDE, *arguments, name],
            cwd=place,
            env=clean,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def turn(self, number: int, before: str) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([number, before]) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The interpreter that has the release before."""
    place = tmp_path_factory.mktemp("before")
    named = os.environ.get("EPOCHAL_BEFORE")
    return str(
        wheel.installed(Path(named) if named else wheel.build(place), place / "environment") / "python"
    )


def test_two_releases_append_to_and_read_the_same_streams_and_tags_in_turn(
    before: str, ddbl: Endpoint, ddbl_tables: Tables, tmp_path: Path
) -> None:
    arguments = (ddbl.url, ddbl_tables.create(STREAMS))
    sides = [Side("old", before, tmp_path, *arguments), Side("new", sys.executable, tmp_path, *arguments)]
    try:
        for number in range(TURNS):
            told = sides[number % 2].turn(number, sides[(number + 1) % 2].name)
            assert told == {
                "version": 2 * (number + 1),
                "refused": True,
                "replayed": True,
                "turns": [sides[each % 2].name for each in range(number + 1)],
                "bodies": True,
                "taken": number,
            }
    finally:
        for side in sides:
            side.process.communicate(timeout=120)
