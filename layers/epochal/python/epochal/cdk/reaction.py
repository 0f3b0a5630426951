"""A reaction as it is deployed: a function with the user's code, the queue that wakes it, and what makes up for lost
wake-ups.

    topic of notices ──► queue (FIFO, a group for each partition) ──► function ──► checkpoint in the index
                           ▲    └─ failed wake-ups: a queue of their own, alarmed        │
                           └──── a long catch-up goes on by a wake-up of its own ◄───────┘

    a deployment wakes every partition    so a new reaction begins with old events, and a mended one goes on at once
    so does a schedule                    in case a notice was lost
    a wake-up may fail in part            others of its batch are done; it comes again after some seconds
    a function dies                       its wake-ups come again when its lease on them is over (`hosting.leases`)
    a partition is run by one at a time   its wake-ups are one group; no two of a group are out at once

A store of another stack is found by its names, so the construct stands in any stack of the same account and region. The
function may read what it is fed with, keep its group's state and its own read models, and do what `allowed` adds.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import jsii
from aws_cdk import (
    CfnOutput,
    CustomResource,
    Duration,
    FileSystem,
    IgnoreMode,
    IStableListProducer,
    Lazy,
    Stack,
)
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from aws_cdk.aws_events_targets import LambdaFunction
from constructs import Construct

from epochal.cdk.parts import grants
from epochal.cdk.parts.functions import (
    BEHIND,
    LAG_SECONDS,
    LASTING,
    LITTER,
    MEMORY_MB,
    ONCE,
    Alarms,
    Code,
    Function,
    Layers,
    Minutes,
    Network,
    Shared,
    largest,
    metric,
    settings_of,
    wake_up_queues,
    watch_function,
)
from epochal.cdk.parts.storage import function_of, queue_of
from epochal.cdk.stages import BadSetting, Stage, known_are
from epochal.hosting.function import ENTRY
from epochal.hosting.leases import MAX_RECEIVES, hidden_seconds
from epochal.layout.port import INDEX, READ_MODELS
from epochal.lazy_dataclasses import replace
from epochal.settings import variable

if TYPE_CHECKING:
    from epochal.cdk.store import Store


TIMEOUT: Final = Duration.minutes(1)
"""A long catch-up is many runs, so that longer ones gain nothing."""

BATCH_SIZE: Final = 10
"""Wake-ups of one invocation, which divides its time among their partitions. The most that a FIFO queue gives."""

SCHEDULE: Final = Duration.minutes(15)
"""Asks each partition's group once whether it has missed anything: some hundred requests a day and partition."""

FUNCTION_NAME: Final = 64
"""Characters of a function's name, at most."""

REQUIREMENTS: Final = "requirements.txt"

_COUNTED: Final = (
    ("parked", "has parked streams: their events wait to be replayed."),
    ("blocked", "does not get past a stream, and all others of its partition wait with it."),
    ("unmet", "asks for a category or a type of which nothing has come: misspelt, or early."),
)
"""What a reaction counts that must not be, and what it then does."""

NAMED: Final = "epochal.hosting.function.handler"
"""The handler of a function that is told its reaction."""


