"""Notes of an export: JSON files with a checksum, written atomically.

The checksum lets accidental edits be noticed. It does not protect against deliberate forgery.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from epochal.contrib.transfer.export import files


def write_note(path: Path, value: dict[str, Any]) -> None:
    """Write a JSON object with its checksum to a file, atomically and synced to disk."""
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(value | {"sum": checksum(value)}, file)
        file.flush()
        os.fsync(file.fileno())
    files.move_durably(temporary, path)


def checked_note(note: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON note without its checksum; raise `ValueError` if the checksum is wrong.

    Raises:
        ValueError: the note was changed after it was written.
    """
    if note.pop("sum", None) != checksum(note):
        raise ValueError("its checksum does not match")
    return note


def checksum(value: dict[str, Any]) -> str:
    """Return the SHA-256 of a JSON object, as hex digits."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def notes_folder(folder: Path) -> Path:
    """Return the folder of an export's notes.

    Readers of folders, as pyarrow's, skip names that begin with `_`.
    """
    return folder / "_export"


def part_name(partition: int, start: int) -> str:
    """Return the name of a part's files, without an ending."""
    return f"{partition:06d}-{start:019d}"
