"""What the deployment and the code must agree on, each declared once.

Stacks write a function's settings into its environment and those of the tables into the outputs of the store's stack;
functions, programs and commands read the same declarations back. Nothing else in the library looks at the environment.
To add a setting, add a field: `declaration` tells what is made of it. Tables of layouts, and the partitions of their
parts of the feed, are settings by their names alone; a layout's other settings are declared by its plug-in (`plugins`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, TypeVar, cast

from epochal.declaration import (
    PREFIX,
    Flag,
    Names,
    Number,
    OneOf,
    Setting,
    Text,
    declared,
    must_keep,
    must_stay,
    of_tables,
    setting,
)
from epochal.lazy_dataclasses import dataclass, field, fields, replace
from epochal.plugins import layouts, own_settings

T = TypeVar("T")

LAMBDA_PYTHON = "3.13"
"""The one Python version the functions run on in AWS; the library itself supports 3.11 to 3.14."""

SERVICE_NAME = "POWERTOOLS_SERVICE_NAME"
"""Variable with the name of a function in logs and metrics, stage included: stages of one account share a namespace."""

MAX_PARTITIONS = 10_000
"""Largest number of partitions of a source: the first partitions of sources are this far apart (FORMATS §4)."""

LIGHT = "light"
"""The carrier of requests to DynamoDB that signs and sends them itself (`dynamo.carriers`)."""

BOTO3 = "boto3"
"""The carrier that is a client of boto3's, which instruments and mocks of AWS know."""

UPLOAD_BYTES = 100 * 1024 * 1024
"""The default of the largest upload. An upload stays in the bucket for a day or two, claimed or not."""

WAIT_SECONDS = 5
"""The default of a long poll of the feed. A waiting caller occupies an invocation: with the deployment's limit of such
requests a second, this bounds how many of an account's can be taken that way."""

MAX_WAIT_SECONDS = 20
"""Seconds of the longest long poll: with the read that follows, the request stays well below API Gateway's 30."""

KEY_WINDOW_SECONDS = 24 * 3600
"""Seconds for which an idempotency key is remembered."""

REQUEST_SECONDS = 25.0
"""Every HTTP request, its retries included, ends within this (DESIGN §5.16): API Gateway gives up at 30."""

RESPONSE_BYTES = 4 * 1024 * 1024
"""A page of events ends here: a Lambda answers with at most 6 MB, and base64 adds a third."""

_API = ("append", "replay", "feed")
_FEED = ("feed", "indexer", "auditor", "reaction")
EVENTS = ("append", "replay", *_FEED)
"""Functions that look at events of every layout, if only by their heads."""

_TIMERS = ("arming", "timers")
"""The reaction that schedules timers, and the function that fires them."""


