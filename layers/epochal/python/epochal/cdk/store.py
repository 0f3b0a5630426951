"""A store of events in a stack of one's own.

    from epochal.cdk import EventStore, Reaction

    class Shop(Stack):
        def __init__(self, scope: Construct, id_: str) -> None:
            super().__init__(scope, id_)
            store = EventStore(self, "Events", retain=True, recovery_days=35)
            store.grant_append(checkout)
            self.store = store

    class Boards(Stack):
        def __init__(self, scope: Construct, id_: str, *, store: EventStore) -> None:
            super().__init__(scope, id_)
            Reaction(self, "Board", store=store, entry="reactions/board", handler="board:departures")

It holds what a stage of ours is: tables and a bucket, the indexer and the auditor, an HTTP API, alarms
and a dashboard. It asks nothing of the app around it: neither context nor folders, and any number of stores may be in
one app.

What reactions, functions and programs beside a store need to know of it, `Store` has, wherever that is deployed. A
construct in the store's own stack refers to its tables. One in another stack finds them by their names, which are the
same whenever they are told: no stack exports anything, so none holds up a change of another.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypedDict, Unpack

from aws_cdk import ArnFormat, Stack, Token
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from constructs import Construct

from epochal import extensions
from epochal.cdk.parts import grants
from epochal.cdk.parts.api import Api
from epochal.cdk.parts.feed import Feed
from epochal.cdk.parts.functions import Code, Layers, Shared, settings_of
from epochal.cdk.parts.guard import SettingsGuard
from epochal.cdk.parts.principals import (
    add_statements,
    refuse_no_grantee,
    refuse_other_accounts,
    stack_of,
)
from epochal.cdk.parts.storage import Storage, Stores, topic_of, whose
from epochal.cdk.parts.watch import Watch, watch_api, watch_mappings
from epochal.cdk.sources import Sources, Target, code_of, fitted, known_python, target_told
from epochal.cdk.stages import STAGES, BadSetting, Stage, changed, known_are
from epochal.plugins import NATIVE, layouts, own_settings
from epochal.settings import LAMBDA_PYTHON

MakeCode = Callable[[str | None, lambda_.Architecture | None], Code]
"""The library and what it needs for a Python and a processor; for the store's own where none is said."""


