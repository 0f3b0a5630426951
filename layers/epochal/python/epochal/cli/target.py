"""Finding the store that a command is about, and opening it.

Named tables come first, then a stack whose outputs name them, then what `epochal local up` deployed from this
checkout.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any

import click

from epochal.cli.errors import NoStore, StackMissing, TableUnnamed
from epochal.codec.payloads import NAMES
from epochal.dynamo.aws_errors import translated
from epochal.dynamo.bodies import S3Bodies
from epochal.dynamo.clients import cloudformation_client, dynamodb_client, s3_client
from epochal.dynamo.interpreter import interpreter
from epochal.dynamo.lazy_clients import lazily
from epochal.dynamo.objects import S3Objects
from epochal.errors import InvalidInput, InvalidRequest, MissingTable
from epochal.feed.deployed import reader_of
from epochal.feed.reader import FeedReader
from epochal.indexer.sources import sources_of
from epochal.layout.port import Source
from epochal.layout.tables import EVENTS, INDEX, JOURNAL, PROJECTION_STATES, SNAPSHOT, TAGS, TIPS
from epochal.local import deploy
from epochal.local.errors import NotACheckout, NotRunning
from epochal.local.places import here
from epochal.settings import (
    AGGREGATE_TYPES,
    BUCKET,
    EQUINOX,
    EVENTS_TABLE,
    INDEX_TABLE,
    JOURNAL_KEYS,
    JOURNAL_SERIALIZER,
    JOURNAL_SHARDS,
    JOURNAL_TABLE,
    LIBRARIES,
    LIBRARY,
    MAX_SHARDS,
    MAX_WRITE_SHARDS,
    PROJECTION_STATES_TABLE,
    PROJECTIONS,
    SERVICE,
    SHARDS,
    SNAPSHOT_TABLE,
    STATES_PREFIX,
    TAGS_TABLE,
    TIPS_TABLE,
    TYPE_HEADS,
    WRITE_SHARDS,
    Settings,
    names_in,
)
from epochal.store.aggregates import AggregateStore, aggregates_of
from epochal.store.bodies import BodyCodec
from epochal.store.checking import checked, distinct
from epochal.store.driver import SIDE_BY_SIDE, Driver, Meter
from epochal.store.projections import NoObjects, Objects, ProjectionStates, states_of
from epochal.store.streams import Streams, streams_of
from epochal.store.tagged import TaggedEvents, tagged_of

_URL = re.compile(r"https?://[^/\s]+")

OUTPUTS = {"TipsTable": "tips_table", "IndexTable": "index_table", "BucketName": "bucket"}
"""Outputs of the store's stack, and the settings they are."""

LATER_OUTPUTS = {
    "JournalTable": "journal_table",
    "SnapshotTable": "snapshot_table",
    "EventsTable": "events_table",
    "TagsTable": "tags_table",
    "ProjectionStatesTable": "projection_states_table",
    "StatesPrefix": "states_prefix",
    "Service": "service",
    "ReadModelsTable": "read_models_table",
    "ArchiveTable": "archive_table",
}
"""Those that a stack of an older version lacks."""


TABLES = {
    "--tips-table": ("tips_table", TIPS.kind),
    "--index-table": ("index_table", INDEX.kind),
    "--journal-table": ("journal_table", JOURNAL.kind),
    "--snapshot-table": ("snapshot_table", SNAPSHOT.kind),
    "--events-table": ("events_table", EVENTS.kind),
    "--tags-table": ("tags_table", TAGS.kind),
    "--projection-states-table": ("projection_states_table", PROJECTION_STATES.kind),
}
"""Options that name tables: the settings they are, and the kinds that the tables must be of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the user said about which store is meant; empty is unsaid."""

    settings: Settings
    stack: str = ""
    endpoint: str = ""
    region: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSize:
    """What DynamoDB says of a table. On AWS these figures are up to six hours old."""

    name: str
    items: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """An opened store.

    Attributes:
        sources: of the feed, with as many partitions as is told without asking the index.
    """

    streams: Streams
    aggregates: AggregateStore
    tagged: TaggedEvents
    states: ProjectionStates
    feed: FeedReader
    sources: tuple[Source, ...]
    sizes: Callable[[], list[TableSize]]