_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The settings whose values a stage chooses (docs/deploy.md describes each)."""

    # By the names of the settings: numbers of partitions, as `dcb_partitions`, and settings that plug-ins declare.
    of_layouts: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    # Each is a stream that all such events are in: for the whole table, and from the first event on.
    tagged_types: tuple[str, ...] = of_tables(
        (),
        Names(),
        "Types of tagged events, separated by commas, that have streams",
        ("append", "replay"),
        broken=must_keep,
    )
    tagged_everything: bool = of_tables(
        False, Flag(), "All tagged events are in one stream, too", ("append", "replay"), broken=must_stay
    )
    # A claim copies the upload within its request (REQUEST_SECONDS); S3 copies some 100 MB a second.
    max_upload_bytes: int = setting(
        UPLOAD_BYTES, Number(most=1024 * 1024 * 1024), "Size of a body that is uploaded", ("append",)
    )
    feed_wait_seconds: int = setting(
        WAIT_SECONDS,
        Number(least=0, most=MAX_WAIT_SECONDS),
        "How long a reader may wait at the tail of the feed",
        ("feed",),
    )
    # Of types without a schema, and of bodies in the bucket, where a stage names `event_schemas`.
    unchecked_events: str = setting(
        "take",
        OneOf(of=("take", "refuse")),
        "Events over HTTP that no schema can be held against",
        ("append",),
    )
    # As `care.retention.keep` writes it.
    keep: tuple[str, ...] = setting((), Names(), "How much streams of categories keep", ("auditor",))
    carrier: str = setting(
        LIGHT,
        OneOf(of=(LIGHT, BOTO3)),
        "What carries requests to DynamoDB; boto3 where an instrument is to see them",
        (*_API, "indexer", "auditor"),
    )
    # More than 100 do not fit the time of a request.
    retries: int | None = setting(
        None,
        Number(least=0, most=100),
        "Retries of one request to a table; as many as the time allows where it is not said",
        _API,
    )

    def partitions(self, name: str) -> int:
        """Return the number of partitions of a layout's part of the feed, by the name of the setting."""
        count: int = self.of_layouts.get(name, 1)
        return count

    def of_plugin(self, kind: type[T]) -> T:
        """Return the values that a stage chose for the settings of a plug-in's dataclass `kind`."""
        names = {option.name for option in fields(cast("Any", kind))}
        return kind(**{name: value for name, value in self.of_layouts.items() if name in names})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(Options):
    """All settings of a function: where things are, and what its stage has chosen."""

    # Names of layouts' tables, by kind.
    tables: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    index_table: str = of_tables("", Text(), "Table of the feed", _FEED)
    bucket: str = of_tables(
        "", Text(), "Bucket of large bodies and states", (*_API, "reaction"), output="BucketName"
    )
    streams_archive_table: str = of_tables(
        "", Text(), "Streams as they were before pruning", (*_API, "reaction", "auditor")
    )
    read_models_table: str = of_tables("", Text(), "Read models of reactions", ("reaction",))
    timers_table: str = of_tables("", Text(), "Timers that wait", _TIMERS)
    timers_queue: str = setting("", Text(), "URL of the queue of wake-ups of timers", _TIMERS)
    # Of schedules: their group; the ARNs of the queue that they send to, and of the role that they take on for that.
    timers_schedules: tuple[str, ...] = setting((), Names(), "What schedules of timers have", ("arming",))
    topic: str = setting(
        "", Text(), "ARN of the topic that is told which partitions have moved", ("indexer", "auditor")
    )
    mappings: tuple[str, ...] = setting(
        (), Names(), "Mappings of streams to functions, which have to be enabled", ("auditor",)
    )
    # Layouts of other packages that the deployment has: `plugins.layouts` loads them.
    plugins: tuple[str, ...] = setting((), Names(), "Layouts that other packages bring", EVENTS)
    event_schemas: str = setting("", Text(), "Module of the schemas that events over HTTP fit", ("append",))
    reaction: str = setting("", Text(), "Name of the reaction that a function runs", ("reaction",))
    queue: str = setting("", Text(), "URL of the queue that wakes it", ("reaction",))

    @classmethod
    def of(cls, **values: Any) -> Settings:
        """Make settings with these values, by name: `streams_table`, `service`, `bucket`."""
        return cls().having(**values)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """Return the settings in environment variables, ignoring others; raise `InvalidInput` if malformed.

        Raises:
            InvalidInput: a variable cannot be parsed; names the variable.
        """
        present = ((name, setting_of_variable(name), text) for name, text in environment.items())
        return cls.of(**{option.name: option.parse(text, name) for name, option, text in present if option})

    @classmethod
    def from_outputs(cls, outputs: Mapping[str, str]) -> Settings:
        """Return the settings in the outputs of a store's stack; raise `InvalidInput` if one is malformed.

        Other outputs are ignored.

        Raises:
            InvalidInput: an output cannot be parsed; names the output.
        """
        present = ((name, setting_of_output(name), text) for name, text in outputs.items())
        return cls.of(**{option.name: option.parse(text, name) for name, option, text in present if option})

    def table(self, kind: str) -> str:
        """Return the name of a layout's table by kind; empty where the deployment has no such table."""
        return self.tables.get(kind, "")

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of each table that the settings name, by the table's name."""
        tables = {self.value(option.name): option.table for option in DECLARED.values() if option.table}
        return {table: kind for table, kind in tables.items() if table} | {
            table: kind for kind, table in self.tables.items()
        }

    def value(self, name: str) -> Any:
        """Return the value of a setting by name."""
        if name in DECLARED:
            return getattr(self, name)
        option = _of_layouts(name)
        return self.table(option.table) if option.table else self.of_layouts.get(name, option.default)

    def having(self, **values: Any) -> Settings:
        """Return a copy of the settings with other values, by the names of the settings."""
        others = {name: value for name, value in values.items() if name in DECLARED}
        declared_settings = {name: _of_layouts(name) for name in values if name not in DECLARED}
        tables = {
            setting.table: values[name]
            for name, setting in declared_settings.items()
            if setting.table and values[name]
        }
        of_layouts = {name: values[name] for name, setting in declared_settings.items() if not setting.table}
        return replace(
            self, tables={**self.tables, **tables}, of_layouts={**self.of_layouts, **of_layouts}, **others
        )

    def environment(self, function: str) -> dict[str, str]:
        """Return a function's environment variables; settings without a value are left out."""
        return {option.variable: text for option, text in self._texts() if function in option.functions}

    def outputs(self) -> dict[str, str]:
        """Return the outputs of the store's stack; settings without a value are left out."""
        return {option.output: text for option, text in self._texts() if option.output}

    def _texts(self) -> Iterator[tuple[Setting, str]]:
        """Yield each setting that has a value, with the value as text."""
        own = {option.table: option for option in _plugged() if option.table}
        tables = (own.get(kind) or table_setting(kind) for kind in self.tables)
        for option in (*DECLARED.values(), *tables, *map(_of_layouts, self.of_layouts)):
            if text := option.text(self.value(option.name)):
                yield option, text


