"""Exports of tables as DynamoDB makes them, in a folder."""

from __future__ import annotations

import base64
import gzip
import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from epochal.plan.values import Item

PREFIX = "backups/AWSDynamoDB/01693685827463-2d8752fd"


def export(folder: Path, items: Iterable[Item], files: int = 3, **summary: str) -> str:
    """Write an export of these items, in no order; the folder."""
    (folder / "data").mkdir(parents=True)
    shuffled = list(items)
    random.Random(7).shuffle(shuffled)
    manifest = []
    for number in range(files):
        name, mine = f"part{number}.json.gz", shuffled[number::files]
        lines = "".join(json.dumps({"Item": written(item)}) + "\n" for item in mine)
        (folder / "data" / name).write_bytes(gzip.compress(lines.encode()))
        manifest.append({"itemCount": len(mine), "dataFileS3Key": f"{PREFIX}/data/{name}"})
    (folder / "manifest-files.json").write_text("".join(json.dumps(each) + "\n" for each in manifest))
    told = {"outputFormat": "DYNAMODB_JSON", "exportType": "FULL_EXPORT", **summary}
    (folder / "manifest-summary.json").write_text(json.dumps(told))
    return str(folder)


def changes(
    folder: Path, after: Iterable[tuple[Item, Item | None, int]], *, as_text: bool = False, **summary: str
) -> str:
    """Write an incremental export: of each item its keys, what it is now, and when that was written; the folder. Its
    data are in a folder beside it, as those of all exports of a bucket are.
    """
    folder.mkdir(parents=True)
    data, lines = folder.parent / "data", list[str]()
    data.mkdir(exist_ok=True)
    for keys, image, micros in after:
        said = str(micros) if as_text else {"N": str(micros)}
        line = {"Metadata": {"WriteTimestampMicros": said}, "Keys": written(keys)}
        lines.append(json.dumps(line | ({} if image is None else {"NewImage": written(image)})))
    name = f"{folder.name}.json.gz"
    (data / name).write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
    listed = {"itemCount": len(lines), "dataFileS3Key": f"{PREFIX}/data/{name}"}
    (folder / "manifest-files.json").write_text(json.dumps(listed) + "\n")
    told = {"outputFormat": "DYNAMODB_JSON", "exportType": "INCREMENTAL_EXPORT", **summary}
    (folder / "manifest-summary.json").write_text(json.dumps(told))
    return str(folder)


def written(value: Any) -> Any:
    """An item in DynamoDB JSON: binaries are base64."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, list):
        return [written(each) for each in value]
    return {name: written(each) for name, each in value.items()} if hasattr(value, "items") else value
