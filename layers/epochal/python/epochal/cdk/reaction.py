"""A deployed reaction: a function with the user's code, the queue of its wake-ups, and a schedule that makes up for
lost wake-ups.

    topic of notices ──► queue (FIFO, a group for each partition) ──► function ──► checkpoint in the index
                           ▲    └─ failed wake-ups: a queue of their own, alarmed        │
                           └──── a long catch-up goes on by a wake-up of its own ◄───────┘

    a deployment wakes every partition    so a new reaction begins with old events, and a repaired one goes on at once
    so does a schedule                    in case a notice was lost
    a batch may fail in part              failed wake-ups are delivered again after some seconds; the others are done
    a function dies                       its wake-ups are delivered again when its lease expires (`hosting.leases`)
    one run of a partition at a time      its wake-ups are one message group, of which SQS delivers one at a time

A store of another stack is found by its names, so the construct may be in any stack of the same account and region. The
function may read the feed and its events, keep the state of its group and its own read models, and do what
`permissions` adds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from aws_cdk import (
    CfnOutput,
    Duration,
)
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from epochal.cdk.arguments import (
    ENVIRONMENT,
    a_sequence,
    an_instance,
    an_object_with,
    checked_arguments,
)
from epochal.cdk.declared_reactions import MODEL, REACTION, Declared
from epochal.cdk.parts import grants, iam_statements
from epochal.cdk.parts.alarms import (
    BEHIND,
    LAG_SECONDS,
    LASTING,
    ONCE,
    Alarms,
    Minutes,
    largest,
    metric,
    watch_function,
)
from epochal.cdk.parts.function_settings import settings_of
from epochal.cdk.parts.functions import (
    MEMORY_MB,
    Code,
    Function,
    Network,
    Shared,
    wake_up_queues,
)
from epochal.cdk.parts.resource_names import function_of, queue_of
from epochal.cdk.parts.schedules import run_on_schedule
from epochal.cdk.reaction_code import declared_name
from epochal.cdk.rules import BadSetting, Rule, a_number, a_text, declared_rules, one_of, or_null
from epochal.cdk.stages import Stage
from epochal.cdk.store import Store
from epochal.cdk.targets import PYTHONS
from epochal.cdk.waker import Waker
from epochal.hosting.function import ENTRY
from epochal.hosting.leases import MAX_RECEIVES, hidden_seconds
from epochal.layout.tables import READ_MODELS
from epochal.lazy_dataclasses import replace

TIMEOUT_SECONDS: Final = 60
"""Timeout of one invocation. A long catch-up takes many invocations, so that a longer timeout gains nothing."""

BATCH_SIZE: Final = 10
"""Wake-ups of one invocation, which divides its time among their partitions. A FIFO queue delivers at most 10."""

SCHEDULE_MINUTES: Final = 15
"""Interval at which every partition is woken in case a notice was lost: some hundred requests per day and partition."""

FUNCTION_NAME: Final = 64
"""Most characters of a function's name."""

REQUIREMENTS: Final = "requirements.txt"

_COUNTED: Final = (
    ("parked", "has parked streams: their events wait to be replayed."),
    ("blocked", "does not get past a stream, and all others of its partition wait with it."),
    ("unmet", "asks for a category or a type of which nothing has come: misspelt, or early."),
)
"""Metrics of a reaction that must stay at zero, and their meanings for alarms."""

NAMED: Final = "epochal.hosting.function.handler"
"""Handler of a function whose reaction is named by an environment variable."""


_IN_CDK_JSON: Final = declared_rules(Declared)

STORE: Final = an_instance(Store, "an EventStore, or EventStore.from_name(…)")
ARCHITECTURE: Final = or_null(an_instance(lambda_.Architecture, "an Architecture of aws_lambda"))

