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

It holds what a stage of ours is: tables and a bucket, the indexer, the notifier and the auditor, an HTTP API, alarms
and a dashboard. It asks nothing of the app around it: neither context nor folders, and any number of stores may be in
one app.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypedDict, Unpack

from aws_cdk import Stack, Token
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from constructs import Construct

from epochal.cdk.parts.api import Api
from epochal.cdk.parts.feed import Feed
from epochal.cdk.parts.functions import Shared
from epochal.cdk.parts.storage import Storage
from epochal.cdk.parts.stores import Stores, whose
from epochal.cdk.parts.watch import Watch, watch_api, watch_mappings
from epochal.cdk.sources import Sources, Target, code_of, fitted, known_python, target_told
from epochal.cdk.stages import STAGES, BadSetting, Stage, changed
from epochal.cdk.store import MakeCode, Store
from epochal.plugins import NATIVE
from epochal.settings import LAMBDA_PYTHON

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
        feed = Feed(Construct(self, "Feed"), shared, storage.streams, storage.changes)
        self.indexer: Final = feed.indexer
        self._topic: Final = feed.notices.topic.topic_arn
        served = Api(Construct(self, "Api"), shared) if api else None
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
    )


# What a store may be given: settings by their names, for editors and type checkers.
#
# docs/deploy.md explains each. Values obey the rules that those of `cdk.json` obey (`fields.py`), but where CDK knows
# them only once they are deployed: the ARN of a key or topic of the same app.

Preset = Literal["dev", "staging", "prod"]
"""Settings to begin with: `dev` forgets, `staging` behaves like `prod` at a smaller size, `prod` keeps."""


class StoreOptions(TypedDict, total=False):
    """Settings of a store; one that is left out is as its preset has it."""

    access_logs: bool
    aggregate_types: Sequence[str]
    alarm_topic: str | sns.ITopic
    archive: bool
    billing: Literal["on-demand", "provisioned"]
    boto3: Literal["runtime", "tested"]
    burst: int
    carrier: Literal["light", "boto3"]
    consistent_reads: bool
    dcb_partitions: int
    deletion_protection: bool
    equinox: bool
    calving: Literal["auto", "fixed", "cost"]
    calving_max_bytes: int
    calving_max_events: int
    existing_archive: str
    existing_bucket: str
    existing_events: str
    existing_index: str
    existing_journal: str
    existing_projection_states: str
    existing_read_models: str
    existing_snapshot: str
    existing_streams: str
    existing_streams_archive: str
    existing_tags: str
    existing_tips: str
    feed_wait_seconds: int
    feed_window_seconds: int
    feed_batch_size: int
    feed_kinesis_shards: int
    journal_keys: str
    journal_partitions: int
    journal_serializer: str
    journal_shards: int
    jwt_audience: Sequence[str]
    jwt_issuer: str
    jwt_scopes: Mapping[str, Sequence[str]]
    kms_key: str | kms.IKey
    layouts: Sequence[str] | None
    log_days: int
    log_kms_key: str | kms.IKey
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"]
    max_read_units: int
    max_upload_bytes: int
    max_write_units: int
    min_read_units: int
    min_write_units: int
    pages_partitions: int
    partitions: int
    read_models: bool
    recovery_days: int
    replica_kms_key: str
    replica_region: str
    requests_per_second: int
    reserved_concurrency: Mapping[str, int]
    retain: bool
    retries: int | None
    route_limits: Mapping[str, int]
    service: str
    snapshot_copies: int
    snapshot_ttl_days: int
    state_inline_bytes: int
    tagged_everything: bool
    tagged_types: Sequence[str]
    type_heads: bool
    write_shards: int


def stage_of(name: str, preset: Preset, options: Mapping[str, Any]) -> Stage:
    """The settings of a store whose tables, functions and queues are called after `name`; its layout is pages, where
    others are not asked for. All there are is None, as in `cdk.json`.

    Raises:
        BadSetting: one is no setting, or breaks a rule.
    """
    if preset not in STAGES:
        raise BadSetting("preset", f"must be one of {', '.join(STAGES)}, not {preset!r}")
    values = {key: _plain(each) for key, each in options.items()}
    later = {key: each for key, each in values.items() if isinstance(each, str) and Token.is_unresolved(each)}
    now = {"layouts": [NATIVE], **{key: each for key, each in values.items() if key not in later}}
    return changed(STAGES[preset], now, where="EventStore", **later, name=name, prefix="")


def _plain(value: Any) -> Any:
    """A value as JSON has it, or an ARN."""
    for attribute in ("key_arn", "topic_arn"):
        if hasattr(value, attribute):
            return getattr(value, attribute)
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [*value] if isinstance(value, Sequence) and not isinstance(value, str) else value
