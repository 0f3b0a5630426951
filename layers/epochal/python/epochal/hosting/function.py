"""The entry point of a reaction's function: the handler that Lambda calls.

A module with reactions does not refer to functions: its reactions run here, in a process, and in tests. So `handler` is
the handler of a function whose environment names the reaction in the code beside it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from epochal.dynamo.lazy_clients import lazily
from epochal.dynamo.loggable_errors import describe_chain
from epochal.dynamo.stores import HERE
from epochal.errors import InvalidInput
from epochal.hosting.failure_records import FailureRecords
from epochal.hosting.function_logs import log_attempt, logger_of
from epochal.hosting.leases import Leases
from epochal.hosting.light_sqs import light_sqs_client
from epochal.hosting.metrics import Metrics, metrics_of
from epochal.hosting.reaction_function import ReactionFunction, warn_of_no_record
from epochal.hosting.wakeup_queue import Queue
from epochal.model.kinds import must_be
from epochal.named_objects import load_object
from epochal.reactions.composite import Composite, composite_of
from epochal.reactions.definition import Reaction
from epochal.reactions.group_member import Member, stand_in
from epochal.reactions.reactor import Reactor
from epochal.reactions.traces import trace_of
from epochal.settings import Settings, service_name, variable

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from epochal.feed.events import FeedEvent


Handler = Callable[[dict[str, Any], "LambdaContext"], dict[str, Any]]
"""Type of the function that AWS Lambda calls with an event and a context."""


def lambda_handler(
    reaction: Reaction | Composite | type, environment: Mapping[str, str] = os.environ
) -> Handler:
    """Return the Lambda handler that runs `reaction`; call this once, where the module is loaded.

    A process has two reactions: the handler runs the one that the function was deployed for.

    Args:
        reaction: a reaction, or a process with its two reactions.
        environment: environment variables with the settings of the function.

    Raises:
        InvalidInput: the function was deployed for a reaction of another name, or a setting does not parse.
        ModuleNotFoundError: the extra `lambda` is not installed.
    """
    settings = Settings.from_environment(environment)
    service = service_name(environment, settings.reaction)
    metrics, deployment = metrics_of(service, environment), HERE.deployment(settings)
    if composite := composite_of(reaction):
        reactions = composite.reactions(deployment.streams, partial(_count_passed, metrics))
        reaction = next(
            (reaction for reaction in reactions if reaction.name == settings.reaction), reactions[0]
        )
    must_be(Reaction, reaction, "reaction", "a function decorated with @reaction(name=…)")
    assert isinstance(reaction, Reaction)  # noqa: S101  as was asked
    if settings.reaction != reaction.name:
        rule = f"deployed for {settings.reaction!r}, but the reaction is {reaction.name!r}: give both the same name"
        raise InvalidInput(variable("reaction"), rule)
    queue = Queue(lazily(light_sqs_client), settings.queue)
    logger = logger_of(service)
    member = Member(reaction=reaction, reader=deployment.feed)
    reactor = Reactor(member=member, on_failed=partial(log_attempt, logger, reaction.handler_name))
    reactor.calls.begin()  # for as long as the process lives: connections outlast an invocation
    return ReactionFunction(reactor=reactor, queue=queue, logger=logger, metrics=metrics).handle


def _count_passed(metrics: Metrics, why: str, _event: FeedEvent) -> None:
    metrics.add(counts={f"Process.{why}": 1})


ENTRY: Final = "EPOCHAL_ENTRY"
"""Environment variable that names the reaction, as `module:name`: `board:departures`."""

PROCESS: Final = "EPOCHAL_PROCESS"
"""Environment variable of a function that runs one of the two reactions of a process; such functions may append."""


def __getattr__(name: str) -> Handler:
    """Lambda asks for the handler, once; whoever else imports this module asks for nothing."""
    if name != "handler":
        raise AttributeError(name)
    return _handler()


@cache
def _handler() -> Handler:
    return loaded(lambda: lambda_handler(load_object(os.environ[ENTRY])))


def loaded(load: Callable[[], Handler], environment: Mapping[str, str] = os.environ) -> Handler:
    """Load a function's handler; if that fails, return one that retries, or puts wake-ups back and raises."""
    try:
        return load()
    except Exception as error:  # noqa: BLE001  the code is a user's
        from epochal.hosting.failed_load import FailedLoad  # noqa: PLC0415  functions start without it

        settings = Settings.from_environment(environment)
        logger = logger_of(service_name(environment, settings.reaction))
        logger.error(  # noqa: TRY400  Lambda logs the trace when it is raised
            "the reaction cannot be loaded",
            extra={
                "entry": environment.get(ENTRY, ""),
                "error": describe_chain(error),
                "trace": trace_of(error),
            },
        )
        leases = Leases(client=lazily(light_sqs_client), url=settings.queue, logger=logger)

        def open_records() -> FailureRecords:
            reaction = stand_in(settings.reaction)
            return FailureRecords(
                member=Member(reaction=reaction, reader=HERE.deployment(settings).feed),
                keeps_words=False,
                on_unrecorded=partial(warn_of_no_record, logger),
            )

        return FailedLoad(load=load, leases=leases, open_records=open_records).handle
