"""The common form of Epochal's Lambda functions: two layers, and a role, a log and alarms for each function.

Layer 1 is the library without modules that only developers use; layer 2 its third-party pins. Each stack makes its
own layer versions of the same two assets: a version shared across stacks could never be replaced, since
CloudFormation keeps exports that are in use from changing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, cast

from aws_cdk import Annotations, Duration, IgnoreMode, RemovalPolicy, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from epochal.cdk.arguments import a_sequence, an_instance, an_object_with, checked_arguments
from epochal.cdk.parts import iam_statements
from epochal.cdk.parts.bytecode import has_bytecode
from epochal.cdk.parts.limits import check_environment, check_layers, check_role_policy
from epochal.cdk.rules import or_null
from epochal.cdk.stages import Stage
from epochal.lazy_dataclasses import dataclass
from epochal.plugins import layouts, own_settings
from epochal.settings import DECLARED, LAMBDA_PYTHON, SERVICE_NAME

if TYPE_CHECKING:
    from epochal.cdk.parts.stores import Stores


MEMORY_MB: Final = 1_024
"""A bit over half a CPU. Start-up is mostly imports, which are CPU; below this every request waits for them
longer than the smaller price is worth. A page of 4 MB, its items and its JSON fit ten times over."""

WAITING_MB: Final = 512
"""Memory of the function whose requests wait for most of their time. The largest page takes 134 MB."""

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
"""Patterns of paths left out of layer 1: functions need plug-ins, but not their commands and tests."""

SOURCES_ONLY: Final = (
    "There is no Python {python} on this machine, so layers have no bytecode: functions take longer to start."
)
LITTER: Final = ("**/__pycache__", "**/*.pyc", "**/*.egg-info", "**/.DS_Store")


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """The folders of the functions' code, and the Python and processor that it runs on.

    Attributes:
        library: folder of layer 1, which has the folder `python`.
        vendor: folder of layer 2, with wheels for `architecture`.
        packages: function from a requirements file to the folder of a layer with its packages.
        lambdas: folder with one folder for each function.
        architecture: processor of the functions.
        python: Python version `major.minor`.
        sdk: folder of a layer with boto3; None for the runtime's boto3.
        layouts: folder of a layer with packages that bring layouts; None for none.
        schemas: folder of a layer with the module that checks events sent over HTTP; None for no checks.
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
"""Layers that are kept alive: Node forgets the Python class of a construct that Python does not refer to."""


class Layers(Construct):
    """The layer versions of the library and its pinned packages in one stack.

    Attributes:
        versions: the layer versions that a function needs.
    """

    def __init__(self, scope: Construct, id_: str, *, code: Code) -> None:
        """Make layers of the library, its pinned packages and, if the code has them, boto3 and layouts.

        Modules that only developers use are left out.
        """
        super().__init__(scope, id_)
        left_out = [
            f"python/epochal/{pattern}"
            for path in map(PurePosixPath, DEVELOPERS_ONLY)
            for pattern in (path, path.parent / "__pycache__" / f"{path.stem}.*")
        ]
        left_out.append("python/epochal/**/README.md")  # so that a changed README deploys nothing
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
        """Return the layers in the stack of `scope`, which its constructs share; make them on first use."""
        kind = f"{code.python.replace('.', '')}{code.architecture.name}{'Sdk' if code.sdk else ''}"
        stack, id_ = Stack.of(scope), f"EpochalLayers{kind}"
        existing = stack.node.try_find_child(id_)
        if isinstance(existing, cls):
            return existing
        layers = cls(stack, id_, code=code)
        _KEPT.append(layers)
        return layers


def layer(
    scope: Construct, id_: str, code: Code, folder: Path, description: str, *, left_out: Sequence[str] = ()
) -> lambda_.LayerVersion:
    """Make a layer version of a folder.

    Args:
        code: the functions' code, for its Python version and processor.
        left_out: patterns of paths to leave out.
    """
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
    """Settings, stores, code and layers that all parts of a store share.

    Attributes:
        stage: settings of the store.
        stores: tables and bucket of the store.
        code: code of the functions.
        layers: layers of the functions.
        outputs: prefix of the stack outputs' names; see `storage.whose`.
    """

    stage: Stage
    stores: Stores
    code: Code
    layers: Layers
    outputs: str = ""


