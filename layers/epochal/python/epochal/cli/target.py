"""Finding the store that a command is about, and opening it.

Named tables come first, then a stack whose outputs name them, then what `epochal local up` deployed from this
project.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource

from epochal import extensions
from epochal.cli import output
from epochal.cli.inputs import NoStore, NotThere, must_be_named, there
from epochal.declaration import Flag, Names, Number, OneOf, Setting, Text
from epochal.deployment import Deployment
from epochal.dynamo.aws_errors import translate_errors
from epochal.dynamo.clients import service_client
from epochal.dynamo.interpreter import database_name
from epochal.dynamo.stores import Place
from epochal.dynamo.table_kinds import distinct
from epochal.errors import InvalidInput, InvalidRequest, MissingTable
from epochal.feed.reader import FeedReader
from epochal.http.nodes import Node
from epochal.http.tagged_requests import event_of
from epochal.layout.registry import declared, layout_named, layouts_in
from epochal.lazy_dataclasses import dataclass
from epochal.model.events import Event
from epochal.model.moments import Moment
from epochal.plugins import layouts
from epochal.settings import FOUND_BY, Settings
from epochal.store.driver import SIDE_BY_SIDE
from epochal.store.reading import StreamState
from epochal.store.streams import Streams
from epochal.store.tagged import TaggedStore
from epochal.store.tagged_importer import Importer, TaggedImporter

T = TypeVar("T")

_URL = re.compile(r"https?://[^/\s]+")

TABLES = {
    setting.flag: (setting.name, setting.table)
    for setting in declared().values()
    if setting.option and setting.table
}
"""Options that name tables: the settings they are, and the kinds that the tables must be of."""


MOST_WORKERS: Final = 4
"""Unless more are asked for: they share a machine with what its user does."""

INDEX = "index_table"
"""The setting that names the table which every store has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The store that the user has chosen, by options; an empty field was not given."""

    settings: Settings
    stack: str = ""
    endpoint: str = ""
    region: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSize:
    """The name, number of items and bytes of a table, as DynamoDB has them; up to six hours old on AWS."""

    name: str
    items: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedStore:
    """A store that is open, with what commands need of it.

    Attributes:
        sizes: reads the sizes of the store's tables.
        client: makes a client of another AWS service, where the store is.
        tagged_in: kinds of the tables that hold the tagged events.
        event_of: reads a tagged event from the HTTP API's JSON.
        importer: imports a history into the tagged events.
    """

    deployment: Deployment
    streams: Streams
    tagged: TaggedStore
    feed: FeedReader
    sizes: Callable[[], list[TableSize]]
    client: Callable[[str], Any]
    tagged_in: Sequence[str] = ("streams",)
    event_of: Callable[[Node], Event] = event_of
    importer: Callable[..., Importer] = TaggedImporter

    @classmethod
    def of(
        cls, deployment: Deployment, sizes: Callable[[], list[TableSize]], client: Callable[[str], Any]
    ) -> OpenedStore:
        """Return the opened store of a deployment, with functions that read sizes and make clients."""
        return cls(
            deployment=deployment,
            streams=deployment.streams,
            tagged=deployment.tagged,
            feed=deployment.feed,
            sizes=sizes,
            client=client,
        )


def pass_store(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command so that it gets the store, opened when it runs: `--help` and mistakes need none."""

    @click.pass_obj
    @wraps(command)
    def opened(opener: Callable[[], OpenedStore], *args: Any, **options: Any) -> None:
        command(opener(), *args, **options)

    return opened


