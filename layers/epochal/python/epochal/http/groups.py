"""Groups of reactions over HTTP: reading their state, and steering them."""

from __future__ import annotations

from typing import Any, Final

from epochal.deployment import Deployment
from epochal.errors import GroupMissing, InvalidInput
from epochal.http import parameters, problems, schemas
from epochal.http.answers import answer
from epochal.http.components import Component, Shown
from epochal.http.declarations import operation
from epochal.http.documents import document
from epochal.http.feed import CHECKPOINT, PLACE
from epochal.http.metering import driver_for
from epochal.http.operation import Request, Response
from epochal.http.query_strings import QueryString
from epochal.lazy_dataclasses import asdict, replace
from epochal.reactions.definition import NAME
from epochal.reactions.steering import Groups, reset_view, standing_view, start_of
from epochal.store.driver import Meter

ACTS: Final = ("pause", "resume", "reset", "begin", "delete")

_GROUP: Final = parameters.path(
    "group", schemas.text("Name of the reaction.", pattern=NAME.pattern, examples=["board"])
)
_PARTITION: Final = schemas.whole("A partition's number.", 0, 999_999_999)
_EVENTS: Final = schemas.whole("Events.")


def _act(*acts: str, needs: tuple[str, ...] = (), **more: schemas.Schema) -> schemas.Schema:
    """Build the schema of a steering request for some acts and the members they need.

    Args:
        acts: allowed values of `act`.
        needs: further members that are required.
        more: schemas of further members.
    """
    return {"properties": {"act": {"enum": [*acts]}, **more}, "required": ["act", *needs]}


_FAILURE: Final = schemas.record(
    {
        "stream": schemas.words("Name of the stream."),
        "index": schemas.whole("Index of the first event that is not handled."),
        "cause": schemas.words("Exception that the handler raised."),
        "attempts": schemas.whole("Number of calls of the handler, including processes that died."),
        "since": schemas.words("Time at which the stream was parked."),
    }
)

_BLOCKED: Final = schemas.record(
    {
        "member": schemas.whole("Number of the member; 0 if the group has one member."),
        "cause": schemas.words("Why the run failed: the type of the error, or the timeout."),
        "stream": schemas.or_null(schemas.words(), "The stream that could not be handled."),
        "index": schemas.or_null(
            schemas.whole("Its index."), "Index of its first event that is not handled."
        ),
        "since": schemas.words("Time at which the first run failed at this place."),
        "last": schemas.words("Time at which the last run failed."),
        "runs": schemas.whole("Number of runs that have failed at this place."),
        "nextRun": schemas.or_null(
            schemas.words(),
            "Time at which the next run is expected. Null if its process has ended or the run is overdue.",
        ),
    }
)

STANDING: Final = Shown(
    "Group",
    {
        "partitions": schemas.array(
            schemas.record(
                {
                    "partition": _PARTITION,
                    "checkpoint": CHECKPOINT,
                    "tail": CHECKPOINT,
                    "events": schemas.or_null(
                        _EVENTS,
                        "Number of events that the group is behind, at most 100,000. Null if its checkpoint "
                        "belongs to another index.",
                    ),
                    "ofAllEvents": schemas.flag(
                        "Whether `events` counts all events, because the group reads all of them or has not "
                        "recorded which it reads."
                    ),
                    "seconds": {
                        "type": "number",
                        "description": "Seconds since the oldest of these events was indexed.",
                    },
                    "parked": schemas.whole("Number of parked streams."),
                    "paused": schemas.or_null(schemas.words(), "Time at which the group was paused."),
                    "indexerFailure": schemas.or_null(
                        schemas.words(), "Why the indexer cannot add events to the partition."
                    ),
                    "lastFailure": schemas.or_null(
                        _FAILURE, "Why the last of the parked streams was parked."
                    ),
                    "blocked": schemas.array(
                        _BLOCKED, "Members whose last run failed and that have made no progress since."
                    ),
                }
            ),
            "Partitions in which the group has begun.",
        ),
        "processes": schemas.array(
            schemas.record(
                {
                    "owner": schemas.words("Name of the stream."),
                    "partitions": schemas.array(_PARTITION, "Partitions that are assigned to the process."),
                }
            ),
            "Processes that run the group now. Deployed functions are not listed.",
        ),
    },
)
STEERING: Final = Component(
    "Steering",
    schemas.record(
        {
            "act": {"enum": [*ACTS], "description": "Action to take."},
            "to": schemas.text(
                "For a reset: `beginning`, `tail`, a moment, or a checkpoint.", most=64, pattern=PLACE
            ),
            "partition": {
                **_PARTITION,
                "description": "For a reset: the only partition to reset. Required with a checkpoint.",
            },
            "like": schemas.text(
                "For `begin`: the group whose checkpoints it begins at.", most=64, pattern=NAME.pattern
            ),
            "dryRun": {
                **schemas.flag("For a reset: whether to report the effect without applying it."),
                "default": False,
            },
        },
        required=("act",),
        anyOf=[
            _act("pause", "resume", "delete"),
            _act("begin", needs=("like",)),
            _act("reset", needs=("to", "partition")),
            _act("reset", needs=("to",), to={"not": {"pattern": r"^\d+(@|$)"}}),
        ],
    ),
)
STEERED: Final = Shown(
    "Steered",
    {
        "partitions": schemas.array(_PARTITION, "Partitions to which the request was applied."),
        "resets": schemas.array(
            schemas.record(
                {
                    "partition": _PARTITION,
                    "before": CHECKPOINT,
                    "after": CHECKPOINT,
                    "again": schemas.whole("Number of events that are delivered again."),
                    "skipped": schemas.whole("Number of events that are skipped."),
                    "parked": schemas.whole("Number of streams that stay parked."),
                }
            ),
            "Effect of a reset in each partition.",
        ),
    },
)


