"""The command that prints the JSON Schemas of a codec."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

import click

from epochal.cli import inputs, output
from epochal.contrib.schemas.asyncapi import asyncapi
from epochal.contrib.schemas.of_events import bundle, event_schemas
from epochal.deciders.codecs import EventCodec
from epochal.errors import InvalidInput


@click.command()
@click.option(
    "--codec",
    "codecs",
    metavar="[CATEGORY=]MODULE:NAME",
    multiple=True,
    required=True,
    help="Codec made by json_codec, with the category of its streams. May be repeated.",
)
@click.option(
    "--asyncapi", "as_asyncapi", is_flag=True, help="Print an AsyncAPI 3.0 document of channels and messages."
)
@click.option(
    "--cloudevents",
    is_flag=True,
    help="With --asyncapi, describe events as `Publish` sends them, not as the feed returns them.",
)
@click.option("--title", default="Events", show_default=True, help="Title of the AsyncAPI document.")
@output.with_json
def schema(*, codecs: Sequence[str], as_asyncapi: bool, cloudevents: bool, title: str) -> None:
    """Print the JSON Schemas of codecs, or an AsyncAPI document.

    All schemas are in one document. No store is needed.
    """
    if cloudevents and not as_asyncapi:
        raise click.UsageError("--cloudevents needs --asyncapi.")
    opened = [_opened(codec) for codec in codecs]
    if as_asyncapi:
        if len(dict(opened)) < len(opened):
            raise click.UsageError("Give only one codec for each category.")
        document = asyncapi(dict(opened), title=title, cloud_events=cloudevents)
    else:
        schemas = [(name, schema_) for _, codec in opened for name, schema_ in event_schemas(codec).items()]
        document = bundle(dict(schemas))
        if twice := next((name for name, schema_ in schemas if document["$defs"][name] != schema_), None):
            raise InvalidInput("--codec", f"two codecs define the type {twice} differently")
    click.echo(json.dumps(document, indent=None if output.as_json() else 2, ensure_ascii=False))


def _opened(target: str) -> tuple[str, EventCodec[object]]:
    """Load the codec that an option names, and return its category and the codec."""
    category, _, place = target.rpartition("=")
    return category, inputs.codec_of(place)


COMMANDS: Final = (schema,)