class Reaction(Construct):
    """A reaction to the events of a store.

    Attributes:
        function: with the user's code; operators invoke it (docs/runbook.md).
        queue: its wake-ups.
        failed: wake-ups that failed too often.
        outputs: names of function and queue.
    """

    _decorator: str | None = "reaction"
    """What the handler has; None where it is no reaction, but what one of ours calls."""

    _named: str = NAMED
    """The handler of the function where `handler` names code that is called by it."""

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
        timeout: Duration = TIMEOUT,
        batch_size: int = BATCH_SIZE,
        max_receives: int = MAX_RECEIVES,
        schedule: Duration = SCHEDULE,
        environment: Mapping[str, str] | None = None,
        allowed: Sequence[iam.PolicyStatement] = (),
        read_models: Sequence[str] = (),
        more_layers: Sequence[lambda_.ILayerVersion] = (),
        reserved_concurrency: int | None = None,
        network: Network | None = None,
        python: str | None = None,
        architecture: lambda_.Architecture | None = None,
    ) -> None:
        """Add a reaction to a stack.

        Args:
            scope: the stack, or a construct in it.
            id_: the construct's.
            store: what feeds it.
            entry: folder with the user's code. What a `requirements.txt` in it names is fetched, and comes with it.
            handler: `module:reaction` in that folder, a function with the decorator; or `module.function`, where
                `function = lambda_handler(reaction)`.
            name: the reaction's, as its decorator has it; read from there where it is not given.
            memory_mb: of the function, and with it its share of a CPU.
            timeout: of one invocation. A handler's one call has to end within a fifth of it.
            batch_size: wake-ups of one invocation, at most 10, which runs the partitions or members that they wake one
                after another. With several members 1, so that they run side by side.
            max_receives: after so many failures a wake-up is set aside and alarmed.
            schedule: how often every partition is woken in case a notice was lost.
            environment: more of it, for the handler.
            allowed: what the handler needs beside reading events.
            read_models: names of those that it makes; the stage has to have their table.
            more_layers: layers beside the library's.
            reserved_concurrency: invocations at once, which no other function takes.
            network: the VPC that the function runs in, where it finds a database; without one it runs in Lambda's own.
            python, architecture: of the function; the store's where they are not given.

        Raises:
            BadSetting: a name is too long, or another reaction to the store has it; the code is not there, there is no
                table of read models, or functions cannot run on that Python.
            InstallerFailed: pip has no wheels of what the function needs for that Python and processor.
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
            must = f"must be true of the store, EventStore(…, read_models=True), for those of the reaction {name}"
            raise BadSetting("read_models", must)
        queue, failed = wake_up_queues(
            self,
            stage,
            queue_of(stage, name),
            queue_of(stage, name, failed=True),
            hidden=Duration.seconds(hidden_seconds(timeout.to_seconds())),
            receives=max_receives,
            fifo=True,
            content_based_deduplication=False,
            # By partition, or all partitions would share 300 requests a second.
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
            timeout=timeout,
            environment={
                **(environment or {}),
                **settings.environment("reaction"),
                **({ENTRY: handler} if ":" in handler else {}),
            },
            allowed=[
                *grants.allowed("reaction", stage, stores),
                *grants.read_models(stores, read_models),
                self._waking(stage),
                *allowed,
            ],
            entry=entry,
            handler=self._named if ":" in handler else handler,
            memory_mb=memory_mb,
            reserved_concurrency=reserved_concurrency,
            more_layers=[*self._packages(entry, code), *more_layers],
            network=network,
            wakes_itself=True,
        ).function
        mapping, subscription = self._mapping(batch_size), self._subscription(store.topic_arn(self))
        # Last: this wake-up reads what was appended before, notices tell of what comes after. What nobody said of the
        # function, as another Python, is not the waker's.
        waker = Waker.of(
            self, store, Shared(stage=stage, stores=stores, code=store.code(), layers=store.layers(self))
        )
        first = waker.wake(self, "FirstWakeUp", queue=self.queue, entry=entry, layers=layers)
        first.node.add_dependency(mapping, subscription, self.queue)
        rule = events.Rule(self, "Schedule", schedule=events.Schedule.rate(schedule))
        rule.add_target(LambdaFunction(self.function))
        self._watch(Alarms(self, stage), name)
        self.outputs: Final = self._outputs(name)

    def _waking(self, stage: Stage) -> iam.PolicyStatement:
        """Lambda receives wake-ups under the function's role; the function says when they come again, and sends some of
        its own.
        """
        sending = grants.batched("SendMessage", named=stage.batches_named)
        return grants.on_queue(self.queue, *grants.CONSUMING, *sending)

    def _mapping(self, batch_size: int) -> lambda_.CfnEventSourceMapping:
        return lambda_.CfnEventSourceMapping(
            self,
            "WakeUps",
            function_name=self.function.function_name,
            event_source_arn=self.queue.queue_arn,
            batch_size=batch_size,
            function_response_types=["ReportBatchItemFailures"],
        )

    def _packages(self, entry: Path, code: Code) -> list[lambda_.LayerVersion]:
        """A layer of what the reaction's own requirements are, if it has any."""
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
        """The topic's messages, and nobody else's."""
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
        subject = function_of(name)
        entry = function_of("name")  # the runbook says it of all reactions

        def when(
            what: str, does: str, measured: cloudwatch.Metric, minutes: Minutes = ONCE, above: int = 0
        ) -> None:
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
        values = {
            "FunctionName": (self.function.function_name, f"Runs the reaction {name}"),
            "QueueUrl": (self.queue.queue_url, f"Wakes the reaction {name}"),
        }
        return {
            key: CfnOutput(self, key, value=value, description=description)
            for key, (value, description) in values.items()
        }