class Store(Construct):
    """A store: one of this app (`EventStore`), or one that is deployed already (`EventStore.from_name`).

    Attributes:
        stage: what its deployment has chosen.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        stage: Stage,
        code: MakeCode,
        layers: Layers | None = None,
    ) -> None:
        super().__init__(scope, id_)
        refuse_tables_elsewhere(self, stage)
        self.stage: Final = stage
        self._make: Final = code
        self._made: Final[dict[tuple[str, str], Code]] = {}
        self._layers: Final = layers
        self._reactions: Final[dict[str, str]] = {}

    def add_reaction(self, name: str, path: str) -> None:
        """Note the reaction of a name, and the path of its construct.

        Raises:
            BadSetting: another construct is the reaction of that name.
        """
        other = self._reactions.setdefault(name, path)
        if other != path:
            must = f"must be another name: {other} has it, and the checkpoints of a reaction are kept by its name"
            raise BadSetting(f"reactions.{name}", must)

    def code(self, python: str | None = None, architecture: lambda_.Architecture | None = None) -> Code:
        """The library, for functions that use the store: fetched when the first one of a Python and processor does.

        Raises:
            BadSetting: functions cannot run on that Python.
            InstallerFailed: pip could not fetch what they need.
        """
        if python is not None:
            known_python("python", python)
        key = (python or "", architecture.name if architecture else "")
        if key not in self._made:
            self._made[key] = self._make(python, architecture)
        return self._made[key]

    def layers(
        self,
        scope: Construct,
        *,
        python: str | None = None,
        architecture: lambda_.Architecture | None = None,
    ) -> Layers:
        """The library and its pins for functions in the stack of `scope`: `function.add_layers(*…versions)`.

        They are for the store's Python and processor, unless others are said.
        """
        if self._layers is not None and python is None and architecture is None:
            return self._layers
        return Layers.of(scope, self.code(python, architecture))

    def stores(self, scope: Construct) -> Stores:
        """Tables and bucket as a construct in `scope` refers to them.

        Raises:
            BadSetting: it is deployed to another account or region.
        """
        refuse_elsewhere(self, scope)
        return Stores.named(scope, self.stage)

    def topic_arn(self, scope: Construct) -> str:
        """The topic that tells which partitions have moved."""
        return Stack.of(scope).format_arn(
            service="sns", resource=topic_of(self.stage), arn_format=ArnFormat.NO_RESOURCE_NAME
        )

    def grant_append(self, grantee: iam.IGrantable) -> None:
        """Let a role, user or group, or what has a role, append, prune and delete.

        A function of the app also gets the variables that say where: `EPOCHAL_STREAMS_TABLE`, `EPOCHAL_BUCKET`. Other
        programs get them from `environment`.

        Raises:
            BadSetting: the grantee has no identity policy in the store's account.
        """
        self._grant(grantee, "append")

    def grant_read(self, grantee: iam.IGrantable) -> None:
        """Let a grantee read streams; as `grant_append` otherwise."""
        self._grant(grantee, "read")

    def grant_feed(self, grantee: iam.IGrantable) -> None:
        """Let a grantee read the feed, with the events of every layout; as `grant_append` otherwise."""
        self._grant(grantee, "feed")

    def environment(self, scope: Construct, access: Access) -> dict[str, str]:
        """The environment variables that tell a program where the store is, as for a container of ECS.

        Args:
            scope: the program's construct.
            access: what it was granted.
        """
        stores = self.stores(Construct(scope, f"EpochalEnvironmentTo{access.title()}{self.node.addr}"))
        return settings_of(self.stage, stores).environment(_FUNCTIONS[access])

    def _grant(self, grantee: iam.IGrantable, access: Access) -> None:
        """Let a grantee do what our own function of that access does."""
        where, like = f"grant_{access}", _FUNCTIONS[access]
        refuse_no_grantee(where, grantee)
        is_function = isinstance(grantee, lambda_.Function)
        # Names are resolved for the grantee's stack. Of a function the constructs are below it.
        below = grantee if isinstance(grantee, lambda_.Function) else stack_of(grantee, self)
        suffix = self.node.addr if is_function else f"{self.node.addr}{_address(grantee)}"
        stores = self.stores(Construct(below, f"EpochalTo{access.title()}{suffix}"))
        refuse_other_accounts(where, grantee, self)
        add_statements(where, grantee, grants.allowed(like, self.stage, stores))
        if isinstance(grantee, lambda_.Function):
            for name, value in settings_of(self.stage, stores).environment(like).items():
                grantee.add_environment(name, value)


Access = Literal["append", "read", "feed"]
"""What a program may be granted."""

_FUNCTIONS: Final[Mapping[Access, str]] = {"append": "append", "read": "replay", "feed": "feed"}
"""The functions of ours that do the same."""


def _address(grantee: iam.IGrantable) -> str:
    """What tells a grantee from others of its stack."""
    node = getattr(grantee, "node", None) or getattr(grantee.grant_principal, "node", None)
    return "" if node is None else node.addr


# A store is used in its own account and region: what would look for it elsewhere is refused before it is deployed.
#
# Names say nothing of an account, so a function in another one would look for tables of its own account by those
# names, and find none, or another store's. What a stack does not say is not compared.

INSTEAD = (
    "publish its events to the other account, or let the function there assume a role of the store's account"
)


def refuse_elsewhere(store: Construct, scope: Construct) -> None:
    """Raise `BadSetting` where what is in `scope` is deployed to another account or region than `store`."""
    there = Stack.of(store)
    for what, its, own in _differing(Stack.of(scope), there.account, there.region):
        rule = f"is in {what} {its}, and {scope.node.path} in {own}: a store is used where it is; {INSTEAD}"
        raise BadSetting(f"store {store.node.path}", rule)


def refuse_tables_elsewhere(scope: Construct, stage: Stage) -> None:
    """Raise `BadSetting` where a table that is taken over is in another account or region than the stack's."""
    for kind, arn in stage.existing_tables.items():
        _, _, _, region, account, *_ = arn.split(":")
        for what, its, own in _differing(Stack.of(scope), account, region):
            rule = (
                f"must be in {what} {own}, where the stack goes, not in {its}: functions know it by its name"
            )
            raise BadSetting(f"existing_{kind.replace('-', '_')}", rule)


