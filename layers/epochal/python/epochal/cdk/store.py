"""A store of events as a construct for any CDK stack.

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

The construct contains the same resources as a stage: tables and a bucket, the indexer and the auditor, an HTTP API,
alarms and a dashboard. It needs no context or folders of the app, and an app may have any number of stores.

`Store` has the names and permissions that reactions, functions and other programs need, wherever the store is deployed.
A construct in the store's own stack refers to its tables. A construct in another stack finds them by their names, which
do not change: no stack exports anything, so no stack blocks a change of another.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, Unpack

from aws_cdk import ArnFormat, Stack, Token
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from epochal import extensions
from epochal.cdk.arguments import an_instance, checked_arguments
from epochal.cdk.parts import grants
from epochal.cdk.parts.api import Api
from epochal.cdk.parts.feed import Feed
from epochal.cdk.parts.function_settings import settings_of
from epochal.cdk.parts.functions import Code, Layers, Shared
from epochal.cdk.parts.guard import SettingsGuard
from epochal.cdk.parts.outputs import claim_output_prefix
from epochal.cdk.parts.principals import (
    add_statements,
    refuse_no_grantee,
    refuse_other_accounts,
    stack_of,
)
from epochal.cdk.parts.resource_names import topic_of
from epochal.cdk.parts.storage import Storage
from epochal.cdk.parts.stores import Stores
from epochal.cdk.parts.watch import Watch, watch_api, watch_mappings
from epochal.cdk.placement import refuse_elsewhere, refuse_tables_elsewhere
from epochal.cdk.rules import BadSetting, Rule, a_flag, a_text, one_of, or_null
from epochal.cdk.sources import Sources, code_of
from epochal.cdk.stages import RULES, STAGES, Stage
from epochal.cdk.store_options import Preset, StoreOptions, stage_of
from epochal.cdk.targets import PYTHONS, Target, check_python, fit_stage, target_from_environment
from epochal.settings import LAMBDA_PYTHON

MakeCode = Callable[[str | None, lambda_.Architecture | None], Code]
"""Function from a Python version and a processor to the functions' code; None stands for the store's own."""


class Store(Construct):
    """A store of this app (`EventStore`), or one that is already deployed (`EventStore.from_name`).

    Attributes:
        stage: settings of the store's deployment.
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
        """Make a construct that refers to a store; `EventStore` adds the store's resources.

        Args:
            scope: the stack, or a construct in it.
            id_: id of the construct.
            stage: settings of the store's deployment.
            code: function that makes the functions' code.
            layers: the library's layers for constructs in any stack; None to make layers in each stack.

        Raises:
            BadSetting: an existing table is in another account or region.
        """
        super().__init__(scope, id_)
        refuse_tables_elsewhere(self, stage)
        self.stage: Final = stage
        self._make: Final = code
        self._made: Final[dict[tuple[str, str], Code]] = {}
        self._layers: Final = layers
        self._reactions: Final[dict[str, str]] = {}

    def add_reaction(self, name: str, path: str) -> None:
        """Record the construct at `path` under a reaction's name; raise `BadSetting` if another has the name.

        Args:
            name: name of the reaction.
            path: path of the construct.

        Raises:
            BadSetting: another construct has registered that name.
        """
        other = self._reactions.setdefault(name, path)
        if other != path:
            must = (
                f"must have a different name: {other} already has it, "
                "and checkpoints of a reaction are stored under its name"
            )
            raise BadSetting(f"reactions.{name}", must)

    def code(self, python: str | None = None, architecture: lambda_.Architecture | None = None) -> Code:
        """Return the library's code for functions on a Python version and processor, fetched on first use.

        Args:
            python: Python version `major.minor`; None for the store's.
            architecture: processor; None for the store's.

        Raises:
            BadSetting: functions cannot run on that Python.
            InstallerFailed: pip could not fetch the functions' packages.
        """
        if python is not None:
            check_python("python", python)
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
        """Return the layers of the library and its pinned packages for functions in the stack of `scope`.

        A function takes them by `function.add_layers(*layers.versions)`. They are for the store's Python and
        processor, unless others are given.

        Args:
            scope: construct in the stack that gets the layers.
            python: version of Python, such as `3.13`; None for the store's.
            architecture: processor of the functions; None for the store's.
        """
        if self._layers is not None and python is None and architecture is None:
            return self._layers
        return Layers.of(scope, self.code(python, architecture))

    def stores(self, scope: Construct) -> Stores:
        """Refer to the store's tables and bucket by name; raise `BadSetting` if `scope` is deployed elsewhere.

        Args:
            scope: construct that refers to the tables.

        Raises:
            BadSetting: the construct is deployed to another account or region.
        """
        refuse_elsewhere(self, scope)
        return Stores.named(scope, self.stage)

    def topic_arn(self, scope: Construct) -> str:
        """Return the ARN of the topic that publishes which partitions have new events.

        Args:
            scope: construct that refers to the topic.
        """
        return Stack.of(scope).format_arn(
            service="sns", resource=topic_of(self.stage), arn_format=ArnFormat.NO_RESOURCE_NAME
        )

    def grant_append(self, grantee: iam.IGrantable) -> None:
        """Allow a role, user, group, or construct with a role to append to, prune and delete streams.

        A function of the app also gets the environment variables of the store: `EPOCHAL_STREAMS_TABLE`,
        `EPOCHAL_BUCKET`. Other programs get them from `environment`.

        Args:
            grantee: role, user, group, or construct with a role.

        Raises:
            BadSetting: the grantee has no identity policy in the store's account.
        """
        self._grant(grantee, "append")

    def grant_read(self, grantee: iam.IGrantable) -> None:
        """Allow a grantee to read streams; grantees, variables and errors are those of `grant_append`.

        Args:
            grantee: role, user, group, or construct with a role.
        """
        self._grant(grantee, "read")

    def grant_feed(self, grantee: iam.IGrantable) -> None:
        """Allow a grantee to read the feed, with the events of every layout.

        Grantees, variables and errors are those of `grant_append`.

        Args:
            grantee: role, user, group, or construct with a role.
        """
        self._grant(grantee, "feed")

    def environment(self, scope: Construct, access: Access) -> dict[str, str]:
        """Return the environment variables with which a program finds the store, such as an ECS container.

        Args:
            scope: construct of the program.
            access: access that the program was granted.
        """
        stores = self.stores(Construct(scope, f"EpochalEnvironmentTo{access.title()}{self.node.addr}"))
        return settings_of(self.stage, stores).environment(_FUNCTIONS[access])

    def _grant(self, grantee: iam.IGrantable, access: Access) -> None:
        """Grant access to the store by a grantee's policy; a function also gets the environment variables.

        A function also gets the environment variables of the store.
        """
        where, like = f"grant_{access}", _FUNCTIONS[access]
        refuse_no_grantee(where, grantee)
        is_function = isinstance(grantee, lambda_.Function)
        # Names are resolved for the grantee's stack. For a function, the constructs are its children.
        below = grantee if isinstance(grantee, lambda_.Function) else stack_of(grantee, self)
        suffix = self.node.addr if is_function else f"{self.node.addr}{_address(grantee)}"
        stores = self.stores(Construct(below, f"EpochalTo{access.title()}{suffix}"))
        refuse_other_accounts(where, grantee, self)
        add_statements(where, grantee, grants.allowed(like, self.stage, stores))
        if isinstance(grantee, lambda_.Function):
            for name, value in settings_of(self.stage, stores).environment(like).items():
                grantee.add_environment(name, value)