# The folder of a reaction's code: where its module is, and what its decorator calls it.
#
# The code is read, not run: what it imports need not be on the machine that deploys it.


_OPEN: Final = ("*", "__getattr__", "__dict__", "exec", "globals", "locals", "setattr", "sys", "vars")
"""Words of a module that may have names which no reading of it finds."""


def module_of(entry: Path, handler: str) -> Path:
    """The file of a handler: `board:departures` and `board.handler` are both in `board.py`."""
    return entry.joinpath(*_parts(handler)[0].split(".")).with_suffix(".py")


def _parts(handler: str) -> tuple[str, str, str]:
    """A handler's module, the sign after it, and its name there."""
    return handler.rpartition(":" if ":" in handler else ".")


def declared_name(entry: Path, handler: str, name: str | None, decorator: str | None) -> str:
    """What the decorator of the reaction that a handler names calls it, `@reaction(name="departures")`; or else `name`.

    Raises:
        BadSetting: what would fail only once it is deployed, as far as the file tells; or the name is neither there as
            plain text nor given.
    """

    def refused(setting: str, rule: str) -> BadSetting:
        return BadSetting(f"{f'reactions.{name}' if name else str(decorator).capitalize()}.{setting}", rule)

    module = module_of(entry, handler)
    if not module.is_file():
        raise refused("entry", f"must be a folder with the handler's module: {module} is not there")
    named, sign, wanted = _parts(handler)
    try:
        read = ast.parse(module.read_bytes())
    except SyntaxError:  # of a newer Python, perhaps
        read = ast.parse("from unread import *")
    nodes, found = [*ast.walk(read)], dict(_reactions(read.body, decorator))
    words = {
        getattr(node, field, "") for node in nodes for field in ("id", "name", "asname", "attr", "value")
    }
    if words.isdisjoint({wanted, *_OPEN}):
        known = f": {known_are(handler, [f'{named}:{each}' for each in found])}" if found else ""
        raise refused("handler", f"must be in {module}, which has no {wanted}{known}")
    given = re.compile(rf"{re.escape(wanted)} = [\w.]*lambda_handler\((\w+)\)")
    assigned = [given.fullmatch(ast.unparse(each)) for each in read.body if isinstance(each, ast.Assign)]
    of = next((each[1] for each in assigned if each and _bound(nodes, wanted) == [-1]), wanted)
    if of in found and _bound(nodes, of) == [1]:
        if sign == "." and of == wanted:
            raise refused("handler", f"must be {named}:{wanted}, with a colon: {handler} is a {decorator}")
        if name not in (None, found[of]):
            raise refused("name", f"must be {found[of]}, as the decorator in {module} has it, not {name}")
    if decorator and sign == ":" and _bound(nodes, wanted) == [0] and words.isdisjoint(_OPEN):
        raise refused("handler", f"must have the decorator {decorator}: {wanted} in {module} has none")
    names = [found[of]] if of in found else [] if sign == ":" else list(found.values())
    if not name and len(names) != 1:
        rule = f"must be given, as its decorator has it: no one {decorator} was found in {module}"
        raise refused("name", rule)
    return name or names[0]


