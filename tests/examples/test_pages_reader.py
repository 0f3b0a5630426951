"""examples/pages_reader reads the golden vectors, and pages of a real store, as the library does."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from epochal import Event, Unfold
from tests.vectors.pages import World, kept, vector_of

READER = Path(__file__).resolve().parents[2] / "examples" / "pages_reader" / "read.mjs"

VECTORS = kept()


def read_by_node(vector: dict[str, Any]) -> Any:
    done = subprocess.run(
        ["node", READER], input=json.dumps(vector), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def expected(vector: dict[str, Any]) -> dict[str, Any]:
    return {name: vector[name] for name in ("streams", "tags") if name in vector}


@pytest.mark.parametrize("name", VECTORS)
def test_it_reads_a_vector_as_the_library_does(name: str) -> None:
    assert read_by_node(VECTORS[name]) == expected(VECTORS[name])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_it_reads_pages_of_a_real_store_as_the_library_does(seed: int) -> None:
    world, luck = World(), random.Random(seed)
    for _ in range(120):
        stream, step = f"Stream-{luck.randrange(5)}", luck.random()
        events = [made(luck) for _ in range(luck.choice([1, 1, 2, 30]))]
        if step < 0.75:
            world.streams.append(
                stream, events, unfolds=luck.choice([None, None, [Unfold(type="S", data=b"1")]])
            )
        elif step < 0.85 and (state := world.streams.load(stream)) is not None:
            world.streams.prune(stream, luck.randint(0, state.version))
        else:
            world.tagged.append([made(luck, tagged=True) for _ in range(luck.randint(1, 3))])
    vector = vector_of(world)
    read = read_by_node(vector)
    assert read == expected(vector)
    assert sum(len(stream["events"]) for stream in read["streams"].values()) > 100


def made(luck: random.Random, *, tagged: bool = False) -> Event:
    """Return an event of any size, some with tags."""
    tags = luck.sample(["a:1", "b:2", "ü"], luck.randint(1, 3)) if tagged or luck.random() < 0.1 else []
    return Event(
        type=luck.choice(["A", "Something longer", "ü"]),
        data=luck.choice(
            [b"", b"{}", luck.randbytes(luck.choice([8, 200, 1_500])), b'{"text":"%s"}' % (b"abc" * 60)]
        ),
        meta=luck.choice([b"", b'{"user":"ada"}']),
        timestamp=luck.choice([None, None, "2013-01-01T10:17:00.1234567Z"]),
        correlation_id=luck.choice([None, "c-1"]),
        causation_id=luck.choice([None, "e-1"]),
        tags=tuple(tags),
    )
