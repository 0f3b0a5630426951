"""Settings of deployments of Epochal: a `Stage` for each deployment.

Three stages exist: `dev` deletes its data with the stack, `staging` behaves like `prod` at a smaller size, and `prod`
retains its data. A team's own values are in `cdk.json` under `context.stages`, field by field (docs/deploy.md lists
them):

    "stages": {"prod": {"partitions": 4, "alarm_topic": "arn:aws:sns:..."}}

A value that breaks its field's rule (`RULES`) is refused before synthesis, with the field's name and the rule.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Final, Literal

from epochal.care.retention import rules_of
from epochal.declaration import Flag, Names, Number, OneOf, Setting, Text
from epochal.errors import InvalidInput
from epochal.http.routes import operations
from epochal.layout.registry import layout_names
from epochal.layout.tables import READ_MODELS, TIMERS, archives, every_table, store_tables
from epochal.lazy_dataclasses import dataclass, field, fields, replace
from epochal.plan.tables import TableSpec
from epochal.plugins import Layout, brought, layouts, own_settings
from epochal.settings import DECLARED, Options, partitions_setting

# Rules that settings obey: each takes a value of `cdk.json` and returns the setting's value, or raises. The error says
# what is allowed and what was found; the caller adds the setting's name.

Rule = Callable[[Any], Any]


def wrong(expected: str, found: object) -> ValueError:
    """Return the error that says `expected` where `found` breaks a rule."""
    return ValueError(f"must be {expected}, not {found!r}")


def a_flag(value: object) -> bool:
    """Return the value as a boolean, or raise `ValueError`."""
    if not isinstance(value, bool):
        raise wrong("true or false", value)
    return value


def a_number(least: int, most: int) -> Rule:
    """Make a rule that admits whole numbers from `least` to `most`."""

    def rule(value: object) -> int:
        """Return the value if it is a whole number within the bounds, or raise `ValueError`."""
        # Python takes JSON's true for an int.
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise wrong(f"a whole number from {least:,} to {most:,}", value)
        return value

    return rule


def or_null(rule: Rule) -> Rule:
    """Make a rule that admits null besides the values of another rule."""
    return lambda value: None if value is None else rule(value)


def one_of(*choices: str | int) -> Rule:
    """Make a rule that admits only the given texts or numbers."""

    def rule(value: object) -> object:
        """Return the value if it is one of the choices, or raise `ValueError`."""
        # Python takes JSON's true and 1.0 for 1.
        if type(value) not in (str, int) or value not in choices:
            raise wrong("one of " + ", ".join(map(str, choices)), value)
        return value

    return rule


def a_text(pattern: str, meaning: str) -> Rule:
    """Make a rule that admits text that matches `pattern` as a whole.

    Args:
        meaning: the pattern in words, for errors.
    """

    def rule(value: object) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise wrong(meaning, value)
        return value

    return rule


def a_list(each: Rule, *, least: int = 0) -> Rule:
    """Make a rule that admits lists of at least `least` elements that obey the rule `each`."""

    def rule(value: object) -> tuple[Any, ...]:
        """Return the list as a tuple of parsed elements, or raise `ValueError`."""
        if not isinstance(value, list) or len(value) < least:
            raise wrong(f"a list of {least} or more" if least else "a list", value)
        return tuple(each(element) for element in value)

    return rule


def a_map(each: Rule, *, keys: Collection[str] | None = None) -> Rule:
    """Make a rule that admits objects whose values obey the rule `each`.

    Args:
        keys: allowed keys; None for any.
    """

    def rule(value: object) -> MappingProxyType[str, Any]:
        """Return the object as a read-only mapping of parsed values, or raise `ValueError`."""
        if not isinstance(value, dict):
            raise wrong("an object", value)
        if keys is not None and (strangers := sorted(set(value) - set(keys))):
            raise wrong(f"an object with keys among {', '.join(keys)}", strangers[0])
        return MappingProxyType({key: each(element) for key, element in value.items()})

    return rule


def _chosen(default: Any, rule: Rule) -> Any:
    """Declare a dataclass field that is a setting, with its default and its rule."""
    if isinstance(default, Mapping):
        return field(default_factory=lambda: default, metadata={"rule": rule})
    return field(default=default, metadata={"rule": rule})


def _rules(settings: type) -> dict[str, Rule]:
    """Return the rules of the settings that a class declares with `_chosen`, by name."""
    return {each.name: each.metadata["rule"] for each in fields(settings) if "rule" in each.metadata}


# Reactions as a stage declares them in `cdk.json`, for teams that need no stack of their own.
#
# "reactions": {"board": {"entry": "reactions/board", "allow": [
#     {"actions": ["dynamodb:PutItem"], "resources": ["arn:${AWS::Partition}:dynamodb:…:table/board"]}]}}

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_REACTION: Final = r"[A-Za-z0-9][A-Za-z0-9-]{0,63}"
_MODEL: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Allow:
    """Permissions of a reaction's handler besides reading events.

    Attributes:
        actions: IAM actions.
        resources: ARNs of the resources.
    """

    actions: tuple[str, ...]
    resources: tuple[str, ...]


def _an_environment(value: object) -> Mapping[str, str]:
    """Check the environment variables of a handler; refuse names that Epochal or AWS use.

    Raises:
        ValueError: a name or a value is not allowed.
    """
    variables: Mapping[str, str] = a_map(a_text(r"[^\0]*", "text"))(value)
    for name in variables:
        if name.startswith(("EPOCHAL_", "AWS_", "POWERTOOLS_")):
            raise wrong("variables of one's own", name)
    return variables


def _an_allow(value: object) -> Allow:
    """Parse one permission of a handler: an object with `actions` and `resources`.

    Raises:
        ValueError: the object breaks a rule.
    """
    text = a_text(r"\S+", "text without spaces")
    action = a_text(r"[a-z0-9-]+:[A-Za-z0-9*]+", "an action such as dynamodb:PutItem")
    rules = {"actions": a_list(action, least=1), "resources": a_list(text, least=1)}
    fields = _members(rules, value)
    if fields.keys() != rules.keys():
        raise wrong("an object with actions and resources", value)
    return Allow(**fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A reaction as `cdk.json` declares it; defaults are those of the construct `Reaction`.

    Attributes:
        entry: folder of the reaction's code, relative to the folder of `cdk.json`.
        handler: `module:reaction` or `module.function` in that folder.
        memory_mb: memory of the function, in MB.
        timeout_seconds: timeout of the function, in seconds.
        batch_size: wake-ups of one invocation, which runs their partitions one after another.
        reserved_concurrency: concurrent invocations that are reserved for the function, and its limit.
        environment: environment variables of the handler.
        allow: permissions of the handler.
        read_models: names of the read models that the reaction makes, in the stage's table.
        process: whether the reaction is a process, which is deployed as two reactions.
    """

    entry: str = field(metadata={"rule": a_text(r"\S(.*\S)?", "a folder")})
    handler: str = _chosen("handler.handler", a_text(r"\w+[.:]\w+", "module:reaction or module.function"))
    memory_mb: int | None = _chosen(None, a_number(128, 10_240))
    timeout_seconds: int | None = _chosen(None, a_number(10, 900))
    batch_size: int | None = _chosen(None, a_number(1, 10))
    reserved_concurrency: int | None = _chosen(None, a_number(1, 100_000))
    environment: Mapping[str, str] = _chosen(_NOTHING, _an_environment)
    allow: tuple[Allow, ...] = _chosen((), a_list(_an_allow))
    read_models: tuple[str, ...] = _chosen((), a_list(a_text(_MODEL, "the name of a read model")))
    process: bool = _chosen(False, a_flag)