def given(part_of: Callable[[OpenedStore], Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a decorator for commands with `--json` that get what `part_of` takes from the store."""

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        @pass_store
        @wraps(command)
        def called(store: OpenedStore, **options: Any) -> None:
            command(part_of(store), **options)

        return output.with_json(called)

    return decorated


def _streams(store: OpenedStore) -> Streams:
    """The streams of the store; raises where the stage has no table for them."""
    layout = store.streams.layout.name
    table = layout_named(layout).table
    must_be_named(f"is needed for streams in the {layout} layout", **{table: store.streams.table})
    return store.streams


on_store = given(lambda store: store)
on_streams = given(_streams)


def existing(
    streams: Streams, stream: str, *, fetch: bool = True, as_of: int | Moment | None = None
) -> StreamState:
    """Load the state of a stream, with events only if `as_of` is given; raise `NotThere` without such a stream."""
    state = streams.load(stream, fetch=fetch, as_of=as_of, events=as_of is not None)
    return stream_there(stream, state)


def stream_there(stream: str, value: T | None) -> T:
    """Return what was found of a stream, or raise `NotThere` where that is None."""
    return there(value, f"{stream}: there is no such stream; `epochal streams` lists all streams")


def open_store(choice: Choice) -> OpenedStore:
    """Open the store that the user has chosen: by its tables, its stack or, without either, the local one.

    Raises:
        NoStore: no table or stack was named, and nothing is deployed from here.
        NotThere: there is no such stack, or it is not the one that holds a store's tables.
        InvalidInput: tables are named, and not those that every store has.
    """
    if choice.endpoint and not _URL.match(choice.endpoint):
        raise InvalidInput("--endpoint", "must be a URL such as http://127.0.0.1:4566")
    settings = _outputs(choice) if choice.stack else choice.settings
    names = {name: settings.value(name) for name, _ in TABLES.values()}
    if not any(names.values()):
        return _default()
    distinct(**{option: names[name] for option, (name, _) in TABLES.items()})
    must_be_named("is also needed when another table is named", **{INDEX: names[INDEX]})
    if not layouts_in(settings):
        heads = (declared()[layout.table].flag for layout in layouts())
        raise InvalidInput("tables", f"one of {', '.join(heads)} is also needed when another table is named")
    place = Place(endpoint=choice.endpoint or None, region=choice.region or None)
    # An archive's items are those of the table that it keeps: they do not tell which of the two they are in.
    kinds = {
        choice.settings.value(name): kind
        for name, kind in TABLES.values()
        if choice.settings.value(name) and not kind.endswith("archive")
    }
    client = partial(service_client, endpoint=place.endpoint, region=place.region)
    return opened_in(place.deployment(settings, at_once=SIDE_BY_SIDE, kinds=kinds), client)


def without_inherited_places(context: click.Context, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options without the tables and other places that come from the environment.

    They belong to the store of which the environment was made, and not to the stack that the command line names.
    """
    places = {
        name
        for name, setting in declared().items()
        if isinstance(setting.kind, Text)
        and context.get_parameter_source(name) is ParameterSource.ENVIRONMENT
    }
    return {name: value for name, value in options.items() if name not in places}


def side_by_side(workers: int | None) -> tuple[Choice | None, int]:
    """Return how worker processes open the store, None if they cannot, and how many there should be.

    A store that a program has opened itself is in that process alone, so it has one worker.
    """
    opener = click.get_current_context().find_root().obj
    of_stage = isinstance(opener, partial) and opener.func is open_store
    if workers is None:
        workers = min(MOST_WORKERS, os.cpu_count() or 1) if of_stage else 1
    if workers > 1 and not of_stage:
        raise click.UsageError("--workers above 1 needs a store that every process can open.")
    return (opener.args[0] if of_stage else None), workers


def _default() -> OpenedStore:
    open_default = extensions.part("default_store")
    if open_default is None:
        raise NoStore("there is no default store")
    opened: OpenedStore = open_default()
    return opened


def opened_in(deployment: Deployment, client: Callable[[str], Any]) -> OpenedStore:
    """Make the store of a deployment, with a function that makes clients of other services."""

    def sizes() -> list[TableSize]:
        dynamodb = client("dynamodb")
        return [_size(dynamodb, name) for name in tables_of(deployment.settings).values()]

    return OpenedStore.of(deployment, sizes, client)


def tables_of(settings: Settings) -> dict[str, str]:
    """The names of all tables of a store, by the names of their settings."""
    return {name: settings.value(name) for name, _ in TABLES.values() if settings.value(name)}


def _size(dynamodb: Any, name: str) -> TableSize:
    """Read the size of a table."""
    table = describe_table(dynamodb, name)
    return TableSize(name=name, items=table["ItemCount"], bytes=table["TableSizeBytes"])


def describe_table(dynamodb: Any, name: str) -> Mapping[str, Any]:
    """Return DynamoDB's description of a table; raise `MissingTable` if it does not exist.

    Raises:
        MissingTable: it does not exist there.
    """
    try:
        with translate_errors("DescribeTable"):
            described: Mapping[str, Any] = dynamodb.describe_table(TableName=name)["Table"]
    except InvalidRequest as error:
        if error.code != "ResourceNotFoundException":
            raise
        raise MissingTable(
            name, database_name(dynamodb.meta.region_name, dynamodb.meta.endpoint_url)
        ) from error
    return described


def _outputs(choice: Choice) -> Settings:
    """Return settings with places from a stack's outputs; raise `NotThere` if it lacks them.

    Options that name places win over the outputs.
    """
    client = service_client(
        "cloudformation", endpoint=choice.endpoint or None, region=choice.region or None, retried=True
    )
    stack_name, begin = _one_of_several(choice.stack)
    try:
        with translate_errors("DescribeStacks"):
            (stack,) = client.describe_stacks(StackName=stack_name)["Stacks"]
    except InvalidRequest as error:
        why = f"{error.message}: deploy first, or check the name, --region and the account"
        raise NotThere(f"stack {choice.stack}: {why}") from error
    outputs: Mapping[str, str] = {
        declared_setting["OutputKey"].removeprefix(begin): declared_setting["OutputValue"]
        for declared_setting in stack.get("Outputs", ())
        if declared_setting["OutputKey"].startswith(begin)
    }
    if not outputs.keys() >= set(FOUND_BY):
        why = f"has no outputs {', '.join(FOUND_BY)}: name the stack of the tables"
        raise NotThere(f"stack {choice.stack}: {why}")
    settings = Settings.from_outputs(outputs)
    known_outputs = {
        declared_setting.name
        for declared_setting in declared().values()
        if declared_setting.output in outputs and not _is_named(declared_setting, choice)
    }
    return choice.settings.having(**{name: settings.value(name) for name in known_outputs})


def _one_of_several(stack: str) -> tuple[str, str]:
    """Split `shop/AuditLog` into a stack and what the outputs of that store in it begin with."""
    if stack.startswith("arn:"):
        return stack, ""
    name, _, begin = stack.partition("/")
    return name, begin


def _is_named(setting: Setting, choice: Choice) -> bool:
    """Whether the user has named this place, which then wins over the stack's output."""
    return isinstance(setting.kind, Text) and choice.settings.value(setting.name) != setting.default


def _option(setting: Setting) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds the command-line option of a setting."""

    def named(**more: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
        return click.option(setting.flag, envvar=setting.variable, **more)

    def parsed(_: click.Context, option: click.Parameter, text: str) -> Any:
        return setting.parse(text, option.opts[0])

    # The stack knows its own.
    help_ = f"{setting.help}. It is used only if the tables are named."
    match setting.kind:
        case Number(least=least, most=most):
            return named(default=setting.default, type=click.IntRange(least, most), help=help_)
        case OneOf(of=choices):
            return named(default=setting.default, type=click.Choice(choices), help=help_)
        case Flag():
            return named(is_flag=True, help=help_)
        case Names():
            return named(default="", callback=parsed, help=help_)
        case Text():
            return named(default=setting.default, help=f"{setting.help}.")


def store_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that choose a store to a command."""
    places = [setting for setting in declared().values() if setting.option and isinstance(setting.kind, Text)]
    others = [setting for setting in declared().values() if setting.option and setting not in places]
    options: list[Callable[[Callable[..., None]], Callable[..., None]]] = [
        # boto3 reads AWS_DEFAULT_REGION alone; the AWS command line, CDK and Lambda go by this name.
        click.option(
            "--region",
            default="",
            envvar="AWS_REGION",
            help="AWS region of the store. The default is that of the AWS configuration.",
        ),
        click.option(
            "--endpoint",
            default="",
            envvar="EPOCHAL_ENDPOINT",
            help="URL of another AWS endpoint, such as an embedded one.",
        ),
        *map(_option, reversed([*places, *others])),
        click.option(
            "--stack",
            default="",
            envvar="EPOCHAL_STACK",
            help="CloudFormation stack that holds the "
            "tables. The default is what `epochal "
            "local up` deployed here.",
        ),
    ]
    for option in options:
        command = option(command)
    return command
