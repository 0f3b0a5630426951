"""The golden vectors of pages: today's library reads them all, and they have everything that a reader may meet."""

from __future__ import annotations

from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from epochal.pages.frames import read_frame
from epochal.plan.ops import Done, Put
from tests.vectors.pages import FILE, TABLE, WRITERS, World, generated, kept, named, vector_of

VECTORS = kept()
FORMATS = Path(__file__).resolve().parents[2] / "docs" / "reference" / "formats.md"


def binary(value: Any) -> Any:
    """Return a value of DynamoDB JSON with its binary parts as bytes."""
    if isinstance(value, list):
        return [binary(part) for part in value]
    if isinstance(value, dict):
        return {name: b64decode(part) if name == "B" else binary(part) for name, part in value.items()}
    return value


def restored(vector: dict[str, Any]) -> World:
    """Return a store that has the items of a vector, and the bodies in its bucket."""
    world = World()
    for item in vector["items"]:
        attributes = {name: binary(value) for name, value in item.items()}
        assert isinstance(world.tables.execute(Put(table=TABLE, item=attributes)), Done)
    for key, content in vector.get("bodies", {}).items():
        world.bucket.bodies.objects[key] = b64decode(content)
    return world


@pytest.mark.parametrize("name", VECTORS)
def test_the_library_reads_what_a_vector_says(name: str) -> None:
    assert vector_of(restored(VECTORS[name])) == VECTORS[name]


@pytest.mark.parametrize("writer", WRITERS, ids=named)
def test_the_file_has_what_is_written_today(writer: Callable[[World], None]) -> None:
    """How it is stored may change, as where pages end, or what brotli makes: vectors of before are kept."""
    today, vector = generated(writer), VECTORS[named(writer)]
    assert (today["streams"], today.get("tags")) == (vector["streams"], vector.get("tags"))


def met() -> Iterator[str]:
    """Yield everything of the format that the vectors have."""
    for vector in VECTORS.values():
        for item in vector["items"]:
            yield from item
            if "u" in item:
                yield f"unfolds {b64decode(item['u']['B'])[0]}"
            for part in item.get("f", {}).get("L", ()):
                frame = read_frame(b64decode(part["B"]))
                yield f"frame {frame.encoding}"
                for event in frame.events():
                    yield f"data {event.data.encoding}"
                    yield f"meta {event.meta.encoding}"
                    yield "label" if event.label else "no label"


def test_the_vectors_have_every_attribute_and_encoding() -> None:
    found = Counter(met())
    attributes = {"p", "i", "n", "r", "f", "u", "x", "z", "l", "w"}
    encodings = {f"data {encoding}" for encoding in (0, 1, 2, 64)} | {
        f"meta {encoding}" for encoding in (0, 2)
    }
    assert attributes | encodings | {
        "frame 0",
        "frame 2",
        "unfolds 0",
        "unfolds 2",
        "unfolds 4",
        "label",
    } <= {*found}


def test_the_page_of_formats_leads_to_the_vectors() -> None:
    assert f"({FILE.name})" in FORMATS.read_text("utf-8")