class Network:
    """The VPC that a function runs in."""

    @checked_arguments(
        "Network",
        {
            "vpc": an_object_with("vpc_id", "an ec2.Vpc, or ec2.Vpc.from_lookup(…)"),
            "subnets": or_null(an_instance(ec2.SubnetSelection, "an ec2.SubnetSelection")),
            "security_groups": a_sequence(
                an_object_with("security_group_id", "a security group"), "ec2.SecurityGroup"
            ),
        },
    )
    def __init__(
        self,
        *,
        vpc: ec2.IVpc,
        subnets: ec2.SubnetSelection | None = None,
        security_groups: Sequence[ec2.ISecurityGroup] = (),
    ) -> None:
        """Check and store the VPC, the subnets and the security groups of a function.

        Args:
            vpc: the VPC.
            subnets: selection of the VPC's subnets; None for its private ones.
            security_groups: security groups of the function; empty for a new one.

        Raises:
            BadSetting: an argument breaks its rule.
        """
        self.vpc, self.subnets, self.security_groups = vpc, subnets, tuple(security_groups)


class Function(Construct):
    """A Lambda function with its role and log, allowed to write the log and do what `allowed` lists.

    Its code is in the folder `entry`, or else in `lambdas/<name>`. CloudFormation names the function where `named` is
    false.
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
        setting: str = "",
        remedies: Mapping[str, tuple[str, str]] | None = None,
    ) -> None:
        """Make the function, its role and its log group; raise `BadSetting` for what AWS would not allow.

        Args:
            name: kind of the function, from which its full name is made.
            description: description of the function, without `Epochal:`.
            shared: settings, stores, code and layers of the function.
            timeout: timeout of one invocation.
            environment: environment variables.
            allowed: permissions besides writing the log.
            entry: folder of the code; None for `lambdas/<name>`.
            handler: handler `module.function` of the code.
            memory_mb: memory in MB.
            reserved_concurrency: reserved concurrent invocations; None for the stage's setting.
            more_layers: layers besides the shared ones.
            wakes_itself: whether Lambda must not end recursive invocations.
            named: whether the function and its log have explicit names.
            network: VPC of the function; None for Lambda's own network.
            setting: setting that declares the function, which errors name; empty for a function of Epochal's own.
            remedies: by environment variable, the setting that makes its value, and a sentence that says how to make it
                shorter.

        Raises:
            BadSetting: AWS does not allow so large an environment or policy, or so many layers.
        """
        super().__init__(scope, id_)
        stage, code = shared.stage, shared.code
        full_name = stage.named(name)
        environment = {**environment, SERVICE_NAME: full_name, "POWERTOOLS_LOG_LEVEL": stage.log_level}
        where = f"{setting or name}."
        check_environment(self, f"{where}environment", environment, {**_remedies(), **(remedies or {})})
        check_layers(f"{where}more_layers", len(shared.layers.versions), len(more_layers))
        permissions = [*allowed, iam_statements.in_network()] if network else allowed
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
            environment=environment,
            environment_encryption=kms.Key.from_key_arn(self, "EnvironmentKey", stage.environment_kms_key)
            if stage.environment_kms_key
            else None,
            reserved_concurrent_executions=reserved_concurrency or stage.reserved_concurrency.get(name),
            role=_role(self, log, permissions, f"{where}permissions"),
            vpc=network.vpc if network else None,
            vpc_subnets=network.subnets if network else None,
            security_groups=[*network.security_groups] or None if network else None,
            log_group=log,
            # Lambda ends recursive invocations after some 16 rounds; a function that wakes itself has its own limit.
            recursive_loop=lambda_.RecursiveLoop.ALLOW if wakes_itself else None,
            logging_format=lambda_.LoggingFormat.JSON,
            system_log_level_v2=_own_lines(stage),
            application_log_level_v2=_printed(stage),
        )


def log_group(scope: Construct, id_: str, *, name: str | None, stage: Stage) -> logs.LogGroup:
    """Make a log group with the stage's retention, which is deleted with its stack.

    A log group that outlived its stack would take the name of the next one.

    Args:
        name: name of the log group; None lets CloudFormation name it.
    """
    group = logs.LogGroup(scope, id_, log_group_name=name, removal_policy=RemovalPolicy.DESTROY)
    resource = cast(logs.CfnLogGroup, group.node.default_child)
    # Days as CloudFormation counts them; the construct above takes names such as ONE_WEEK instead.
    resource.retention_in_days = stage.log_days
    resource.kms_key_id = stage.log_kms_key or None
    return group


def _own_lines(stage: Stage) -> lambda_.SystemLogLevel:
    """Return the level of Lambda's own log lines: warnings only, unless the stage logs at DEBUG.

    Lambda writes three lines per invocation at INFO, which cost as much as one line of Epochal's.
    """
    return lambda_.SystemLogLevel.INFO if _verbose(stage) else lambda_.SystemLogLevel.WARN


def _printed(stage: Stage) -> lambda_.ApplicationLogLevel:
    """Return the level from which Lambda keeps the function's log lines.

    Metrics are lines at INFO, and the logger has its own level.
    """
    return lambda_.ApplicationLogLevel.DEBUG if _verbose(stage) else lambda_.ApplicationLogLevel.INFO


def _verbose(stage: Stage) -> bool:
    """Whether the stage logs at DEBUG."""
    return stage.log_level == "DEBUG"


def _runtime(code: Code) -> lambda_.Runtime:
    """Return CDK's own constant for the functions' Python.

    CDK compares a layer's runtime with a function's by more than their names.
    """
    return cast(lambda_.Runtime, getattr(lambda_.Runtime, f"PYTHON_{code.python.replace('.', '_')}"))


def _remedies() -> dict[str, tuple[str, str]]:
    """Return for each variable of a setting the setting's name, and what to do where its value is too long."""
    layout_settings = (setting for layout in layouts() for setting in own_settings(layout).values())
    return {
        setting.variable: (setting.name, "Give it fewer or shorter values")
        for setting in (*DECLARED.values(), *layout_settings)
    }