Access = Literal["append", "read", "feed"]
"""Kinds of access that a program may be granted."""

_FUNCTIONS: Final[Mapping[Access, str]] = {"append": "append", "read": "replay", "feed": "feed"}
"""Functions of Epochal that have the same access, by kind of access."""


def _address(grantee: iam.IGrantable) -> str:
    """Return the address of a grantee's construct, unique in its stack; empty where it has no construct."""
    node = getattr(grantee, "node", None) or getattr(grantee.grant_principal, "node", None)
    return "" if node is None else node.addr


NAME_LENGTH: Final = 26
"""Most characters of a store's name: a bucket's name, made of it with account and region, has at most 63."""

_NAME: Final = rf"[a-z][a-z0-9-]{{1,{NAME_LENGTH - 2}}}[a-z0-9]"
_DIGEST: Final = 6

_RULES: Final[Mapping[str, Rule]] = {
    "name": or_null(a_text(_NAME, f"3 to {NAME_LENGTH} lower-case letters, digits and hyphens")),
    "preset": one_of(*STAGES),
    "api": or_null(one_of("gateway", "urls")),
    "watch": a_flag,
    "python": one_of(*PYTHONS),
    "architecture": or_null(an_instance(lambda_.Architecture, "an Architecture of aws_lambda")),
}
"""Rules of the arguments of a store that are no settings."""

_DEPLOYED: Final = a_text(
    r"[a-z][a-z0-9-]*[a-z0-9]", "the name of a store, such as shop-events or epochal-prod"
)