def _a_reaction(value: object) -> Declared:
    """Parse one reaction that a stage declares.

    Raises:
        ValueError: a member breaks its rule, or `entry` is missing.
    """
    fields = _members(_rules(Declared), value)
    if "entry" not in fields:
        raise wrong("an object with an entry", value)
    return Declared(**fields)


def reactions(value: object) -> Mapping[str, Declared]:
    """Parse the reactions that a stage declares, by name.

    Raises:
        ValueError: a name or a member breaks its rule.
    """
    found: Mapping[str, Declared] = a_map(_a_reaction)(value)
    for name in found:
        a_text(_REACTION, "reactions named with letters, digits and hyphens")(name)
    return found


def _members(rules: Mapping[str, Rule], value: object) -> dict[str, Any]:
    """Parse the members of an object, each by its own rule; refuse members without a rule."""
    a_map(lambda each: each, keys=rules)(value)
    assert isinstance(value, dict)  # noqa: S101  # the rule above says so
    return {name: rules[name](each) for name, each in value.items()}


# What settings of a stage may hold.
#
# A name or a number that the library checks as well is checked here by the library's own rule or limit, so that every
# deployed setting also works at run time.

FUNCTIONS: Final = (
    *sorted({each.function for each in operations()}),
    "indexer",
    "auditor",
    "timers",
)
ROUTE_KEYS: Final = tuple(each.key for each in operations())
LIMITS: Final = {each.key: each.requests_per_second for each in operations() if each.requests_per_second}
SCOPES: Final = tuple(sorted({each.scope for each in operations()}))