def pass_store(command: Callable[..., None]) -> Callable[..., None]:
    """Hand the store to a command, opened only now: `--help` and mistakes on the command line need none."""

    @click.pass_obj
    @wraps(command)
    def opened(opener: Callable[[], Store], *args: Any, **options: Any) -> None:
        command(opener(), *args, **options)

    return opened


def open_store(choice: Choice) -> Store:
    """The store that was chosen.

    Raises:
        NoStore: nothing was said, and nothing is deployed from here.
        StackMissing: there is no such stack, or it is not the one that holds a store's tables.
        InvalidInput: one table is named and the other is not.
    """
    if choice.endpoint and not _URL.match(choice.endpoint):
        raise InvalidInput("--endpoint", "must be a URL, as http://127.0.0.1:4566")
    settings = _outputs(choice) if choice.stack else choice.settings
    if not settings.tips_table and not settings.index_table:
        return _local()
    distinct(**{option: getattr(settings, name) for option, (name, _) in TABLES.items()})
    for table, option in ((settings.tips_table, TIPS_TABLE), (settings.index_table, INDEX_TABLE)):
        if not table:
            raise TableUnnamed(option, "is needed too, where the other table is named")
    place = {"endpoint": choice.endpoint or None, "region": choice.region or None}
    kinds = {
        getattr(choice.settings, name): kind
        for name, kind in TABLES.values()
        if getattr(choice.settings, name)
    }
    return _opened(settings, dynamodb_client(**place), lazily(partial(s3_client, **place)), kinds)


def _local() -> Store:
    try:
        found = deploy.current(here())
    except (NotACheckout, NotRunning) as error:
        raise NoStore(str(error)) from error
    return _opened(found.settings, found.endpoint.client("dynamodb"), found.endpoint.client("s3"))


def _opened(settings: Settings, dynamodb: Any, s3: Any, kinds: Mapping[str, str] | None = None) -> Store:
    """Stores on the tables; those that somebody named, whose `kinds` are told, are looked at before they are used."""
    execute = interpreter(dynamodb)
    whole = checked(execute, kinds) if kinds else execute
    driver = Driver(execute=whole, meter=Meter(), at_once=SIDE_BY_SIDE)
    # Without a bucket, bodies too large for an item are refused.
    bodies = S3Bodies(s3, settings.bucket) if settings.bucket else None
    codec = BodyCodec(bodies=bodies)
    objects: Objects = S3Objects(s3, settings.bucket) if settings.bucket else NoObjects()
    return Store(
        streams=streams_of(settings, driver, codec),
        aggregates=aggregates_of(settings, driver),
        tagged=tagged_of(settings, driver),
        states=states_of(settings, driver, objects),
        feed=reader_of(settings, driver, codec),
        sources=sources_of(settings),
        sizes=lambda: [_size(dynamodb, name) for name in (settings.tips_table, settings.index_table)],
    )


def _size(dynamodb: Any, name: str) -> TableSize:
    try:
        with translated("DescribeTable"):
            table = dynamodb.describe_table(TableName=name)["Table"]
    except InvalidRequest as error:
        if error.code != "ResourceNotFoundException":
            raise
        raise MissingTable(name) from error
    return TableSize(name=name, items=table["ItemCount"], bytes=table["TableSizeBytes"])


def _outputs(choice: Choice) -> Settings:
    """The settings that a stack's outputs hold; what was named besides wins over them."""
    client = cloudformation_client(endpoint=choice.endpoint or None, region=choice.region or None)
    try:
        with translated("DescribeStacks"):
            (stack,) = client.describe_stacks(StackName=choice.stack)["Stacks"]
    except InvalidRequest as error:
        raise StackMissing(choice.stack, error.message) from error
    outputs: Mapping[str, str] = {each["OutputKey"]: each["OutputValue"] for each in stack.get("Outputs", ())}
    if not outputs.keys() >= OUTPUTS.keys():
        raise StackMissing(choice.stack, f"has no outputs {', '.join(OUTPUTS)}: name the stack of the tables")
    known = (OUTPUTS | LATER_OUTPUTS).items()
    found = {setting: outputs[name] for name, setting in known if name in outputs}
    unsaid = Settings()
    named = {
        setting: value
        for setting in found
        if (value := getattr(choice.settings, setting)) != getattr(unsaid, setting)
    }
    return replace(choice.settings, **(found | named), **_keys(outputs, choice.settings))