REACTION_RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        "store": STORE,
        "entry": an_instance((str, Path), "a folder"),
        "handler": a_text(r"[\w.]+[.:]\w+", "module:reaction or module.function"),
        "name": or_null(a_text(REACTION, "letters, digits and hyphens")),
        "memory_mb": _IN_CDK_JSON["memory_mb"],
        "timeout_seconds": _IN_CDK_JSON["timeout_seconds"],
        "batch_size": _IN_CDK_JSON["batch_size"],
        "max_receives": a_number(1, 1_000),
        "schedule_minutes": a_number(1, 1_440),
        "environment": ENVIRONMENT,
        "permissions": a_sequence(
            an_instance(iam.PolicyStatement, "a PolicyStatement"), "iam.PolicyStatement"
        ),
        "read_models": a_sequence(a_text(MODEL, "the name of a read model"), "names of read models"),
        "more_layers": a_sequence(an_object_with("layer_version_arn", "a layer"), "layers of aws_lambda"),
        "reserved_concurrency": or_null(_IN_CDK_JSON["reserved_concurrency"]),
        "network": or_null(an_instance(Network, "a Network")),
        "python": or_null(one_of(*PYTHONS)),
        "architecture": ARCHITECTURE,
    }
)
"""Rules of the arguments of a reaction, and of a process, which is two reactions."""