def _differing(stack: Stack, account: str, region: str) -> Iterator[tuple[str, str, str]]:
    """What differs of another place, what it is there, and what it is where the stack goes."""
    for what, its, own in (("account", account, stack.account), ("region", region, stack.region)):
        if its != own and not Token.is_unresolved(its) and not Token.is_unresolved(own):
            yield what, its, own


NAME_LENGTH: Final = 26
"""Of a store's name: the longest that is made of it is a bucket's, with account and region, of at most 63."""

_NAME: Final = re.compile(rf"[a-z][a-z0-9-]{{1,{NAME_LENGTH - 2}}}[a-z0-9]")
_DIGEST: Final = 6


class EventStore(Store):
    """A store of events, with all that looks after it.

    Attributes:
        tables: by their kinds, as `streams` and `index`.
        bucket: of what is too large for an item.
        indexer: the function that indexes what is appended.
        functions: of the HTTP API; none where there is no API.
        gateway: the HTTP API; None where there is none, or functions have addresses of their own.
        dashboard: None where nothing is watched.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        name: str | None = None,
        preset: Preset = "dev",
        api: Literal["gateway", "urls"] | None = "gateway",
        watch: bool = True,
        python: str = LAMBDA_PYTHON,
        architecture: lambda_.Architecture | None = None,
        **options: Unpack[StoreOptions],
    ) -> None:
        """Add a store to a stack.

        Args:
            scope: the stack, or a construct in it.
            id_: the construct's.
            name: what tables, bucket, functions and alarms are called after, at most 26 characters. It is made of the
                stack's name and `id_` where it is not given. Another name is another store.
            preset: settings to begin with; `dev` lets tables go with their stack.
            api: how the HTTP API is reached; None for no API.
            watch: make alarms on all of it, and a dashboard.
            python: of the functions.
            architecture: of the functions; ARM where it is not given.
            options: settings, as docs/deploy.md explains them.

        Raises:
            BadSetting: an option breaks its rule.
            InstallerFailed: pip could not fetch what functions need.
        """
        target = target_told(os.environ)
        name = _made_of(scope, id_) if name is None else name
        stage = _stage(name, preset, target, {**options, **({"api": api} if api else {})})
        super().__init__(scope, id_, stage=stage, code=_code(stage, python, architecture, target))
        layers, outputs = self.layers(self), whose(self, id_)
        storage = Storage(Construct(self, "Store"), stage=stage, outputs=outputs)
        self._stores: Final = storage.stores
        self.tables: Final = self._stores.tables
        self.bucket: Final = self._stores.bucket
        shared = Shared(stage=stage, stores=self._stores, code=self.code(), layers=layers, outputs=outputs)
        agreed = SettingsGuard(self, "Guard", shared).agreed
        parts = [Construct(self, "Feed")]
        feed = Feed(parts[0], shared, storage.streams, storage.changes)
        self.indexer: Final = feed.indexer
        self._topic: Final = feed.notices.topic.topic_arn
        if stage.timers:
            timers = extensions.required_part("construct", "timers")
            parts.append(timers(self, "Timers", store=self, shared=shared, notices=feed.notices))
        served = None
        if api:
            parts.append(Construct(self, "Api"))
            served = Api(parts[-1], shared)
        for part in parts:
            part.node.add_dependency(agreed)
        self.functions: Final = served.functions if served else {}
        self.gateway: Final = served.gateway if served else None
        # The embedded AWS knows no alarms on several metrics.
        watched = self._watch(stage, feed, served) if watch and target is Target.AWS else None
        self.dashboard: Final = watched.dashboard if watched else None

    def _watch(self, stage: Stage, feed: Feed, api: Api | None) -> Watch:
        scope = Construct(self, "Watch")
        watch_mappings(Construct(scope, "Mappings"), stage=stage, feed=feed)
        if api:
            watch_api(Construct(scope, "Api"), stage=stage, api=api)
        return Watch(scope, stage=stage, stores=self._stores, functions=self.functions)

    @classmethod
    def from_name(
        cls,
        scope: Construct,
        id_: str,
        name: str,
        *,
        preset: Preset = "dev",
        python: str = LAMBDA_PYTHON,
        architecture: lambda_.Architecture | None = None,
        **options: Unpack[StoreOptions],
    ) -> Store:
        """A store that is deployed already, in the account and region of the stack around `scope`.

        Args:
            scope: the stack, or a construct in it.
            id_: the construct's.
            name: the store's; of a stage of a checkout, `epochal-prod`.
            preset, options: as it was deployed. What matters are layouts, tenants, keys of aggregates, an archive, and
                tables and a bucket of other names.
            python, architecture: of functions and reactions here.

        Raises:
            BadSetting: an option breaks its rule.
            InstallerFailed: pip could not fetch what functions need.
        """
        target = target_told(os.environ)
        stage = fitted(stage_of(name, preset, options), target)
        return Store(scope, id_, stage=stage, code=_code(stage, python, architecture, target))

    def stores(self, scope: Construct) -> Stores:
        """Tables and bucket as a construct in `scope` refers to them: in another stack, by their names."""
        if self._is_around(scope):
            return self._stores
        found = super().stores(scope)
        # Names say nothing about who has to be there first.
        Stack.of(scope).add_stack_dependency(Stack.of(self))
        return found

    def topic_arn(self, scope: Construct) -> str:
        """The topic that tells which partitions have moved."""
        return self._topic if self._is_around(scope) else super().topic_arn(scope)

    def _is_around(self, scope: Construct) -> bool:
        return Stack.of(scope).node.path == Stack.of(self).node.path


def _stage(name: str, preset: Preset, target: Target, options: Mapping[str, Any]) -> Stage:
    if not _NAME.fullmatch(name):
        rule = f"must be 3 to {NAME_LENGTH} lower-case letters, digits and hyphens, not {name!r}"
        raise BadSetting("EventStore.name", rule)
    return fitted(stage_of(name, preset, options), target)


def _made_of(scope: Construct, id_: str) -> str:
    """A name of the stack's name and the construct's path in it, cut where it is too long."""
    stack = Stack.of(scope)
    if Token.is_unresolved(stack.stack_name):
        raise BadSetting("EventStore.name", "must be given in a nested stack, whose name nobody knows yet")
    path = f"{stack.stack_name}{scope.node.path.removeprefix(stack.node.path)}/{id_}"
    plain = re.sub(r"[^a-z0-9]+", "-", path.lower()).strip("-")
    if len(plain) <= NAME_LENGTH:
        return plain
    digest = hashlib.sha256(path.encode()).hexdigest()[:_DIGEST]
    return f"{plain[: NAME_LENGTH - _DIGEST - 1].rstrip('-')}-{digest}"


def _code(stage: Stage, python: str, architecture: lambda_.Architecture | None, target: Target) -> MakeCode:
    known_python("EventStore.python", python)
    return lambda other, processor: code_of(
        Sources.shipped(),
        target,
        python=other or python,
        processor=processor or architecture,
        sdk=stage.boto3 == "tested",
        layouts=stage.brought_layouts(),
        schemas=stage.event_schemas,
    )


# What a store may be given: settings by their names, for editors and type checkers.
#
# docs/deploy.md explains each. Values obey the rules that those of `cdk.json` obey, but where CDK knows them only once
# they are deployed: the ARN of a key or topic of the same app.

Preset = Literal["dev", "staging", "prod"]
"""Settings to begin with: `dev` forgets, `staging` behaves like `prod` at a smaller size, `prod` keeps."""


class StoreOptions(TypedDict, total=False):
    """Settings of a store; one that is left out is as its preset has it.

    `existing` has the ARNs of tables that are there already, by their kinds, and `partitions` numbers by the layouts'
    names. A layout is its name, or its options, as `SekibanOptions(write_shards=4)`.
    """

    access_log_class: Literal["infrequent", "standard"]
    access_logs: bool
    alarm_topic: str | sns.ITopic
    archive: bool
    billing: Literal["on-demand", "provisioned"]
    boto3: Literal["runtime", "tested"]
    burst: int
    carrier: Literal["light", "boto3"]
    deletion_protection: bool
    existing: Mapping[str, str]
    existing_bucket: str
    feed_wait_seconds: int
    feed_window_seconds: int
    feed_batch_size: int
    feed_kinesis_shards: int
    keep: Sequence[str]
    jwt_audience: Sequence[str]
    infrequent_access: Sequence[str] | None
    jwt_issuer: str
    jwt_scopes: Mapping[str, Sequence[str]]
    kms_key: str | kms.IKey
    layouts: Sequence[object] | None
    log_days: int
    log_kms_key: str | kms.IKey
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"]
    max_read_units: int
    max_upload_bytes: int
    max_write_units: int
    min_read_units: int
    min_write_units: int
    partitions: Mapping[str, int]
    read_models: bool
    recovery_days: int
    replica_kms_key: str
    replica_region: str
    requests_per_second: int
    reserved_concurrency: Mapping[str, int]
    retain: bool
    retries: int | None
    route_limits: Mapping[str, int]
    tagged_everything: bool
    tagged_types: Sequence[str]
    timers: bool
    event_schemas: str
    unchecked_events: Literal["take", "refuse"]


def stage_of(name: str, preset: Preset, options: Mapping[str, Any]) -> Stage:
    """The settings of a store whose tables, functions and queues are called after `name`; its layout is pages, where
    others are not asked for. All there are is None, as in `cdk.json`.

    Raises:
        BadSetting: one is no setting, or breaks a rule.
    """
    if preset not in STAGES:
        raise BadSetting("preset", f"must be one of {', '.join(STAGES)}, not {preset!r}")
    values = _named(options)
    later = {key: each for key, each in values.items() if isinstance(each, str) and Token.is_unresolved(each)}
    now = {"layouts": [NATIVE], **{key: each for key, each in values.items() if key not in later}}
    return changed(STAGES[preset], now, where="EventStore", **later, name=name, prefix="")


_SAID_ELSEWHERE: Final[Mapping[str, str]] = {
    "name": "give `name` to EventStore itself",
    "prefix": "give EventStore a `name`, which begins the names of all that it makes",
    "account": "give the stack an `env` with the account",
    "region": "give the stack an `env` with the region",
    "tags": "use `Tags.of(store).add(…)` of aws_cdk",
    "reactions": "add a `Reaction` for each",
    "domain_name": "add a domain to `store.gateway`",
    "domain_certificate": "add a domain to `store.gateway`",
    "monthly_budget": "add a budget of `aws_cdk.aws_budgets`",
}
"""Settings of a stage that an app says by other means, which the construct would not see."""


def _named(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options by the names that settings have in `cdk.json`, where each table and each layout has its own."""
    for key, instead in _SAID_ELSEWHERE.items():
        if key in options:
            raise BadSetting(f"EventStore.{key}", f"is a setting of cdk.json alone: {instead}")
    there = {each.name: each for each in layouts()}
    values = {key: _plain(each) for key, each in options.items() if key not in ("existing", "partitions")}
    for kind, arn in _mapping(options, "existing", "by the kinds of tables, as {'streams': arn}").items():
        values[f"existing_{kind.replace('-', '_')}"] = arn
    for name, count in _mapping(options, "partitions", "by the names of layouts, as {'pages': 4}").items():
        if name not in there:
            raise BadSetting("EventStore.partitions", f"are of no layout {name}; {known_are(name, there)}")
        values[there[name].partitions] = count
    chosen_layouts = values.get("layouts")
    for place, each in enumerate(chosen_layouts if isinstance(chosen_layouts, list) else ()):
        layout = next((one for one in there.values() if one.part("options") is type(each)), None)
        if layout is not None:
            values["layouts"][place] = layout.name
            chosen = (name for name, one in own_settings(layout).items() if one.chosen)
            values |= {name: _plain(getattr(each, name)) for name in chosen}
    return values


def _mapping(options: Mapping[str, Any], key: str, names: str) -> Mapping[str, Any]:
    value = options.get(key, {})
    if not isinstance(value, Mapping):
        raise BadSetting(f"EventStore.{key}", f"must be an object {names}, not {value!r}")
    return value


def _plain(value: Any) -> Any:
    """A value as JSON has it, or an ARN."""
    for attribute in ("key_arn", "topic_arn"):
        if hasattr(value, attribute):
            return getattr(value, attribute)
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [*value] if isinstance(value, Sequence) and not isinstance(value, str) else value