def _keys(outputs: Mapping[str, str], named: Settings) -> dict[str, Any]:
    """What the keys of the stack's tables are made with: it knows better than whoever names it."""
    return {
        "journal_shards": int(outputs.get("JournalShards", named.journal_shards)),
        "journal_keys": outputs.get("JournalKeys", named.journal_keys),
        "journal_serializer": outputs.get("JournalSerializer", named.journal_serializer),
        "aggregate_types": names_in("AggregateTypes", outputs.get("AggregateTypes", ""))
        or named.aggregate_types,
        "write_shards": int(outputs.get("WriteShards", named.write_shards)),
        "equinox": outputs.get("Equinox", "true" if named.equinox else "false") == "true",
        "type_heads": outputs.get("TypeHeads", "true" if named.type_heads else "false") == "true",
    }


def _names(_: click.Context, option: click.Parameter, text: str) -> tuple[str, ...]:
    return names_in(option.opts[0], text)


def store_options(command: Callable[..., None]) -> Callable[..., None]:
    """Options that say which store; those of tables and bucket are named as the functions' settings are."""
    for option in (
        # boto3 reads AWS_DEFAULT_REGION alone; the AWS command line, CDK and Lambda go by this name.
        click.option("--region", default="", envvar="AWS_REGION", help="AWS region of the store."),
        click.option("--endpoint", default="", envvar="EPOCHAL_ENDPOINT", help="Another AWS, by its URL."),
        click.option(
            "--journal-shards",
            default=SHARDS,
            type=click.IntRange(1, MAX_SHARDS),
            envvar=JOURNAL_SHARDS,
            help="Shards of aggregates' keys, where the tables are named.",
        ),
        click.option(
            "--journal-keys",
            default=LIBRARY,
            type=click.Choice(LIBRARIES),
            envvar=JOURNAL_KEYS,
            help="Library by whose hash aggregates' keys are made, where the tables are named.",
        ),
        click.option(
            "--journal-serializer",
            default=LIBRARY,
            type=click.Choice(NAMES),
            envvar=JOURNAL_SERIALIZER,
            help="Library as which aggregates are written, where the tables are named.",
        ),
        click.option(
            "--aggregate-types",
            default="",
            callback=_names,
            envvar=AGGREGATE_TYPES,
            help="Types of aggregates, with commas, where the tables are named. Those that hold - must be.",
        ),
        click.option(
            "--write-shards",
            default=1,
            type=click.IntRange(1, MAX_WRITE_SHARDS),
            envvar=WRITE_SHARDS,
            help="Shards of the index of all tagged events, where the tables are named.",
        ),
        click.option(
            "--equinox",
            is_flag=True,
            envvar=EQUINOX,
            help="Equinox applications use the table of streams too, where the tables are named.",
        ),
        click.option(
            "--type-heads",
            is_flag=True,
            envvar=TYPE_HEADS,
            help="Tagged events are written with heads of types, where the tables are named.",
        ),
        click.option("--service", default="", envvar=SERVICE, help="Tenant of tagged events and states."),
        click.option(
            "--projection-states-table",
            default="",
            envvar=PROJECTION_STATES_TABLE,
            help="States of projections.",
        ),
        click.option(
            "--states-prefix",
            default=PROJECTIONS,
            envvar=STATES_PREFIX,
            help="Where large states lie in the bucket.",
        ),
        click.option("--tags-table", default="", envvar=TAGS_TABLE, help="Tags of tagged events."),
        click.option("--events-table", default="", envvar=EVENTS_TABLE, help="Tagged events."),
        click.option("--snapshot-table", default="", envvar=SNAPSHOT_TABLE, help="Heads of aggregates."),
        click.option("--journal-table", default="", envvar=JOURNAL_TABLE, help="Events of aggregates."),
        click.option("--bucket", default="", envvar=BUCKET, help="Bucket of large bodies."),
        click.option("--index-table", default="", envvar=INDEX_TABLE, help="Table of the feed."),
        click.option("--tips-table", default="", envvar=TIPS_TABLE, help="Table of streams."),
        click.option("--stack", default="", envvar="EPOCHAL_STACK", help="Stack that holds the tables."),
    ):
        command = option(command)
    return command
