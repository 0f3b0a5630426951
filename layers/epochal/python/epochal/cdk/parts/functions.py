"""A Lambda function as all of Epochal's are: two layers, a role of its own, a log of its own, and alarms.

Layer 1 is the library without what only developers use; layer 2 its third-party pins. Each stack makes its
own layer versions of the same two assets: a version shared across stacks could never be replaced, since
CloudFormation keeps exports that are in use from changing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, cast

from aws_cdk import Annotations, Duration, IgnoreMode, RemovalPolicy, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from aws_cdk.aws_cloudwatch_actions import SnsAction
from constructs import Construct

from epochal.cdk.parts import grants
from epochal.cdk.parts.layers import SCHEMAS, has_bytecode
from epochal.cdk.stages import Stage
from epochal.layout.port import declared
from epochal.lazy_dataclasses import dataclass, fields
from epochal.plugins import own_settings
from epochal.settings import DECLARED, LAMBDA_PYTHON, SERVICE_NAME, Options, Settings

if TYPE_CHECKING:
    from epochal.cdk.parts.storage import Stores


MEMORY_MB: Final = 1_024
"""A bit over half a CPU. Start-up is mostly imports, which are CPU; below this every request waits for them
longer than the smaller price is worth. A page of 4 MB, its items and its JSON fit ten times over."""

WAITING_MB: Final = 512
"""Of the function whose requests wait for most of their time. The largest page takes 134 MB of it."""

DEVELOPERS_ONLY: Final = (
    "cdk",
    "cli",
    "contrib/*/cdk.py",
    "contrib/**/commands.py",
    "contrib/console",
    "contrib/eventsourcing",
    "contrib/local",
    "contrib/mcp",
    "contrib/proving",
    "contrib/*/copies.py",
    "contrib/*/proofs.py",
    "contrib/*/testing.py",
    "pytest_plugin.py",
    "testing",
)
"""What layer 1 is without, as patterns of paths: functions need plug-ins, and nothing of their commands and tests."""

SOURCES_ONLY: Final = (
    "There is no Python {python} on this machine, so layers have no bytecode: functions take longer to start."
)
LITTER: Final = ("**/__pycache__", "**/*.pyc", "**/*.egg-info", "**/.DS_Store")


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """Where the functions' code is, and what it has to run on.

    Attributes:
        library: folder of layer 1; `python/` is inside.
        vendor: folder of layer 2, filled for `architecture`.
        sdk: folder of a layer with boto3; None where it is the runtime's.
        layouts: folder of a layer with packages that bring layouts; None where there are none.
        packages: folder of a layer with what a file of requirements names.
        schemas: folder of a layer with what checks events that HTTP takes; None where nothing does.
        lambdas: folder with one folder for each function.
        python: `major.minor`.
    """

    library: Path
    vendor: Path
    packages: Callable[[Path], Path]
    lambdas: Path
    architecture: lambda_.Architecture
    python: str = LAMBDA_PYTHON
    sdk: Path | None = None
    layouts: Path | None = None
    schemas: Path | None = None


_KEPT: Final[list[Layers]] = []
"""Node forgets which class of Python's a construct is of that nobody in Python holds."""


class Layers(Construct):
    """The library and its pins."""

    def __init__(self, scope: Construct, id_: str, *, code: Code) -> None:
        super().__init__(scope, id_)
        left_out = [
            f"python/epochal/{each}"
            for path in map(PurePosixPath, DEVELOPERS_ONLY)
            for each in (path, path.parent / "__pycache__" / f"{path.stem}.*")
        ]
        left_out.append("python/epochal/**/README.md")  # for readers: a change of theirs deploys nothing
        versions = [
            layer(self, "Library", code, code.library, "The library", left_out=left_out),
            layer(self, "Vendor", code, code.vendor, "Third-party packages, pinned"),
        ]
        if code.sdk is not None:
            versions.append(layer(self, "Sdk", code, code.sdk, "The boto3 that was tested"))
        if code.layouts is not None:
            versions.append(layer(self, "Layouts", code, code.layouts, "Layouts of other packages"))
        self.versions: Final = tuple(versions)
        if not has_bytecode(code.library):
            Annotations.of(self).add_info_v2("epochal:sources-only", SOURCES_ONLY.format(python=code.python))

    @classmethod
    def of(cls, scope: Construct, code: Code) -> Layers:
        """Those of the stack around `scope`, which all that it holds shares."""
        kind = f"{code.python.replace('.', '')}{code.architecture.name}{'Sdk' if code.sdk else ''}"
        stack, id_ = Stack.of(scope), f"EpochalLayers{kind}"
        found = stack.node.try_find_child(id_)
        if isinstance(found, cls):
            return found
        made = cls(stack, id_, code=code)
        _KEPT.append(made)
        return made


