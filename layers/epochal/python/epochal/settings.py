"""What the deployment and the code must agree on, each declared once.

Stacks write a function's settings into its environment and those of the tables into the outputs of the store's stack;
functions, programs and commands read the same declarations back. Nothing else in the library looks at the environment.
To add a setting, add a field: `declaration` tells what is made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

from epochal.declaration import Flag, Names, Number, OneOf, Setting, Text, setting

LAMBDA_PYTHON = "3.13"
"""The one Python version the functions run on in AWS; the library itself supports 3.11 to 3.14."""

SERVICE_NAME = "POWERTOOLS_SERVICE_NAME"
"""What logs and metrics call a function. It names the stage too: stages of one account share a namespace."""

MAX_PARTITIONS = 10_000
"""Sources are numbered this far apart (FORMATS §4)."""

LIBRARY = "javascript"
"""The library of event-store-adapter whose keys and payloads aggregates have where nobody says otherwise."""

LIBRARIES = (LIBRARY, "rust", "go", "java", "php")
"""The libraries of event-store-adapter that aggregates may be shared with."""

PAYLOADS = (*LIBRARIES, "plain")
"""Forms of payloads: those of the libraries, and one that names no type."""

SHARDS = 64
"""Shards of aggregates where nobody says otherwise: the default of event-store-adapter's libraries, which may
share the tables."""

UPLOAD_BYTES = 100 * 1024 * 1024
"""Of an upload, where nobody says otherwise. It lies in the bucket for a day or two, claimed or not."""

WAIT_SECONDS = 5
"""Of a long poll of the feed, where nobody says otherwise. A caller who waits occupies an invocation: with the
deployment's limit of such requests a second, this is how many of an account's can be taken that way."""

MAX_WAIT_SECONDS = 20
"""Of a long poll: with the read that follows it stays well below API Gateway's 30."""

INLINE_BYTES = 300_000
"""A compressed state larger than this goes to the bucket: in base64 it is a third longer, and an item holds
409,600 bytes."""

PROJECTIONS = "projections"
"""Prefix of projection states in the bucket."""

KEY_WINDOW_SECONDS = 24 * 3600
"""How long an idempotency key is remembered."""

REQUEST_SECONDS = 25.0
"""Every HTTP request, its retries included, ends within this (DESIGN §5.16): API Gateway gives up at 30."""

RESPONSE_BYTES = 4 * 1024 * 1024
"""A page of events ends here: a Lambda answers with at most 6 MB, and base64 adds a third."""