class Reaction(Construct):
    """A deployed reaction to a store's events: function, queue, subscription, schedule and alarms.

    Attributes:
        function: the function with the user's code; operators invoke it (docs/runbook.md).
        queue: FIFO queue of wake-ups.
        failed: dead-letter queue of wake-ups that failed too often.
        outputs: stack outputs with the names of the function and the queue.
    """

    _decorator: str | None = "reaction"
    """Name of the decorator that the handler must have; None for a function that a reaction of Epochal calls."""

    _named: str = NAMED
    """Handler of the Lambda function where `handler` has the form `module:reaction`."""

    _remedies: Mapping[str, tuple[str, str]] = MappingProxyType({})
    """For variables whose values settings make, the setting, and what to do where Lambda finds them too long."""

    @checked_arguments("Reaction", REACTION_RULES)
    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        store: Store,
        entry: str | Path,
        handler: str = "handler.handler",
        name: str | None = None,
        memory_mb: int = MEMORY_MB,
        timeout_seconds: int = TIMEOUT_SECONDS,
        batch_size: int = BATCH_SIZE,
        max_receives: int = MAX_RECEIVES,
        schedule_minutes: int = SCHEDULE_MINUTES,
        environment: Mapping[str, str] | None = None,
        permissions: Sequence[iam.PolicyStatement] = (),
        read_models: Sequence[str] = (),
        more_layers: Sequence[lambda_.ILayerVersion] = (),
        reserved_concurrency: int | None = None,
        network: Network | None = None,
        python: str | None = None,
        architecture: lambda_.Architecture | None = None,
    ) -> None:
        """Add a reaction to a stack: its function, queues, first wake-up, schedule and alarms.

        Args:
            scope: the stack, or a construct in it.
            id_: id of the construct.
            store: store whose events the reaction handles.
            entry: folder with the user's code. Packages that its `requirements.txt` names are fetched into a layer.
            handler: `module:reaction` in that folder, a function with the decorator; or `module.function`, where
                `function = lambda_handler(reaction)`.
            name: name of the reaction, as its decorator has it; None to read the decorator.
            memory_mb: memory of the function in MB, and with it its share of a CPU.
            timeout_seconds: timeout of one invocation. One call of the handler must end within a fifth of it.
            batch_size: most wake-ups of one invocation, at most 10, whose partitions or members run one after another.
                With several members use 1, so that they run in parallel.
            max_receives: number of failures after which a wake-up moves to the dead-letter queue and raises an alarm.
            schedule_minutes: interval at which every partition is woken in case a notice was lost.
            environment: further environment variables, for the handler.
            permissions: permissions of the handler besides reading events.
            read_models: names of the read models that the reaction makes; the stage must have their table.
            more_layers: layers besides the library's.
            reserved_concurrency: concurrent invocations reserved for the function, and its limit; None for none.
            network: VPC that the function runs in, for example to reach a database; None for Lambda's own network.
            python, architecture: Python version and processor of the function; None for the store's.

        Raises:
            BadSetting: the name is too long or taken by another reaction to the store, the code does not exist, there
                is no table of read models, functions cannot run on that Python, or AWS does not allow so large an
                environment or policy, or so many layers.
            InstallerFailed: pip found no wheels of a required package for that Python and processor.
        """
        super().__init__(scope, id_)
        entry, stage, code = Path(entry).resolve(), store.stage, store.code(python, architecture)
        layers = store.layers(self, python=python, architecture=architecture)
        name = declared_name(entry, handler, name, self._decorator)
        store.add_reaction(name, self.node.path)
        self._name: Final = stage.named(function_of(name))
        if len(self._name) > FUNCTION_NAME:
            must = f"must be shorter: {self._name} has more than {FUNCTION_NAME} characters"
            raise BadSetting(f"reactions.{name}", must)
        stores = self._stores = store.stores(self)
        if read_models and READ_MODELS.kind not in stores.tables:
            must = f"must be true for the store, EventStore(…, read_models=True): the reaction {name} has read models"
            raise BadSetting("read_models", must)
        queue, failed = wake_up_queues(
            self,
            stage,
            queue_of(stage, name),
            queue_of(stage, name, failed=True),
            hidden=Duration.seconds(hidden_seconds(timeout_seconds)),
            receives=max_receives,
            fifo=True,
            content_based_deduplication=False,
            # Per partition, since all partitions would share 300 requests a second otherwise.
            deduplication_scope=sqs.DeduplicationScope.MESSAGE_GROUP,
            fifo_throughput_limit=sqs.FifoThroughputLimit.PER_MESSAGE_GROUP_ID,
        )
        self.queue: Final = queue
        self.failed: Final = failed
        settings = replace(settings_of(stage, stores), reaction=name, queue=self.queue.queue_url)
        if not read_models:
            settings = replace(settings, read_models_table="")
        self.function: Final = Function(
            self,
            "Function",
            name=function_of(name),
            description=f"runs the reaction {name}",
            shared=Shared(stage=stage, stores=stores, code=code, layers=layers),
            timeout=Duration.seconds(timeout_seconds),
            environment={
                **(environment or {}),
                **settings.environment("reaction"),
                **({ENTRY: handler} if ":" in handler else {}),
            },
            allowed=[
                *grants.allowed("reaction", stage, stores),
                *grants.read_models(stores, read_models),
                self._waking(stage),
                *iam_statements.on_queue_key(stage),
                *permissions,
            ],
            entry=entry,
            handler=self._named if ":" in handler else handler,
            memory_mb=memory_mb,
            reserved_concurrency=reserved_concurrency,
            more_layers=[*self._packages(entry, code), *more_layers],
            network=network,
            wakes_itself=True,
            setting=f"reactions.{name}",
            remedies=self._remedies,
        ).function
        mapping, subscription = self._mapping(batch_size), self._subscription(store.topic_arn(self))
        # Last, since this wake-up makes the reaction read earlier appends, and notices announce later ones. The waker
        # runs on the store's Python and processor, whatever the function runs on.
        waker = Waker.of(
            self, store, Shared(stage=stage, stores=stores, code=store.code(), layers=store.layers(self))
        )
        first = waker.wake(self, "FirstWakeUp", queue=self.queue, entry=entry, layers=layers)
        first.node.add_dependency(mapping, subscription, self.queue)
        run_on_schedule(self, "Schedule", self.function, Duration.minutes(schedule_minutes))
        self._watch(Alarms(self, stage), name)
        self.outputs: Final = self._outputs(name)

    def _waking(self, stage: Stage) -> iam.PolicyStatement:
        """Return the function's permission to receive, postpone and send wake-ups.

        Lambda receives wake-ups under the function's role.
        """
        named = stage.batches_named
        sending = iam_statements.batched("SendMessage", named=named)
        return iam_statements.on_queue(self.queue, *iam_statements.consuming(named=named), *sending)

    def _mapping(self, batch_size: int) -> lambda_.CfnEventSourceMapping:
        """Make the event source mapping that invokes the function with wake-ups of the queue."""
        return lambda_.CfnEventSourceMapping(
            self,
            "WakeUps",
            function_name=self.function.function_name,
            event_source_arn=self.queue.queue_arn,
            batch_size=batch_size,
            function_response_types=["ReportBatchItemFailures"],
        )

    def _packages(self, entry: Path, code: Code) -> list[lambda_.LayerVersion]:
        """Return a list of one layer with the packages of `requirements.txt`; empty without that file."""
        requirements = entry / REQUIREMENTS
        if not requirements.is_file():
            return []
        folder = lambda_.Code.from_asset(str(code.packages(requirements)))
        return [
            lambda_.LayerVersion(
                self, "Packages", description="Third-party packages of a reaction", code=folder
            )
        ]

    def _subscription(self, topic_arn: str) -> sns.Subscription:
        """Subscribe the queue to the topic of notices, and allow the topic to send to it."""
        self.queue.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("sns.amazonaws.com")],
                actions=["sqs:SendMessage"],
                resources=[self.queue.queue_arn],
                conditions={"ArnEquals": {"aws:SourceArn": topic_arn}},
            )
        )
        return sns.Subscription(
            self,
            "Notices",
            topic=sns.Topic.from_topic_arn(self, "NoticesTopic", topic_arn),
            protocol=sns.SubscriptionProtocol.SQS,
            endpoint=self.queue.queue_arn,
            raw_message_delivery=True,
        )

    def _watch(self, alarms: Alarms, name: str) -> None:
        """Make the reaction's alarms on errors, throttles, lag, wake-ups, parked and blocked streams and more."""
        subject = function_of(name)
        entry = function_of("name")  # the runbook has one entry for all reactions

        def when(
            what: str, does: str, measured: cloudwatch.Metric, minutes: Minutes = ONCE, above: int = 0
        ) -> None:
            """Make an alarm `<reaction>-<what>` whose description says what the reaction does."""
            runbook = f"{entry}-{what}"
            alarms.when(f"{subject}-{what}", does, measured, above=above, minutes=minutes, entry=runbook)

        watch_function(alarms, subject, self._name, entry=entry)
        lag = metric(*BEHIND, self._name, statistic="Maximum")
        when("lags", f"The reaction {name} is minutes behind the feed.", lag, LASTING, LAG_SECONDS * 1_000)
        age = largest("ApproximateAgeOfOldestMessage", self.queue)
        waits = f"Wake-ups of the reaction {name} wait: its function fails, is throttled, or is not called."
        when("waits", waits, age, LASTING, LAG_SECONDS)
        depth = largest("ApproximateNumberOfMessagesVisible", self.failed)
        when("gave-up", f"Wake-ups of the reaction {name} failed too often and were set aside.", depth)
        dropped = metric("AWS/Lambda", "RecursiveInvocationsDropped", self._name)
        loop = f"Lambda takes long catch-ups of the reaction {name} for a loop, and ends them."
        when("stopped", loop, dropped)
        for what, does in _COUNTED:
            counted = metric("Epochal", f"Reaction.{what}", self._name)
            when(what, f"The reaction {name} {does}", counted)

    def _outputs(self, name: str) -> dict[str, CfnOutput]:
        """Make stack outputs with the function's name and the queue's URL; return them by name."""
        values = {
            "FunctionName": (self.function.function_name, f"Runs the reaction {name}"),
            "QueueUrl": (self.queue.queue_url, f"Wakes the reaction {name}"),
        }
        return {
            key: CfnOutput(self, key, value=value, description=description)
            for key, (value, description) in values.items()
        }