def opened(deployment: Deployment) -> Groups:
    """Return the reaction groups of a deployment."""
    return deployment.groups


@operation(parameters=(_GROUP,), gives=STANDING, fails=(problems.GROUP_NOT_FOUND,))
def read_group(groups: Groups, request: Request, _: QueryString) -> Response:
    """Read a consumer group's checkpoint and lag in each partition, and its processes.

    Returns the checkpoint and the lag in each partition, and the processes that run the group.
    """
    readers, meter, group = _measured(groups, request)
    series = readers.read_series()
    partitions = [standing_view(standing) for standing in readers.standing(group, series)]
    processes = list(map(asdict, readers.members(group, series)))
    return answer(meter, STANDING(partitions=partitions, processes=processes))


@operation(parameters=(_GROUP,), takes=STEERING, gives=STEERED, fails=(problems.GROUP_NOT_FOUND,))
def steer_group(groups: Groups, request: Request, _: QueryString) -> Response:
    """Pause, resume, reset, begin or delete a consumer group.

    Pauses the group, resumes it, sets its checkpoints, begins it at the checkpoints of another group, or deletes it.
    Work that a running process has not committed yet is refused, and the process continues from the new state.
    """
    fields = STEERING.read(document(request))
    steered, meter, group = _measured(groups, request)
    try:
        return answer(meter, _steer(steered, group, fields))
    except InvalidInput as error:
        # The library calls these two arguments by other names than the request does.
        error.call_it({"name": "like", "from": "to"}.get(error.field, error.field))
        raise


def _steer(groups: Groups, group: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Pause, resume, reset, begin or delete a group, and return the answer's members.

    Args:
        fields: the request's members; `act` names the action.
    """
    match fields["act"]:
        case "reset":
            name = [fields["partition"]] if "partition" in fields else []
            start = start_of(_needed(fields, "to"), name)
            resets = groups.reset(group, start, dry_run=fields["dryRun"])
            return STEERED(
                partitions=[reset.partition for reset in resets], resets=list(map(reset_view, resets))
            )
        case "begin":
            return STEERED(partitions=groups.begin(group, like=_needed(fields, "like")), resets=[])
        case act:
            return STEERED(partitions=getattr(groups, act)(group), resets=[])


def _needed(fields: dict[str, Any], name: str) -> str:
    """Return a member that the act of a steering request requires, or raise `InvalidInput`."""
    if name not in fields:
        raise InvalidInput(name, f"is required to {fields['act']}")
    return str(fields[name])


def _measured(groups: Groups, request: Request) -> tuple[Groups, Meter, str]:
    """Return the groups bound to one request, the request's meter, and the group's checked name.

    Raises:
        GroupMissing: the path's name is none that a reaction may have.
    """
    group = request.path["group"]
    if not NAME.fullmatch(group):
        raise GroupMissing(group)
    driver, meter = driver_for(request, groups.reader.driver)
    return replace(groups, reader=groups.reader.on(driver)), meter, group