_API = ("append", "replay", "feed")
_FEED = ("feed", "indexer", "auditor", "reaction")
_EVENTS = ("append", "replay", *_FEED)
"""Functions that look at events of every layout, if only by their heads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a stage chooses of what its functions are told (docs/deploy.md has more words for each)."""

    partitions: int = setting(
        1, Number(most=MAX_PARTITIONS), "Partitions of the feed of streams", functions=_FEED
    )
    journal_partitions: int = setting(
        1, Number(most=MAX_PARTITIONS), "Partitions of the feed of aggregates", functions=_FEED
    )
    dcb_partitions: int = setting(
        1, Number(most=MAX_PARTITIONS), "Partitions of the feed of tags", functions=_FEED
    )
    equinox: bool = setting(
        False,
        Flag(),
        "Equinox applications use the table of streams too",
        functions=_EVENTS,
        output="Equinox",
        option=True,
    )
    # They belong to the tables: with other ones nothing that is stored is found. A shard is one value of a partition
    # key: more than 10,000 spread nothing any further.
    journal_shards: int = setting(
        SHARDS,
        Number(most=10_000),
        "Shards of aggregates' keys",
        functions=_EVENTS,
        output="JournalShards",
        option=True,
    )
    journal_keys: str = setting(
        LIBRARY,
        OneOf(of=LIBRARIES),
        "Library by whose hash aggregates' keys are made",
        functions=_EVENTS,
        output="JournalKeys",
        option=True,
    )
    journal_serializer: str = setting(
        LIBRARY,
        OneOf(of=PAYLOADS),
        "Library as which aggregates are written",
        functions=_EVENTS,
        output="JournalSerializer",
        option=True,
    )
    aggregate_types: tuple[str, ...] = setting(
        (),
        Names(),
        "Types of aggregates, separated by commas; those that hold - must be declared",
        functions=_EVENTS,
        output="AggregateTypes",
        option=True,
    )
    # A read of all events asks every shard. May be raised later, never lowered.
    write_shards: int = setting(
        1,
        Number(most=1_000),
        "Shards of the index of all tagged events",
        functions=("append", "replay"),
        output="WriteShards",
        option=True,
    )
    type_heads: bool = setting(
        False,
        Flag(),
        "Tagged events are written with heads of types, for conditions by type alone",
        functions=("append", "replay"),
        output="TypeHeads",
        option=True,
    )
    # As Sekiban has it; `#` and `|` would end it early within keys.
    service: str = setting(
        "",
        Text(pattern=r"([a-z0-9-]{1,64})?", meaning="at most 64 lower-case letters, digits and hyphens"),
        "Tenant of tagged events and states",
        functions=_EVENTS,
        output="Service",
        option=True,
    )
    # A claim copies the upload within its request (REQUEST_SECONDS); S3 copies some 100 MB a second.
    max_upload_bytes: int = setting(
        UPLOAD_BYTES,
        Number(most=1024 * 1024 * 1024),
        "Size of a body that is uploaded",
        functions=("append",),
    )
    feed_wait_seconds: int = setting(
        WAIT_SECONDS,
        Number(least=0, most=MAX_WAIT_SECONDS),
        "How long a reader may wait at the tail of the feed",
        functions=("feed",),
    )
    # Each append with a snapshot looks for the copies that are beyond these.
    snapshot_copies: int = setting(
        0,
        Number(least=0, most=1_000),
        "Snapshots of an aggregate kept beside its head",
        functions=("append",),
    )
    snapshot_ttl_days: int = setting(
        0,
        Number(least=0, most=3_650),
        "Days after which snapshots beyond these expire; 0 deletes them at once",
        functions=("append",),
    )
    state_inline_bytes: int = setting(
        INLINE_BYTES,
        Number(least=0, most=INLINE_BYTES),
        "Compressed states of projections that are larger go to the bucket",
        functions=("append",),
    )
    consistent_reads: bool = setting(
        True,
        Flag(),
        "Single tagged events and tags are read strongly consistent; else they cost half",
        functions=("replay",),
    )
    # More than 100 do not fit the time of a request.
    retries: int | None = setting(
        None,
        Number(least=0, most=100),
        "Retries of one request to a table; as many as the time allows where it is not said",
        functions=_API,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(Options):
    """What a function is told by its deployment: where things are, and what its stage has chosen."""

    tips_table: str = setting(
        "", Text(), "Table of streams", functions=_EVENTS, output="TipsTable", option=True
    )
    index_table: str = setting(
        "", Text(), "Table of the feed", functions=_FEED, output="IndexTable", option=True
    )
    bucket: str = setting(
        "",
        Text(),
        "Bucket of large bodies and states",
        functions=(*_API, "reaction"),
        output="BucketName",
        option=True,
    )
    journal_table: str = setting(
        "", Text(), "Events of aggregates", functions=_EVENTS, output="JournalTable", option=True
    )
    snapshot_table: str = setting(
        "", Text(), "Heads of aggregates", functions=_EVENTS, output="SnapshotTable", option=True
    )
    events_table: str = setting(
        "", Text(), "Tagged events", functions=_EVENTS, output="EventsTable", option=True
    )
    tags_table: str = setting(
        "", Text(), "Heads and entries of tags", functions=_EVENTS, output="TagsTable", option=True
    )
    projection_states_table: str = setting(
        "",
        Text(),
        "States of projections",
        functions=("append", "replay"),
        output="ProjectionStatesTable",
        option=True,
    )
    states_prefix: str = setting(
        PROJECTIONS,
        Text(),
        "Where large states lie in the bucket",
        functions=("append", "replay"),
        output="StatesPrefix",
        option=True,
    )
    archive_table: str = setting(
        "",
        Text(),
        "Streams as they were before pruning",
        functions=(*_API, "reaction"),
        output="ArchiveTable",
    )
    read_models_table: str = setting(
        "", Text(), "Read models of reactions", functions=("reaction",), output="ReadModelsTable"
    )
    topic: str = setting(
        "", Text(), "ARN of the topic that is told which partitions have moved", functions=("notifier",)
    )
    reaction: str = setting("", Text(), "Name of the reaction that a function runs", functions=("reaction",))
    queue: str = setting("", Text(), "URL of the queue that wakes it", functions=("reaction",))

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """Read the settings, or raise `InvalidInput` naming the variable that does not parse."""
        return cls(**_read(environment, lambda each: each.variable))

    @classmethod
    def from_outputs(cls, outputs: Mapping[str, str]) -> Settings:
        """Those that the outputs of a store's stack tell, or raise `InvalidInput` naming the output."""
        return cls(**_read(outputs, lambda each: each.output))

    def environment(self, function: str) -> dict[str, str]:
        """What a function is told, by variables; what there is nothing to say of is left out."""
        return self._written(
            {each.variable: each for each in DECLARED.values() if function in each.functions}
        )

    def outputs(self) -> dict[str, str]:
        """What the store's stack tells; no output may be empty."""
        return self._written({each.output: each for each in DECLARED.values() if each.output})

    def _written(self, names: Mapping[str, Setting]) -> dict[str, str]:
        texts = {name: each.text(getattr(self, each.name)) for name, each in names.items()}
        return {name: text for name, text in texts.items() if text}


def _read(texts: Mapping[str, str], name_of: Callable[[Setting], str]) -> dict[str, Any]:
    names = {name_of(each): each for each in DECLARED.values()}
    return {names[name].name: names[name].parse(texts[name], name) for name in names.keys() & texts.keys()}


DECLARED: Mapping[str, Setting] = MappingProxyType(
    {each.name: Setting(name=each.name, default=each.default, **each.metadata) for each in fields(Settings)}
)
"""Every setting, by name."""

FOUND_BY = ("TipsTable", "IndexTable", "BucketName")
"""Outputs by which a stack is known to hold a store. One of an older version lacks others."""


def variable(name: str) -> str:
    """The variable of the environment that a setting is read from."""
    return DECLARED[name].variable


def service_name(environment: Mapping[str, str], otherwise: str) -> str:
    """What a function is called in its logs and metrics."""
    return environment.get(SERVICE_NAME, otherwise)