def _role(
    scope: Construct, log: logs.ILogGroup, allowed: Sequence[iam.PolicyStatement], setting: str
) -> iam.Role:
    """Make the role of a function, with one inline policy that also lets it write its log.

    Args:
        setting: setting that the permissions come from.

    Raises:
        BadSetting: IAM does not allow so large a policy.
    """
    policy = iam.PolicyDocument(statements=[iam_statements.on_log_group(log), *allowed])
    check_role_policy(scope, setting, policy)
    return iam.Role(
        scope,
        "Role",
        assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
        inline_policies={"allowed": policy},
    )


def wake_up_queues(
    scope: Construct, stage: Stage, name: str, failed: str, *, hidden: Duration, receives: int, **more: Any
) -> tuple[sqs.Queue, sqs.Queue]:
    """Make a queue of wake-ups and its dead-letter queue; return both.

    Wake-ups hold no events, so SQS's own key is enough, unless the stage names another: the policy of that key has to
    let SNS use it, and each sender needs `iam_statements.on_queue_key`.

    Args:
        name: name of the queue.
        failed: name of the dead-letter queue.
        hidden: visibility timeout of the queue.
        receives: failures after which a wake-up moves to the dead-letter queue.
        more: further properties of both queues.
    """
    key = kms.Key.from_key_arn(scope, "QueueKey", stage.queue_kms_key) if stage.queue_kms_key else None

    def queue(id_: str, called: str, days: int, **options: Any) -> sqs.Queue:
        """Make one queue that keeps messages for `days` days."""
        return sqs.Queue(
            scope,
            id_,
            queue_name=called,
            retention_period=Duration.days(days),
            encryption=sqs.QueueEncryption.KMS if key else sqs.QueueEncryption.SQS_MANAGED,
            encryption_master_key=key,
            enforce_ssl=stage.tls_only,
            **more,
            **options,
        )

    letters = queue("Failed", failed, 14)
    dead = sqs.DeadLetterQueue(queue=letters, max_receive_count=receives)
    return queue("Queue", name, 4, visibility_timeout=hidden, dead_letter_queue=dead), letters