DECLARED: Mapping[str, Setting] = MappingProxyType(
    {field_.name: declared(field_) for field_ in fields(Settings) if field_.metadata}
)
"""Every setting but those of layouts, by name."""

FOUND_BY = ("IndexTable", "BucketName")
"""Outputs by which a stack is known to hold a store. One of an older version lacks others."""

_OUTPUTS = {setting.output: setting for setting in DECLARED.values() if setting.output}


def table_setting(kind: str, help: str = "") -> Setting:  # noqa: A002  the word that commands have for it
    """Make the setting that names a layout's table of a kind."""
    return Setting(
        name=f"{kind.replace('-', '_')}_table",
        default="",
        kind=Text(),
        help=help,
        functions=EVENTS,
        output=f"{kind.title().replace('-', '')}Table",
        option=True,
    )


def partitions_setting(name: str) -> Setting:
    """Make the setting for the number of partitions of a layout's part of the feed."""
    return Setting(
        name=name,
        default=1,
        kind=Number(most=MAX_PARTITIONS),
        help="Partitions of a part of the feed",
        functions=_FEED,
        output="",
        option=False,
    )


def setting_of_variable(variable: str) -> Setting | None:
    """Return the setting of an environment variable; None for other variables."""
    name = variable.removeprefix(PREFIX).lower()
    return _known(name) if variable == f"{PREFIX}{name.upper()}" else None


def setting_of_output(output: str) -> Setting | None:
    """Return the setting of a stack's output; None for other outputs."""
    words = re.findall("[A-Z][a-z]*", output)
    if output not in _OUTPUTS and words[1:] and words[-1] == "Table":
        return table_setting("-".join(words[:-1]).lower())
    return _OUTPUTS.get(output) or next((option for option in _plugged() if option.output == output), None)


def _known(name: str) -> Setting | None:
    """Return a setting by name; None if there is none."""
    try:
        return DECLARED.get(name) or _of_layouts(name)
    except KeyError:
        return None


def _of_layouts(name: str) -> Setting:
    """Return a setting of a layout by name; `KeyError` if there is none."""
    kind, table, _ = name.partition("_table")
    if name.endswith(_LAYOUTS):
        return table_setting(kind.replace("_", "-")) if table else partitions_setting(name)
    return {option.name: option for option in _plugged()}[name]


def _plugged() -> Iterator[Setting]:
    """Yield the settings that plug-ins declare.

    Plug-ins are loaded for this: a function gets no settings of a layout that it has no tables of.
    """
    return (option for layout in layouts() for option in own_settings(layout).values())


_LAYOUTS = ("_table", "_partitions")
"""How settings of layouts end."""


def variable(name: str) -> str:
    """Return the environment variable of a setting, by the setting's name."""
    return (DECLARED.get(name) or _of_layouts(name)).variable


def service_name(environment: Mapping[str, str], otherwise: str) -> str:
    """Return the name of a function in its logs and metrics.

    Args:
        otherwise: name to return if the environment has none.
    """
    return environment.get(SERVICE_NAME, otherwise)