def _bound(nodes: Sequence[Any], name: str) -> list[int]:
    """How many decorators a name has where it is bound: -1 where that is no definition. What is bound again, or has
    another decorator, may be something else.
    """
    return [
        len(node.decorator_list) if hasattr(node, "decorator_list") else -1
        for node in nodes
        if name in (getattr(node, field, "") for field in ("id", "name", "asname"))
        and not isinstance(getattr(node, "ctx", None), ast.Load)
    ]


def _reactions(body: Sequence[Any], name: str | None) -> Iterator[tuple[str, str]]:
    """Functions and classes of a module with the decorator, and their names as reactions."""
    for each in body:
        for decorator in getattr(each, "decorator_list", ()):
            called = getattr(decorator, "func", None)
            if name in (getattr(called, "id", ""), getattr(called, "attr", "")):
                for keyword in decorator.keywords:
                    if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
                        yield each.name, str(keyword.value.value)


# The function that wakes reactions when they are deployed: one in a stack, for all reactions to a store.
#
# It is ours, and loads nothing of a user's: what answers CloudFormation has to answer, or a deployment that fails
# cannot be rolled back.

WAKER_TIMEOUT: Final = Duration.minutes(1)

ANSWERED_WITHIN: Final = Duration.minutes(2)
"""CloudFormation waits an hour for a custom resource that does not answer, if nobody says otherwise."""

_KEPT: Final[list[Waker]] = []
"""Node forgets which class of Python's a construct is of that nobody in Python holds."""


@jsii.implements(IStableListProducer)
class _Arns:
    """Those of the queues of all reactions in a stack, once all are known: its role has them from the beginning."""

    def __init__(self) -> None:
        self.found: Final[list[str]] = []

    def produce(self) -> list[str]:
        """When the app is synthesised."""
        return self.found


class Waker(Construct):
    """The function `waker`. CloudFormation names it: several stacks may have one for the same store."""

    def __init__(self, scope: Construct, id_: str, shared: Shared) -> None:
        super().__init__(scope, id_)
        stores, self._queues = shared.stores, _Arns()
        index = stores.tables[INDEX.kind]
        self._function: Final = Function(
            self,
            "Function",
            name="waker",
            named=False,
            description="wakes reactions when they are deployed",
            shared=shared,
            timeout=WAKER_TIMEOUT,
            environment={variable("index_table"): index.table_name},
            allowed=[
                grants.on_table(index, "GetItem", "Query"),
                grants.on_queues(
                    Lazy.list(self._queues), *grants.batched("SendMessage", named=shared.stage.batches_named)
                ),
                *grants.on_key(stores.key, write=False),
            ],
        ).function

    @classmethod
    def of(cls, scope: Construct, store: Construct, shared: Shared) -> Waker:
        """That of the stack around `scope`, for this store."""
        stack, id_ = Stack.of(scope), f"EpochalWaker{store.node.addr[-8:]}"
        found = stack.node.try_find_child(id_)
        if isinstance(found, cls):
            return found
        made = cls(stack, id_, shared)
        _KEPT.append(made)
        return made

    def wake(
        self, scope: Construct, id_: str, *, queue: sqs.Queue, entry: Path, layers: Layers
    ) -> CustomResource:
        """A wake-up of the reaction with this queue, asked for whenever the code in `entry` or the layers are others:
        CloudFormation passes over a resource that has not changed.
        """
        self._queues.found.append(queue.queue_arn)
        code = FileSystem.fingerprint(str(entry), exclude=[*LITTER], ignore_mode=IgnoreMode.GLOB)
        return CustomResource(
            scope,
            id_,
            service_token=self._function.function_arn,
            resource_type="Custom::EpochalWakeUp",
            service_timeout=ANSWERED_WITHIN,
            properties={
                "Queue": queue.queue_url,
                "Code": code,
                "Layers": [each.layer_version_arn for each in layers.versions],
            },
        )