_ARN: Final = r"arn:aws[a-z-]*"
_PLACE: Final = r"[a-z0-9-]+:\d{12}"
_KEY: Final = a_text(rf"({_ARN}:kms:{_PLACE}:key/\S+)?", "the ARN of a KMS key")
_TOPIC: Final = a_text(rf"({_ARN}:sns:{_PLACE}:\S+)?", "the ARN of an SNS topic")
_REGION: Final = a_text(r"([a-z]{2,}(-[a-z]+)+-\d)?", "a region, as eu-central-1")
_STREAM: Final = a_text(rf"({_ARN}:dynamodb:{_PLACE}:table/\S+/stream/\S+)?", "the ARN of a table's stream")
_TABLE: Final = a_text(rf"({_ARN}:dynamodb:{_PLACE}:table/[^/\s]+)?", "the ARN of a table")
_DOMAIN: Final = a_text(
    r"(?:(?=.{4,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+)?",
    "a name such as events.shop.example",
)
_CERTIFICATE: Final = a_text(rf"({_ARN}:acm:{_PLACE}:certificate/\S+)?", "the ARN of a certificate")
_WORD: Final = a_text(r"\S+", "text without spaces")
_NAME: Final = a_text(r"[^\s,]+", "text without spaces or commas")
_LOG_DAYS: Final = one_of(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 3653)


_MOST_TAGS: Final = 49
"""Most tags besides `epochal:stage`: a resource takes 50."""


def _tags(value: object) -> Mapping[str, str]:
    """Check tags against the rules of IAM, the strictest of the services that receive them.

    CDK would take any tags, and the deployment would fail.

    Raises:
        ValueError: a tag breaks a rule, or there are too many tags.
    """
    tags: Mapping[str, str] = a_map(a_text(r"(?s).{1,256}", "text of 1 to 256 characters"))(value)
    for each in (each for pair in tags.items() for each in pair):
        if not all(unicodedata.category(letter)[0] in "LNZ" or letter in "_.:/=+-@" for letter in each):
            raise wrong("letters, digits, spaces and _ . : / = + - @ alone, which is what IAM takes", each)
    lower = [key.lower() for key in tags]
    for key, same in zip(tags, lower, strict=True):
        if not 1 <= len(key) <= 128 or same.startswith(("aws:", "epochal:")) or lower.count(same) > 1:  # noqa: PLR2004
            rule = (
                "keys of 1 to 128 characters, not of aws: nor epochal:, that differ in more than their case"
            )
            raise wrong(rule, key)
    if len(tags) > _MOST_TAGS:
        raise wrong(f"at most {_MOST_TAGS} tags", len(tags))
    return tags


