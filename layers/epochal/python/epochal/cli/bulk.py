"""The command that makes many appends, each for itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import click

from epochal.bulk import MAX_APPENDS, Bulk, BulkAppend
from epochal.cli import inputs, output, views
from epochal.cli.target import on_streams
from epochal.errors import EpochalError
from epochal.http.batches import bulk_append, one_of
from epochal.http.streams import condition_of
from epochal.model.tags import write_position
from epochal.model.versions import Appended, Position
from epochal.store.outcomes import not_made
from epochal.store.streams import Streams

Told = tuple[BulkAppend, Appended | EpochalError]


@click.command("append-each")
@click.argument("appends", metavar="APPENDS")
@on_streams
def append_each(streams: Streams, *, appends: str) -> None:
    """Append to streams, each append for itself.

    APPENDS are as the HTTP API takes them: a JSON array or a JSON document a line, as text, @file or - for standard
    input. A line tells what came of each, in order; the exit code is 1 if one was not made.
    """
    asked = []
    for wanted, sent in inputs.several_of(appends, one_of, "APPENDS"):
        condition = condition_of(sent, streams, lambda *_: "")
        condition.pop("takes", None)
        asked.append(bulk_append(wanted.expected, wanted, sent, condition))
    failed = list[EpochalError]()

    def told() -> Iterator[Told]:
        for start in range(0, len(asked), MAX_APPENDS):
            some = asked[start : start + MAX_APPENDS]
            for one, came in zip(some, Bulk(streams).append(some), strict=True):
                made = (
                    came
                    if isinstance(came, Appended | EpochalError)
                    else not_made(one.stream, came, one.expected)
                )
                failed.extend([made] if isinstance(made, EpochalError) else [])
                yield one, made

    output.stream(told(), _view, _line)
    if failed:
        raise SystemExit(1)


def _view(told: Told) -> dict[str, object]:
    one, made = told
    if isinstance(made, Appended):
        reached = {"position": write_position(made.position)} if made.position.seen else {}
        return {**views.of_stream(one.stream, made), **reached}
    return {"stream": one.stream, "error": type(made).__name__, "message": str(made)}


def _line(told: Told) -> str:
    one, made = told
    if isinstance(made, Appended):
        return views.appended_line(one.stream, replace(made, position=Position()))
    words = str(made)
    return words if words.startswith(one.stream) else f"{one.stream}: {words}"