class EventStore(Store):
    """A store of events: tables and a bucket, the indexer and the auditor, an HTTP API, and alarms.

    Attributes:
        tables: tables by their kinds, such as `streams` and `index`.
        bucket: bucket of bodies and states that are too large for an item.
        indexer: the function that indexes appended events.
        functions: functions of the HTTP API by name; empty where there is no API.
        gateway: the HTTP API; None where there is none, or its functions have URLs instead.
        dashboard: the CloudWatch dashboard; None where nothing is watched.
    """

    @checked_arguments("EventStore", _RULES, options=RULES)
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
        """Add a store to a stack: tables, bucket and feed, and unless left out an HTTP API and alarms.

        Args:
            scope: the stack, or a construct in it.
            id_: id of the construct.
            name: first part of the names of tables, bucket, functions and alarms, at most 26 characters. None makes it
                of the stack's name and `id_`. Another name is another store.
            preset: stage whose settings are the defaults; with `dev`, tables are deleted with their stack.
            api: access to the HTTP API: one gateway, or function URLs; None for no API.
            watch: whether to make alarms and a dashboard.
            python: Python version of the functions.
            architecture: processor of the functions; None for ARM.
            retain: whether tables and buckets are kept when their stacks are deleted.
            deletion_protection: whether tables and stacks refuse to be deleted.
            recovery_days: days back to which tables can be restored, to any second; 0 turns this off.
            boto3: `runtime` uses the boto3 that Lambda provides. `tested` adds a layer of 17 MB with the version of
                the tests.
            billing: `provisioned` scales tables between the minimum and the maximum below, starting at the minimum.
                When you switch to it, first raise the minimum to what the table needs, and lower it a day later.
            min_read_units, min_write_units: with `provisioned` billing, the minimum of each table.
            max_read_units, max_write_units: maximum of units a second of each table. 0 means the limit of the
                account.
            warm_read_units, warm_write_units: units a second that each table and index accepts immediately, for a
                single payment. 0 means what DynamoDB gives a new table: 12,000 and 4,000. Set them before a launch
                or an import. You can raise them or remove them, but not lower them.
            log_days: number of days that logs are kept, one of the values that CloudWatch accepts.
            log_kms_key: key for logs, or its ARN. Its policy must let CloudWatch Logs use it.
            log_level: lowest level that functions log.
            access_logs: whether each request is logged in a line, which names the route and never the stream.
            access_log_class: with `infrequent`, only Logs Insights can read the access logs. `standard` costs twice
                as much, and CloudWatch can also tail, filter and forward them.
            requests_per_second, burst: limits of the API as a whole. Requests above them are answered with 429.
            route_limits: limits of single routes, in requests a second and as bursts, such as `{"GET
                /feed/{partition}": 20}`.
            max_upload_bytes: largest upload to the bucket in bytes, at most 1 GiB.
            event_schemas: path of a file that `epochal schema` has printed. The HTTP API then accepts only events
                that conform to it.
            unchecked_events: whether the HTTP API accepts events that have no schema (`take`) or not (`refuse`).
            keep: how many events the streams of a category keep, such as `["Visit:100", "Log:30d",
                "Trace:100:30d"]`.
            feed_wait_seconds: longest time in seconds that a reader may wait at the tail of the feed (`wait`), 0 to
                20.
            feed_window_seconds: time in seconds for which the indexer gathers appends before it writes them, 0 to
                300. A longer window makes the feed later, and cheaper with few appends or many shards.
            feed_batch_size: largest number of appends that the indexer receives at a time, 1 to 10,000, like
                Propulsion's `--batchSize`. Lambda ends a batch at 6 MB.
            feed_kinesis_shards: shards of a Kinesis stream, 0 to 200, 11 dollars a month each. Not available for
                `existing_*` tables or on the embedded AWS.
            reserved_concurrency: number of concurrent invocations that are reserved for a function, which is also
                its maximum. At least 100 of the account must remain unreserved.
            kms_key: key for tables and buckets, or its ARN; empty for keys that AWS owns. The stack must name its
                region.
            queue_kms_key: key for the queues of reactions and timers, or its ARN. Its policy must let SNS use it.
                Not available on the embedded AWS.
            environment_kms_key: key for the functions' environment variables, or its ARN. Not available on the
                embedded AWS.
            replica_region: second region, with a replica of every table for reads and failover. Deploy this change
                by itself. Not available with `existing_…` tables or on the embedded AWS.
            replica_kms_key: ARN of your key in the second region, for the replicas. Required together with
                `kms_key`.
            jwt_issuer, jwt_audience, jwt_scopes: issuer and audiences of tokens that are accepted instead of
                signatures, and for each scope of the API the issuer's scopes of which a token must carry one.
            tips_partitions, journal_partitions, dcb_partitions, pages_partitions: partitions of the feed of tips,
                aggregates, tags in Sekiban's tables, and streams. A reaction handles some 600 events a second in
                each partition. Do not change this on a running store: a deployment with another number is refused.
                First rebuild the index, and give every reaction a new name, so that it begins anew.
            alarm_topic: SNS topic to which alarms are sent, or its ARN.
            latency_ms: milliseconds, at most 25,000: if the slowest hundredth of appends or of reads takes longer
                for three of five minutes, an alarm goes off. 0 means that there is no such alarm.
            aggregate_types: types of aggregates that the API serves, such as `["order", "user-account"]`. A type
                with a `-` cannot be removed again.
            journal_shards: number of shards of aggregates' keys, as event-store-adapter's libraries have them.
                Fixed once something is stored.
            journal_keys, journal_serializer: library of event-store-adapter whose keys and payloads aggregates
                have. Fixed once something is stored.
            equinox: whether Equinox applications use the table of tips too. Set it before the first append by
                Epochal.
            calving: when events are moved out of a Tip. `cost` moves them when that is cheapest, `fixed` at the
                limits below. `auto` means `fixed` with `equinox`, and `cost` otherwise.
            calving_max_bytes: with fixed `calving`, number of bytes of events above which they are moved out of the
                Tip, like Equinox's `tipMaxBytes`.
            calving_max_events: with fixed `calving`, number of events above which they are moved out of the Tip,
                like `tipMaxEvents`. 0 means any number.
            tagged_types: types of tagged events that queries may name without a tag, such as `["NameClaimed"]`.
                Each event of these types costs two more write units. Decide before the first event.
            tagged_everything: the same for all tagged events: `Query.all()`, `GET /events` without a tag and `GET
                /events/count`. All appends then compete with each other, which limits them to some 40 to 70 a
                second, according to a model.
            type_heads: whether conditions in Sekiban's tables may be by type alone, or over everything. All appends
                then compete with each other. Decide before the first event.
            write_shards: number of shards of the index of all events in Sekiban's tables, 1 to 1,000. Each accepts
                about 1,000 write units a second. Never lower it.
            service: tenant in Sekiban's tables: 1 to 64 lower-case letters, digits and hyphens. Fixed once
                something is stored.
            snapshot_copies, snapshot_ttl_days: number of older snapshots of an aggregate that are kept, at most
                1,000, and number of days after which further ones expire. With 0 days they are deleted immediately.
            layouts: names of the layouts that are deployed, such as `["pages", "tips"]`; by default `["pages"]`,
                and None for all. Routes of the others answer 404. You can add a layout at any time.
            archive: whether there are tables that keep what is pruned. To turn it on again, first name the retained
                ones by `existing_…`.
            infrequent_access: tables, such as `["streams"]`, whose storage costs 60 % less and whose requests cost
                a quarter more. Use it for data that is kept for years. It may change twice in 30 days.
            state_inline_bytes: size in bytes above which the compressed state of a projection is stored in the
                bucket, at most 300,000.
            consistent_reads: whether `GET /dcb/events/{id}` and `GET /dcb/tags/{tag}` are strongly consistent.
                Without strong consistency they cost half.
            retries: number of times that the functions of the API retry a request to a table within 25 seconds, 0
                to 100, before they answer 503.
            carrier: client that sends the functions' requests to DynamoDB. `boto3` uses three times the CPU. With a
                proxy, or with something that traces or mocks boto3's clients, `light` falls back to `boto3`, and
                the log says so.
            read_models: whether there is a table for read models. To turn it on again, name the retained one by
                `existing_read_models`.
            timers: whether there are timers: their table, and the function that fires them. To turn it on again,
                name the retained table by `existing_timers`.
            existing_tips, existing_index, existing_journal, existing_snapshot, existing_events, existing_tags,
                existing_streams, existing_projection_states, existing_archive, existing_streams_archive,
                existing_read_models, existing_timers, existing_bucket: ARN of an existing table that is used and
                not managed, by kind: the ARN of the table's stream where the kind needs one, else the table's.
                `existing_bucket` is the name of a bucket.

        Raises:
            BadSetting: an option breaks its rule.
            InstallerFailed: pip could not fetch what functions need.
        """
        target = target_from_environment(os.environ)
        name = _made_of(scope, id_) if name is None else name
        stage = _stage(name, preset, target, {**options, **({"api": api} if api else {})})
        super().__init__(scope, id_, stage=stage, code=_code(stage, python, architecture, target))
        layers, outputs = self.layers(self), claim_output_prefix(self, id_)
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
        # The embedded AWS does not support alarms on several metrics.
        watched = self._watch(stage, feed, served) if watch and target is Target.AWS else None
        self.dashboard: Final = watched.dashboard if watched else None

    def _watch(self, stage: Stage, feed: Feed, api: Api | None) -> Watch:
        """Make the alarms and the dashboard of the store."""
        scope = Construct(self, "Watch")
        watch_mappings(Construct(scope, "Mappings"), stage=stage, feed=feed)
        if api:
            watch_api(Construct(scope, "Api"), stage=stage, api=api)
        return Watch(scope, stage=stage, stores=self._stores, functions=self.functions)

    @classmethod
    @checked_arguments("EventStore.from_name", {**_RULES, "name": _DEPLOYED}, options=RULES)
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
        """Refer to a store that is already deployed, in the account and region of the stack of `scope`.

        Args:
            scope: the stack, or a construct in it.
            id_: id of the construct.
            name: name of the store; of a stage of a checkout, `epochal-prod`.
            preset, options: settings with which the store was deployed. The settings that matter are layouts, tenants,
                keys of aggregates, an archive, and tables and a bucket of other names.
            python, architecture: Python version and processor of functions and reactions in this app.

        Raises:
            BadSetting: an option breaks its rule.
            InstallerFailed: pip could not fetch what functions need.
        """
        target = target_from_environment(os.environ)
        stage = fit_stage(stage_of(name, preset, options), target)
        return Store(scope, id_, stage=stage, code=_code(stage, python, architecture, target))

    def stores(self, scope: Construct) -> Stores:
        """Return the tables and the bucket for `scope`; another stack is made to depend on the store's.

        Another stack refers to them by name, and is deployed after the store's stack.

        Args:
            scope: construct that refers to the tables.

        Raises:
            BadSetting: the construct is deployed to another account or region.
        """
        if self._is_around(scope):
            return self._stores
        stores = super().stores(scope)
        # Names make no dependency between stacks.
        Stack.of(scope).add_stack_dependency(Stack.of(self))
        return stores

    def topic_arn(self, scope: Construct) -> str:
        """Return the ARN of the topic that publishes which partitions have new events.

        Args:
            scope: construct that refers to the topic.
        """
        return self._topic if self._is_around(scope) else super().topic_arn(scope)

    def _is_around(self, scope: Construct) -> bool:
        """Whether a construct is in the store's own stack."""
        return Stack.of(scope).node.path == Stack.of(self).node.path


