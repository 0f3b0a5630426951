"""Settings of deployments of Epochal: a `Stage` for each deployment.

Three stages exist: `dev` deletes its data with the stack, `staging` behaves like `prod` at a smaller size, and `prod`
retains its data. A team's own values are in `cdk.json` under `context.stages`, field by field (docs/deploy.md lists
them):

    "stages": {"prod": {"pages_partitions": 8, "alarm_topic": "arn:aws:sns:..."}}

A value that breaks its field's rule (`RULES`) is refused before synthesis, with the field's name and the rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from epochal.cdk.declared_reactions import NOTHING, Declared, reactions
from epochal.cdk.rules import (
    Rule,
    a_flag,
    a_list,
    a_map,
    a_number,
    a_text,
    declared_rules,
    one_of,
    or_null,
    setting_field,
)
from epochal.cdk.stage_rules import (
    CERTIFICATE,
    DOMAIN,
    EXISTING,
    FUNCTIONS,
    KEY,
    LIMITS,
    LOG_DAYS,
    OF_LAYOUTS,
    REGION,
    ROUTE_KEYS,
    SCOPES,
    STREAM,
    TABLE,
    TABLES,
    TOPIC,
    WORD,
    check_tags,
    rule_of,
)
from epochal.layout.registry import layout_names
from epochal.layout.tables import READ_MODELS, TIMERS, archives, store_tables
from epochal.lazy_dataclasses import dataclass, field, fields
from epochal.plan.tables import TableSpec
from epochal.plugins import Layout, brought, layouts
from epochal.settings import DECLARED, Options


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage(Options):
    """The settings of one deployment: those of its functions, and those of its resources.

    Attributes:
        name: `dev`, `staging` or `prod`; of an `EventStore`, the name with which all its resources' names begin.
        account, region: AWS account and region of the deployment; empty for those of the credentials.
        prefix: first part of the name of every table, bucket and function; empty for none. Never change it where data
            must stay.
        tags: tags of every resource that can carry tags, besides `epochal:stage`.
        retain: whether tables and buckets outlive their stack.
        deletion_protection: whether tables and stacks refuse to be deleted.
        recovery_days: days back to which a table can be restored, to any second; 0 turns this off.
        boto3: boto3 of the functions: `runtime` for the one in Lambda's runtime, `tested` for a layer with the tested
            version.
        billing: billing mode of tables: `on-demand`, or `provisioned` with autoscaling between the units below.
        min_read_units, min_write_units: least units per second of a table under autoscaling; `provisioned` only.
        max_read_units, max_write_units: most units per second of a table; 0 for the account's limit.
        warm_read_units, warm_write_units: units per second that each new table and its indexes take at once; 0 for what
            DynamoDB gives a new table. A table keeps what it once had.
        log_days: retention of function and access logs, in days.
        log_kms_key: ARN of a customer managed key for logs, whose policy lets CloudWatch Logs use the key.
        log_level: least level of lines that functions log.
        api: access to the functions of the HTTP API: one `gateway`, or function `urls`, which cost nothing and know no
            routes.
        domain_name: custom domain of the gateway, besides its own address; empty for none.
        domain_certificate: ARN of a certificate for that domain, in the same region.
        access_logs: whether to log one line for every HTTP request, without the stream's name.
        access_log_class: CloudWatch class of the access log: `infrequent` costs half, and has neither tail nor filters.
        requests_per_second, burst: throttling limits of the HTTP API as a whole.
        route_limits: requests per second of single routes, which are also their bursts, by route key (`GET /dcb/tags`).
            Other routes have their operation's limit, or share the API's. No limit is above the API's.
        feed_window_seconds: seconds for which the indexer gathers appends before it writes them to the index. Few
            appends then share one entry, and an entry costs by the size of the epoch's Tip. Readers wait at most
            this much longer, and not at all under load.
        feed_batch_size: most appends that one invocation of the indexer gets.
        feed_kinesis_shards: shards of a Kinesis stream to which tables of heads send their changes, and which the
            indexer reads instead of the tables' own streams. The indexer then writes one entry per window, however
            many shards the tables have. The stream is paid by the hour; 0 for no such stream.
        reserved_concurrency: concurrent invocations that are reserved for a function, and its limit, by function.
        kms_key: ARN of a customer managed key for tables and buckets; empty for keys that AWS owns.
        queue_kms_key: ARN of a customer managed key for the queues of reactions and timers, whose policy lets SNS use
            it; empty for keys of SQS.
        environment_kms_key: ARN of a customer managed key for the functions' environments; empty for Lambda's own key.
        replica_region: region of a replica of every new table, for reads and failover; empty for none.
        replica_kms_key: ARN of a key in the replica's region, required together with `kms_key`.
        jwt_issuer, jwt_audience: issuer and audiences of tokens that are accepted instead of SigV4 signatures.
        jwt_scopes: for each scope of the routes, the issuer's scopes of which a token must carry one. A scope that is
            left out stands for itself, so that leaving one out opens nothing.
        monthly_budget: dollars per month above which `alarm_topic` gets a message; 0 for no budget.
        alarm_topic: ARN of the SNS topic that alarms are sent to.
        latency_ms: milliseconds of the slowest hundredth of appends and of reads above which an alarm goes off; 0 for
            no such alarm.
        layouts: names of the deployed layouts; None for all. A layout that is left out has no tables, functions or
            alarms.
        archive: whether each layout of named streams has an archive table, to which events are copied before they are
            pruned, and from which they are read afterwards.
        reactions: reactions that are deployed with the stage, by name.
        read_models: whether there is a table for the read models of reactions.
        timers: whether appends can be scheduled: a table of timers, and the function that fires them.
        infrequent_access: kinds of tables of DynamoDB's class Standard-IA, whose storage costs 60 % less and whose
            requests a quarter more; None for the archives. A table can change its class in place, twice in thirty
            days.
        existing_tables: ARNs of retained tables that are used but not managed, by kind: the ARN of the table's stream
            where the kind needs one, else the table's. In `cdk.json` each kind has its own setting: `existing_tips`,
            `existing_journal`.
        existing_bucket: name of a retained bucket of bodies and states that is used but not managed.
        event_schemas: path of a file that `epochal schema` has printed, relative to the folder of `cdk.json`: events
            sent over HTTP must fit its schemas.
        tls_only: whether buckets, queues and the topic refuse plain HTTP. Not a user's setting: false only in the
            embedded AWS.
        batches_named: whether IAM actions have the embedded AWS's names: a batch of messages is an action of its own,
            reading one mapping is listing all, and schedules are in the default group. Not a user's setting.
    """

    name: str
    account: str = setting_field("", a_text(r"(\d{12})?", "an account's 12 digits"))
    region: str = setting_field("", REGION)
    # With 18 characters, the longest name, that of a bucket with account and region, still has at most 63 characters.
    prefix: str = setting_field(
        "epochal",
        a_text(r"[a-z][a-z0-9-]{1,16}[a-z0-9]", "3 to 18 lower-case letters, digits and hyphens"),
    )
    tags: Mapping[str, str] = setting_field(NOTHING, check_tags)
    retain: bool = setting_field(False, a_flag)
    deletion_protection: bool = setting_field(False, a_flag)
    recovery_days: int = setting_field(0, a_number(0, 35))
    boto3: Literal["runtime", "tested"] = setting_field("runtime", one_of("runtime", "tested"))
    billing: Literal["on-demand", "provisioned"] = setting_field(
        "on-demand", one_of("on-demand", "provisioned")
    )
    min_read_units: int = setting_field(5, a_number(1, 40_000))
    min_write_units: int = setting_field(5, a_number(1, 40_000))
    max_read_units: int = setting_field(0, a_number(0, 1_000_000))
    max_write_units: int = setting_field(0, a_number(0, 1_000_000))
    warm_read_units: int = setting_field(0, a_number(0, 1_000_000))
    warm_write_units: int = setting_field(0, a_number(0, 1_000_000))
    log_days: int = setting_field(7, LOG_DAYS)
    log_kms_key: str = setting_field("", KEY)
    log_level: str = setting_field("INFO", one_of("DEBUG", "INFO", "WARNING", "ERROR"))
    api: Literal["gateway", "urls"] = setting_field("gateway", one_of("gateway", "urls"))
    domain_name: str = setting_field("", DOMAIN)
    domain_certificate: str = setting_field("", CERTIFICATE)
    access_logs: bool = setting_field(True, a_flag)
    access_log_class: Literal["infrequent", "standard"] = setting_field(
        "infrequent", one_of("infrequent", "standard")
    )
    requests_per_second: int = setting_field(1_000, a_number(1, 100_000))
    burst: int = setting_field(500, a_number(1, 50_000))
    route_limits: Mapping[str, int] = setting_field(NOTHING, a_map(a_number(1, 50_000), keys=ROUTE_KEYS))
    # Lambda waits at most 300 seconds.
    feed_window_seconds: int = setting_field(1, a_number(0, 300))
    # An entry for a thousand heads is 50 to 100 KB, well below the 300 KB at which it would be split in two. Lambda
    # cuts batches at 6 MB by itself, which a thousand heads reach only above 6 KB each.
    feed_batch_size: int = setting_field(1_000, a_number(1, 10_000))
    # The default quota of an account in most regions.
    feed_kinesis_shards: int = setting_field(0, a_number(0, 200))
    reserved_concurrency: Mapping[str, int] = setting_field(
        NOTHING, a_map(a_number(1, 100_000), keys=FUNCTIONS)
    )
    kms_key: str = setting_field("", KEY)
    queue_kms_key: str = setting_field("", KEY)
    environment_kms_key: str = setting_field("", KEY)
    replica_region: str = setting_field("", REGION)
    replica_kms_key: str = setting_field("", KEY)
    jwt_issuer: str = setting_field("", a_text(r"(https://\S+)?", "an https:// address"))
    jwt_audience: tuple[str, ...] = setting_field((), a_list(WORD))
    # An empty list would let any token through.
    jwt_scopes: Mapping[str, tuple[str, ...]] = setting_field(
        NOTHING, a_map(a_list(WORD, least=1), keys=SCOPES)
    )
    monthly_budget: int = setting_field(0, a_number(0, 1_000_000))
    alarm_topic: str = setting_field("", TOPIC)
    # A request is decided within 25 seconds.
    latency_ms: int = setting_field(0, a_number(0, 25_000))
    layouts: tuple[str, ...] | None = setting_field(None, or_null(a_list(one_of(*layout_names()), least=1)))
    archive: bool = setting_field(False, a_flag)
    reactions: Mapping[str, Declared] = setting_field(NOTHING, reactions)
    read_models: bool = setting_field(False, a_flag)
    timers: bool = setting_field(False, a_flag)
    event_schemas: str = setting_field("", a_text(r"(\S(.*\S)?)?", "a file"))
    infrequent_access: tuple[str, ...] | None = setting_field(None, or_null(a_list(one_of(*TABLES))))
    existing_tables: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    existing_bucket: str = setting_field("", a_text(r"([a-z0-9][a-z0-9.-]{2,62})?", "the name of a bucket"))
    tls_only: bool = True
    batches_named: bool = False

    def named(self, kind: str) -> str:
        """Return the name of this stage's resource of a kind, such as `epochal-prod-tips`."""
        return "-".join(part for part in (self.prefix, self.name, kind) if part)

    def deployed_layouts(self) -> tuple[Layout, ...]:
        """Return the stage's layouts, in the order of their partitions."""
        return tuple(layout for layout in layouts() if self.layouts is None or layout.name in self.layouts)

    def brought_layouts(self) -> tuple[str, ...]:
        """Return the names of the stage's layouts that come from other packages."""
        packages = brought()
        return tuple(layout.name for layout in self.deployed_layouts() if layout in packages)

    def limits(self) -> Mapping[str, int]:
        """Return the requests per second of each route that has its own limit, by route key."""
        return {
            key: min(most, self.requests_per_second) for key, most in {**LIMITS, **self.route_limits}.items()
        }

    def existing(self, kind: str) -> str:
        """Return the ARN of the existing table, or its stream, used for a kind; empty for none."""
        return self.existing_tables.get(kind, "")

    def tables(self) -> tuple[TableSpec, ...]:
        """Return the specifications of the stage's tables."""
        deployed = self.deployed_layouts()
        return (
            *store_tables(deployed),
            *(archives(deployed) if self.archive else ()),
            *((READ_MODELS,) if self.read_models else ()),
            *((TIMERS,) if self.timers else ()),
        )

    def is_infrequent(self, kind: str) -> bool:
        """Whether the table of a kind has DynamoDB's class Standard-IA."""
        if self.infrequent_access is None:
            return kind in {spec.kind for spec in archives()}
        return kind in self.infrequent_access

    def sending(self) -> tuple[str, ...]:
        """Return the kinds of tables that send their changes to Kinesis; empty where none do.

        Existing tables do not: the stage does not manage them.
        """
        if not self.feed_kinesis_shards:
            return ()
        heads = (layout.port.heads.kind for layout in self.deployed_layouts())
        return tuple(kind for kind in heads if not self.existing(kind))


RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        **{
            setting.name: rule_of(DECLARED[setting.name])
            for setting in fields(Options)
            if setting.name in DECLARED
        },
        **{name: rule_of(setting) for name, setting in OF_LAYOUTS.items()},
        **declared_rules(Stage),
        **{name: STREAM if TABLES[kind].stream else TABLE for name, kind in EXISTING.items()},
    }
)
"""Rule of each setting, by name."""

PARTITIONS_KEPT: Final = {"pages_partitions": 4}
"""Partitions of stages that keep data, since the first deployment fixes the number. A reaction handles some 600 events
a second in a partition, so 2,400 in all; at a hundred appends a second each reaction costs 0.08 dollars a million more
than with one partition.
"""

STAGES: Final[Mapping[str, Stage]] = MappingProxyType(
    {
        # With limits, a runaway loop costs tens of dollars overnight, not thousands.
        "dev": Stage(name="dev", access_logs=False, max_read_units=4_000, max_write_units=2_000),
        # No stage reserves concurrency by default: an account with the initial quota of 10 could not deploy it.
        "staging": Stage(name="staging", recovery_days=7, log_days=30, of_layouts=PARTITIONS_KEPT),
        # Half of an account's default quota of 10,000 requests a second, which other APIs of the account share.
        "prod": Stage(
            name="prod",
            retain=True,
            deletion_protection=True,
            recovery_days=35,
            log_days=90,
            requests_per_second=5_000,
            burst=2_500,
            of_layouts=PARTITIONS_KEPT,
        ),
    }
)