def layer(
    scope: Construct, id_: str, code: Code, folder: Path, description: str, *, left_out: Sequence[str] = ()
) -> lambda_.LayerVersion:
    """A layer of a folder, without what `left_out` says."""
    return lambda_.LayerVersion(
        scope,
        id_,
        description=f"Epochal: {description}",
        code=lambda_.Code.from_asset(str(folder), exclude=[*left_out], ignore_mode=IgnoreMode.GLOB),
        compatible_architectures=[code.architecture],
        compatible_runtimes=[_runtime(code)],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What all parts of a store are made with.

    Attributes:
        outputs: whose the outputs of the stack are; see `outputs`.
    """

    stage: Stage
    stores: Stores
    code: Code
    layers: Layers
    outputs: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The VPC that a function runs in.

    Attributes:
        subnets: which of the VPC's; None for its private ones.
        security_groups: of the function; one of its own where there are none.
    """

    vpc: ec2.IVpc
    subnets: ec2.SubnetSelection | None = None
    security_groups: Sequence[ec2.ISecurityGroup] = ()


class Function(Construct):
    """A function, allowed to write its log and what `allowed` says.

    Its code is the folder `entry`, or else `lambdas/<name>`. CloudFormation names it where it is not `named`.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        name: str,
        description: str,
        shared: Shared,
        timeout: Duration,
        environment: Mapping[str, str],
        allowed: Sequence[iam.PolicyStatement],
        entry: Path | None = None,
        handler: str = "handler.handler",
        memory_mb: int = MEMORY_MB,
        reserved_concurrency: int | None = None,
        more_layers: Sequence[lambda_.ILayerVersion] = (),
        wakes_itself: bool = False,
        named: bool = True,
        network: Network | None = None,
    ) -> None:
        super().__init__(scope, id_)
        stage, code = shared.stage, shared.code
        full_name = stage.named(name)
        log = log_group(self, "Log", name=f"/aws/lambda/{full_name}" if named else None, stage=stage)
        self.function: Final = lambda_.Function(
            self,
            "Function",
            function_name=full_name if named else None,
            description=f"Epochal: {description}",
            runtime=_runtime(code),
            architecture=code.architecture,
            handler=handler,
            code=lambda_.Code.from_asset(
                str(entry or code.lambdas / name), exclude=[*LITTER], ignore_mode=IgnoreMode.GLOB
            ),
            layers=[*shared.layers.versions, *more_layers],
            memory_size=memory_mb,
            timeout=timeout,
            environment={**environment, SERVICE_NAME: full_name, "POWERTOOLS_LOG_LEVEL": stage.log_level},
            reserved_concurrent_executions=reserved_concurrency or stage.reserved_concurrency.get(name),
            role=_role(self, log, [*allowed, grants.in_network()] if network else allowed),
            vpc=network.vpc if network else None,
            vpc_subnets=network.subnets if network else None,
            security_groups=[*network.security_groups] or None if network else None,
            log_group=log,
            # Lambda ends what goes round some 16 times; where that is meant, the bound is the function's own.
            recursive_loop=lambda_.RecursiveLoop.ALLOW if wakes_itself else None,
            logging_format=lambda_.LoggingFormat.JSON,
            system_log_level_v2=_own_lines(stage),
            application_log_level_v2=_printed(stage),
        )


def log_group(scope: Construct, id_: str, *, name: str | None, stage: Stage) -> logs.LogGroup:
    """A log that forgets after the stage's days. It goes with its stack, or its name would block the next."""
    group = logs.LogGroup(scope, id_, log_group_name=name, removal_policy=RemovalPolicy.DESTROY)
    made = cast(logs.CfnLogGroup, group.node.default_child)
    # Days as CloudFormation counts them; the construct above takes names such as ONE_WEEK instead.
    made.retention_in_days = stage.log_days
    made.kms_key_id = stage.log_kms_key or None
    return group


def _own_lines(stage: Stage) -> lambda_.SystemLogLevel:
    """Lambda's own lines: three for each invocation, which cost as much as one of ours, unless only trouble is told."""
    return lambda_.SystemLogLevel.INFO if _verbose(stage) else lambda_.SystemLogLevel.WARN


def _printed(stage: Stage) -> lambda_.ApplicationLogLevel:
    """What Lambda lets through of ours: metrics count as INFO, and the logger has its own level."""
    return lambda_.ApplicationLogLevel.DEBUG if _verbose(stage) else lambda_.ApplicationLogLevel.INFO


def _verbose(stage: Stage) -> bool:
    return stage.log_level == "DEBUG"


def _runtime(code: Code) -> lambda_.Runtime:
    """CDK compares a layer's with a function's by more than their names, so it has to be its own."""
    return cast(lambda_.Runtime, getattr(lambda_.Runtime, f"PYTHON_{code.python.replace('.', '_')}"))


def _role(scope: Construct, log: logs.ILogGroup, allowed: Sequence[iam.PolicyStatement]) -> iam.Role:
    policy = iam.PolicyDocument(statements=[grants.on_log_group(log), *allowed])
    return iam.Role(
        scope,
        "Role",
        assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
        inline_policies={"allowed": policy},
    )


def wake_up_queues(
    scope: Construct, stage: Stage, name: str, failed: str, *, hidden: Duration, receives: int, **more: Any
) -> tuple[sqs.Queue, sqs.Queue]:
    """A queue of wake-ups, and one of those that failed too often.

    They hold nothing of an event, so SQS's own key is enough; another would have to let in who sends them.
    """

    def queue(id_: str, called: str, days: int, **own: Any) -> sqs.Queue:
        return sqs.Queue(
            scope,
            id_,
            queue_name=called,
            retention_period=Duration.days(days),
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=stage.tls_only,
            **more,
            **own,
        )

    letters = queue("Failed", failed, 14)
    dead = sqs.DeadLetterQueue(queue=letters, max_receive_count=receives)
    return queue("Queue", name, 4, visibility_timeout=hidden, dead_letter_queue=dead), letters


# What functions of a stage are told: what the stage chooses, and where things are.


def settings_of(stage: Stage, stores: Stores) -> Settings:
    """The settings of a stage with these stores."""
    chosen = {each.name: getattr(stage, each.name) for each in fields(Options) if each.name in DECLARED}
    partitions = {each.partitions: stage.partitions(each.partitions) for each in stage.deployed_layouts()}
    own = {
        name: stage.of_layouts.get(name, each.default)
        for layout in stage.deployed_layouts()
        for name, each in own_settings(layout).items()
        if not each.table
    }
    tables = {
        each.name: stores.tables[each.table].table_name
        for each in declared().values()
        if each.table in stores.tables
    }
    places = {**tables, "bucket": stores.bucket.bucket_name, "plugins": stage.brought_layouts()}
    if stage.event_schemas:
        places["event_schemas"] = SCHEMAS
    return Settings.of(**chosen, **partitions, **own, **places)


# Alarms as all of Epochal's are: named after the stage, sent to its topic, quiet where nothing happens.
#
# Missing data is a good sign everywhere here.

LAG_SECONDS: Final = 5 * 60
"""Readers and reactions usually hear of an append within two seconds. Five minutes is no burst, and leaves a day to
act."""

MINUTE: Final = Duration.minutes(1)
"""Of every metric, and there are hundreds: a duration is a question to Node."""

Minutes = tuple[int, int]
"""Bad ones, out of how many."""

LASTING: Final[Minutes] = (3, 5)
"""On-demand tables throttle for a minute while they grow."""

ONCE: Final[Minutes] = (1, 1)
"""For what must never happen."""

RUNBOOK: Final = "docs/runbook.md"
"""What to do about each alarm, in Epochal's documentation."""


class Alarms:
    """Makes the alarms that belong to `scope`; they are in the console alone where the stage has no topic for them."""

    def __init__(self, scope: Construct, stage: Stage) -> None:
        self._scope: Final = scope
        self._stage: Final = stage
        topic = stage.alarm_topic
        self._action: Final = SnsAction(sns.Topic.from_topic_arn(scope, "Topic", topic)) if topic else None
        self.made: Final[list[cloudwatch.Alarm]] = []

    def when(
        self,
        name: str,
        description: str,
        measured: cloudwatch.IMetric,
        *,
        minutes: Minutes,
        above: int = 0,
        entry: str = "",
    ) -> None:
        """Alarm when what is measured is above `above` in so many of so many minutes.

        `entry` is the anchor of what the runbook says, the alarm's name unless told: it may say it of several.
        """
        bad, observed = minutes
        alarm = cloudwatch.Alarm(
            self._scope,
            "".join(word.capitalize() for word in name.split("-")),
            alarm_name=self._stage.named(name),
            alarm_description=f"{description} What to do: {RUNBOOK}#{entry or name}",
            metric=measured,
            threshold=above,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            datapoints_to_alarm=bad,
            evaluation_periods=observed,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
        self.made.append(alarm)
        if self._action:
            alarm.add_alarm_action(self._action)


_SUBJECTS: Final = {
    "AWS/DynamoDB": "TableName",
    "AWS/Firehose": "DeliveryStreamName",
    "AWS/Kinesis": "StreamName",
    "AWS/Lambda": "FunctionName",
    "AWS/SQS": "QueueName",
    "AWS/Scheduler": "ScheduleGroup",
    "Epochal": "service",
}
"""The dimension that tells of what a metric of a namespace is."""


def metric(
    namespace: str,
    name: str,
    of: str | Mapping[str, str],
    *,
    statistic: str = "Sum",
    label: str | None = None,
) -> cloudwatch.Metric:
    """A metric by the minute, of one subject, or of these dimensions."""
    return cloudwatch.Metric(
        namespace=namespace,
        metric_name=name,
        dimensions_map={_SUBJECTS[namespace]: of} if isinstance(of, str) else of,
        statistic=statistic,
        label=label,
        period=MINUTE,
    )


def largest(name: str, queue: sqs.IQueue) -> cloudwatch.Metric:
    """A metric of a queue, at its highest."""
    return metric("AWS/SQS", name, queue.queue_name, statistic="Maximum")


BEHIND: Final = ("Epochal", "Reaction.behind")
"""How far a reaction is behind the feed: milliseconds since what its checkpoint has not passed was indexed."""

LATE: Final = ("Epochal", "Timers.late")
"""How late timers fired: milliseconds since they were due."""


def watch_function(alarms: Alarms, name: str, function_name: str, *, entry: str = "function") -> None:
    """Alarms on a function that answers every foreseen failure: an error is a fault of code or set-up.

    Entries of the runbook begin with `entry`.
    """
    alarms.when(
        f"{name}-fails",
        f"The function {name} raised, ran out of time or of memory: see its log.",
        metric("AWS/Lambda", "Errors", function_name),
        minutes=ONCE,
        entry=f"{entry}-fails",
    )
    alarms.when(
        f"{name}-throttled",
        f"The function {name} is at its concurrency limit: its own reservation, or the account's.",
        metric("AWS/Lambda", "Throttles", function_name),
        minutes=LASTING,
        entry=f"{entry}-throttled",
    )