def _stage(name: str, preset: Preset, target: Target, options: Mapping[str, Any]) -> Stage:
    """Return the settings of a store, as its target supports them.

    Raises:
        BadSetting: an option breaks its rule.
    """
    return fit_stage(stage_of(name, preset, options), target)


def _made_of(scope: Construct, id_: str) -> str:
    """Make a store's name of the stack's name and the construct's path; a long name is cut and hashed.

    Raises:
        BadSetting: the stack's name is not known yet, as that of a nested stack.
    """
    stack = Stack.of(scope)
    if Token.is_unresolved(stack.stack_name):
        raise BadSetting("EventStore.name", "must be given in a nested stack, whose name is not yet known")
    path = f"{stack.stack_name}{scope.node.path.removeprefix(stack.node.path)}/{id_}"
    plain = re.sub(r"[^a-z0-9]+", "-", path.lower()).strip("-")
    if len(plain) <= NAME_LENGTH:
        return plain
    digest = hashlib.sha256(path.encode()).hexdigest()[:_DIGEST]
    return f"{plain[: NAME_LENGTH - _DIGEST - 1].rstrip('-')}-{digest}"


def _code(stage: Stage, python: str, architecture: lambda_.Architecture | None, target: Target) -> MakeCode:
    """Return a function that makes code for a Python and processor; raise `BadSetting` for a wrong Python.

    Args:
        python: default Python version.
        architecture: default processor; None for ARM.

    Raises:
        BadSetting: functions cannot run on that Python.
    """
    check_python("EventStore.python", python)
    return lambda other, processor: code_of(
        Sources.shipped(),
        target,
        python=other or python,
        processor=processor or architecture,
        sdk=stage.boto3 == "tested",
        layouts=stage.brought_layouts(),
        schemas=stage.event_schemas,
    )