def _rule(option: Setting) -> Rule:
    """Return the rule for a setting of the library that a stage may choose."""
    match option.kind:
        case Number(least=least, most=most):
            number = a_number(least, most)
            # Null means the default where a setting has none.
            return number if option.default is not None else or_null(number)
        case Flag():
            return a_flag
        case OneOf(of=choices):
            return one_of(*choices)
        case Text(pattern=pattern, meaning=meaning):
            return a_text(pattern, meaning)
        case Names():
            return a_list(_NAME)


_TABLES: Final = {spec.kind: spec for spec in every_table()}

EXISTING: Final = {f"existing_{kind.replace('-', '_')}": kind for kind in _TABLES}
"""Kinds of tables by the settings that name an existing table in place of a new one."""

OF_LAYOUTS: Final = {
    **{each.partitions: partitions_setting(each.partitions) for each in layouts()},
    **{name: each for layout in layouts() for name, each in own_settings(layout).items() if each.chosen},
}
"""Settings of layouts, by name: their numbers of feed partitions, and the settings that plug-ins declare."""


# A stage.


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
    account: str = _chosen("", a_text(r"(\d{12})?", "an account's 12 digits"))
    region: str = _chosen("", _REGION)
    # With 18 characters, the longest name, that of a bucket with account and region, still has at most 63 characters.
    prefix: str = _chosen(
        "epochal",
        a_text(r"[a-z][a-z0-9-]{1,16}[a-z0-9]", "3 to 18 lower-case letters, digits and hyphens"),
    )
    tags: Mapping[str, str] = _chosen(_NOTHING, _tags)
    retain: bool = _chosen(False, a_flag)
    deletion_protection: bool = _chosen(False, a_flag)
    recovery_days: int = _chosen(0, a_number(0, 35))
    boto3: Literal["runtime", "tested"] = _chosen("runtime", one_of("runtime", "tested"))
    billing: Literal["on-demand", "provisioned"] = _chosen("on-demand", one_of("on-demand", "provisioned"))
    min_read_units: int = _chosen(5, a_number(1, 40_000))
    min_write_units: int = _chosen(5, a_number(1, 40_000))
    max_read_units: int = _chosen(0, a_number(0, 1_000_000))
    max_write_units: int = _chosen(0, a_number(0, 1_000_000))
    warm_read_units: int = _chosen(0, a_number(0, 1_000_000))
    warm_write_units: int = _chosen(0, a_number(0, 1_000_000))
    log_days: int = _chosen(7, _LOG_DAYS)
    log_kms_key: str = _chosen("", _KEY)
    log_level: str = _chosen("INFO", one_of("DEBUG", "INFO", "WARNING", "ERROR"))
    api: Literal["gateway", "urls"] = _chosen("gateway", one_of("gateway", "urls"))
    domain_name: str = _chosen("", _DOMAIN)
    domain_certificate: str = _chosen("", _CERTIFICATE)
    access_logs: bool = _chosen(True, a_flag)
    access_log_class: Literal["infrequent", "standard"] = _chosen(
        "infrequent", one_of("infrequent", "standard")
    )
    requests_per_second: int = _chosen(1_000, a_number(1, 100_000))
    burst: int = _chosen(500, a_number(1, 50_000))
    route_limits: Mapping[str, int] = _chosen(_NOTHING, a_map(a_number(1, 50_000), keys=ROUTE_KEYS))
    # Lambda waits at most 300 seconds.
    feed_window_seconds: int = _chosen(1, a_number(0, 300))
    # An entry for a thousand heads is 50 to 100 KB, well below the 300 KB at which it would be split in two. Lambda
    # cuts batches at 6 MB by itself, which a thousand heads reach only above 6 KB each.
    feed_batch_size: int = _chosen(1_000, a_number(1, 10_000))
    # The default quota of an account in most regions.
    feed_kinesis_shards: int = _chosen(0, a_number(0, 200))
    reserved_concurrency: Mapping[str, int] = _chosen(_NOTHING, a_map(a_number(1, 100_000), keys=FUNCTIONS))
    kms_key: str = _chosen("", _KEY)
    queue_kms_key: str = _chosen("", _KEY)
    environment_kms_key: str = _chosen("", _KEY)
    replica_region: str = _chosen("", _REGION)
    replica_kms_key: str = _chosen("", _KEY)
    jwt_issuer: str = _chosen("", a_text(r"(https://\S+)?", "an https:// address"))
    jwt_audience: tuple[str, ...] = _chosen((), a_list(_WORD))
    # An empty list would let any token through.
    jwt_scopes: Mapping[str, tuple[str, ...]] = _chosen(_NOTHING, a_map(a_list(_WORD, least=1), keys=SCOPES))
    monthly_budget: int = _chosen(0, a_number(0, 1_000_000))
    alarm_topic: str = _chosen("", _TOPIC)
    # A request is decided within 25 seconds.
    latency_ms: int = _chosen(0, a_number(0, 25_000))
    layouts: tuple[str, ...] | None = _chosen(None, or_null(a_list(one_of(*layout_names()), least=1)))
    archive: bool = _chosen(False, a_flag)
    reactions: Mapping[str, Declared] = _chosen(_NOTHING, reactions)
    read_models: bool = _chosen(False, a_flag)
    timers: bool = _chosen(False, a_flag)
    event_schemas: str = _chosen("", a_text(r"(\S(.*\S)?)?", "a file"))
    infrequent_access: tuple[str, ...] | None = _chosen(None, or_null(a_list(one_of(*_TABLES))))
    existing_tables: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    existing_bucket: str = _chosen("", a_text(r"([a-z0-9][a-z0-9.-]{2,62})?", "the name of a bucket"))
    tls_only: bool = True
    batches_named: bool = False

    def named(self, kind: str) -> str:
        """Return the name of this stage's resource of a kind, such as `epochal-prod-tips`."""
        return "-".join(each for each in (self.prefix, self.name, kind) if each)

    def deployed_layouts(self) -> tuple[Layout, ...]:
        """Return the stage's layouts, in the order of their partitions."""
        return tuple(each for each in layouts() if self.layouts is None or each.name in self.layouts)

    def brought_layouts(self) -> tuple[str, ...]:
        """Return the names of the stage's layouts that come from other packages."""
        there = brought()
        return tuple(each.name for each in self.deployed_layouts() if each in there)

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
        there = self.deployed_layouts()
        return (
            *store_tables(there),
            *(archives(there) if self.archive else ()),
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
        heads = (each.port.heads.kind for each in self.deployed_layouts())
        return tuple(kind for kind in heads if not self.existing(kind))


RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        **{each.name: _rule(DECLARED[each.name]) for each in fields(Options) if each.name in DECLARED},
        **{name: _rule(each) for name, each in OF_LAYOUTS.items()},
        **_rules(Stage),
        **{name: _STREAM if _TABLES[kind].stream else _TABLE for name, kind in EXISTING.items()},
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


_OF_GATEWAY: Final = ("access_log_class", "access_logs", "burst", "requests_per_second")
"""Settings of the gateway that every stage has by default."""


class BadSetting(ValueError):
    """A setting breaks its rule; nothing was synthesized.

    Attributes:
        name: name of the setting.
        rule: the broken rule.
    """

    def __init__(self, name: str, rule: str) -> None:
        super().__init__(f"{name} {rule}")
        self.name = name
        self.rule = rule


def known_are(name: str, known: Iterable[str]) -> str:
    """Return the part of an error message that lists known names, the nearest to `name` first."""
    names = list(known)
    nearest = get_close_matches(name, names, n=1)
    return f"{f'did you mean {nearest[0]}? ' if nearest else ''}there are {', '.join(names)}"


def changed(stage: Stage, changes: object, *, where: str = "", **besides: Any) -> Stage:
    """Return a stage with the settings that an object of JSON changes.

    Args:
        stage: the stage to change.
        changes: new values by the names of settings.
        where: text before a setting's name in errors; `stages.<stage>` where it is empty.
        besides: further fields to set, without checking their rules.

    Raises:
        BadSetting: a name is no setting, or a value breaks a rule.
    """
    where = where or f"stages.{stage.name}"
    if not isinstance(changes, dict):
        raise BadSetting(where, f"must be an object, not {changes!r}")
    parsed = {key: _parsed(where, key, value) for key, value in changes.items()}
    if parsed.get("api") == "urls":
        for key, rule in _without_gateway({key: parsed.get(key) for key in _OF_GATEWAY}):
            raise BadSetting(f"{where}.{key}", rule)
    tables = {EXISTING[key]: arn for key, arn in parsed.items() if key in EXISTING}
    own = {key: each for key, each in parsed.items() if key in OF_LAYOUTS}
    others = {key: parsed[key] for key in parsed.keys() - own.keys() - EXISTING.keys()}
    return coherent(
        where,
        replace(
            stage,
            existing_tables=tables,
            of_layouts={**stage.of_layouts, **own},
            **others,
            **besides,
        ),
    )


def _parsed(where: str, key: str, value: object) -> Any:
    """Parse the value of a setting by its rule.

    Raises:
        BadSetting: there is no such setting, or the value breaks its rule.
    """
    if key not in RULES:
        raise BadSetting(f"{where}.{key}", f"is no setting; {known_are(key, RULES)}")
    return obeying(f"{where}.{key}", key, value)


def obeying(where: str, key: str, value: object) -> Any:
    """Parse a value by the rule of a setting.

    Args:
        where: name of the setting in errors.
        key: name of the setting.

    Raises:
        BadSetting: the value breaks the rule.
    """
    try:
        return RULES[key](value)
    except ValueError as error:
        raise BadSetting(where, str(error)) from None


def coherent(where: str, stage: Stage) -> Stage:
    """Return a stage whose settings fit each other.

    Raises:
        BadSetting: two settings contradict each other.
    """
    for key, rule in _broken(stage):
        raise BadSetting(f"{where}.{key}", rule)
    return stage


def _broken(stage: Stage) -> Iterator[tuple[str, str]]:
    """Yield each setting that contradicts the others, and the rule that it breaks."""
    if stage.jwt_issuer and not stage.jwt_audience:
        yield "jwt_audience", "must not be empty with jwt_issuer: any token of the issuer would do"
    if not stage.jwt_issuer and (stage.jwt_audience or stage.jwt_scopes):
        yield "jwt_issuer", "must be set with jwt_audience or jwt_scopes, which mean nothing without"
    if stage.api == "urls":
        of_gateway = ("jwt_issuer", "route_limits", "domain_name")
        yield from _without_gateway({key: getattr(stage, key) for key in of_gateway})
    if bool(stage.domain_name) != bool(stage.domain_certificate):
        yield "domain_certificate", "must be set with domain_name, and not without"
    try:
        rules_of(stage.keep)
    except InvalidInput as error:
        yield "keep", error.rule
    if stage.monthly_budget and not stage.alarm_topic:
        yield "alarm_topic", "must be set with monthly_budget, to be told"
    yield from _misplaced(stage)
    yield from _tables(stage)
    if stage.feed_kinesis_shards and not stage.sending():
        rule = "must be 0 where every table of heads is an existing one, which is followed by the stream that is named"
        yield "feed_kinesis_shards", rule
    yield from _of_plugins(stage)
    for kind in ("read", "write") if stage.billing == "provisioned" else ():
        if getattr(stage, f"max_{kind}_units") < getattr(stage, f"min_{kind}_units"):
            yield f"max_{kind}_units", f"must be at least min_{kind}_units where billing is provisioned"
    yield from _warm(stage)


NEW_TABLE_UNITS: Final = {"read": 12_000, "write": 4_000}
"""Units per second that a new table on demand takes at once. DynamoDB refuses less as its warm throughput."""


def _warm(stage: Stage) -> Iterator[tuple[str, str]]:
    """Yield each warm throughput that DynamoDB would refuse, and its rule."""
    for kind, least in NEW_TABLE_UNITS.items():
        units, most = getattr(stage, f"warm_{kind}_units"), getattr(stage, f"max_{kind}_units")
        if units and units < least:
            rule = f"must be 0, or at least {least:,}, which DynamoDB gives every new table, not {units:,}"
            yield f"warm_{kind}_units", rule
        if units and most and units > most:
            yield f"warm_{kind}_units", f"must be at most max_{kind}_units, which is {most:,}, not {units:,}"


def _of_plugins(stage: Stage) -> Iterator[tuple[str, str]]:
    """Yield each setting of a plug-in that contradicts others, and the rule that it breaks."""
    for check in filter(None, (layout.plugin.check_options for layout in layouts())):
        try:
            check(stage)
        except InvalidInput as error:
            yield error.field, error.rule


def _without_gateway(asked: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield each setting of the gateway that is set although `api` is `urls`, and its rule.

    A limit would seem to exist without a gateway to enforce it.

    Args:
        asked: values of the gateway's settings, by name.
    """
    return ((key, "means nothing with api urls: it is the gateway's to do") for key in asked if asked[key])


def _tables(stage: Stage) -> Iterator[tuple[str, str]]:
    """Yield each setting that concerns a table or schemas that the stage lacks, and its rule."""
    if stage.unchecked_events != "take" and not stage.event_schemas:
        yield "event_schemas", "must be set with unchecked_events, which means nothing without"
    making = sorted(name for name, reaction in stage.reactions.items() if reaction.read_models)
    if not stage.read_models and (making or stage.existing(READ_MODELS.kind)):
        whose = f"the reaction {making[0]}" if making else "existing_read_models"
        yield "read_models", f"must be true for {whose}, which needs their table"
    there = stage.deployed_layouts()
    if stage.timers and TIMERS.kind in stage.reactions:
        yield "reactions", f"must not be called {TIMERS.kind}, as the one that timers have"
    if not stage.timers and stage.existing(TIMERS.kind):
        yield "timers", "must be true with existing_timers, which means nothing without"
    tables = {spec.kind for spec in (*store_tables(there), *archives(there), READ_MODELS, TIMERS)}
    if unused := sorted(stage.existing_tables.keys() - tables):
        name = unused[0].replace("-", "_")
        yield "layouts", f"must have the layout of existing_{name}, which means nothing without"
    made = {spec.kind for spec in stage.tables()}
    for kind in stage.infrequent_access or ():
        if kind not in made or stage.existing(kind):
            yield "infrequent_access", f"must be of tables that the stage makes, and it makes no {kind}"
    if not stage.archive and (kept := [spec.kind for spec in archives(there) if stage.existing(spec.kind)]):
        yield (
            "archive",
            f"must be true with existing_{kept[0].replace('-', '_')}, which means nothing without",
        )


def _misplaced(stage: Stage) -> Iterator[tuple[str, str]]:
    """Yield each setting whose ARN is of a wrong region or that conflicts with the replica's region.

    A replica of tables with a customer managed key needs a key in its own region.
    """
    for key in (
        "kms_key",
        "log_kms_key",
        "queue_kms_key",
        "environment_kms_key",
        "domain_certificate",
        "alarm_topic",
    ):
        there, here = _region(getattr(stage, key)), stage.region or _region(stage.kms_key)
        if there and here and there != here:
            yield key, f"must be in {here}, where the stage is, not in {there}"
    replica, own = stage.replica_region, _region(stage.kms_key)
    if replica and replica == stage.region:
        yield "replica_region", f"must be another region than {stage.region}"
    if stage.replica_kms_key and not (replica and stage.kms_key):
        yield "replica_kms_key", "means nothing without replica_region and kms_key, which must be set with it"
    if replica and stage.kms_key and _region(stage.replica_kms_key) != replica:
        rule = "must be a key in replica_region where there is a kms_key, which is of one region"
        yield "replica_kms_key", rule
    if replica and replica == own:
        yield "replica_region", "must be another region than that of kms_key, where the tables are"


def _region(arn: str) -> str:
    """Return the region of an ARN; empty for an ARN that CDK knows only once it is deployed."""
    return arn.split(":")[3] if arn.startswith("arn:") else ""
