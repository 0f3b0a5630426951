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
    "group", schemas.text("The reaction's name.", pattern=NAME.pattern, examples=["board"])
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
        "stream": schemas.words("Its name."),
        "index": schemas.whole("Of the first event that is not handled."),
        "cause": schemas.words("What the handler raised."),
        "attempts": schemas.whole("Calls of the handler, or processes that died."),
        "since": schemas.words("When it was parked."),
    }
)

_BLOCKED: Final = schemas.record(
    {
        "member": schemas.whole("Its share of the partition; 0 where the group has one member."),
        "cause": schemas.words("What the run failed at: the kind of error, or the timeout."),
        "stream": schemas.or_null(schemas.words(), "The stream that could not be handled."),
        "index": schemas.or_null(schemas.whole("Its index."), "Of its first event that is not handled."),
        "since": schemas.words("When the first run failed at this place."),
        "last": schemas.words("When the last run failed."),
        "runs": schemas.whole("Runs that have failed at this place."),
        "nextRun": schemas.or_null(
            schemas.words(),
            "When the next run is expected; null where its process has ended, or the run has not come.",
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
                        "That it is behind, 100,000 at most; null where its checkpoint is of another index.",
                    ),
                    "ofAllEvents": schemas.flag(
                        "Whether all events are counted: what it reads is not on record, or is everything."
                    ),
                    "seconds": {"type": "number", "description": "Since the oldest of them was indexed."},
                    "parked": schemas.whole("Streams that are parked."),
                    "paused": schemas.or_null(schemas.words(), "Since when it pauses."),
                    "indexerFailure": schemas.or_null(
                        schemas.words(), "Why the indexer puts no further events into the partition."
                    ),
                    "lastFailure": schemas.or_null(
                        _FAILURE, "Of the streams that are parked: why the last one was."
                    ),
                    "blocked": schemas.array(
                        _BLOCKED, "Members whose last run failed, and who have not got on since."
                    ),
                }
            ),
            "Where it has begun.",
        ),
        "processes": schemas.array(
            schemas.record(
                {
                    "owner": schemas.words("Its name."),
                    "partitions": schemas.array(_PARTITION, "That fall to it."),
                }
            ),
            "That run it now. Functions give no sign.",
        ),
    },
)
STEERING: Final = Component(
    "Steering",
    schemas.record(
        {
            "act": {"enum": [*ACTS], "description": "What is to be done."},
            "to": schemas.text(
                "Of a reset: `beginning`, `tail`, a moment, or a checkpoint.", most=64, pattern=PLACE
            ),
            "partition": {
                **_PARTITION,
                "description": "Of a reset: this one alone, which a checkpoint is of.",
            },
            "like": schemas.text(
                "Of `begin`: the group that it begins where.", most=64, pattern=NAME.pattern
            ),
            "dryRun": {**schemas.flag("Of a reset: only say what would come again."), "default": False},
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
        "partitions": schemas.array(_PARTITION, "What it was done in."),
        "resets": schemas.array(
            schemas.record(
                {
                    "partition": _PARTITION,
                    "before": CHECKPOINT,
                    "after": CHECKPOINT,
                    "again": schemas.whole("Events that come again."),
                    "skipped": schemas.whole("Events that never come."),
                    "parked": schemas.whole("Streams that stay parked."),
                }
            ),
            "What a reset does.",
        ),
    },
)


def opened(deployment: Deployment) -> Groups:
    """Return the reaction groups of a deployment."""
    return deployment.groups


@operation(parameters=(_GROUP,), gives=STANDING, fails=(problems.GROUP_NOT_FOUND,))
def read_group(groups: Groups, request: Request, _: QueryString) -> Response:
    """Look at a group.

    How far it is in each partition, and which processes run it.
    """
    readers, meter, group = _measured(groups, request)
    series = readers.read_series()
    partitions = [standing_view(standing) for standing in readers.standing(group, series)]
    processes = list(map(asdict, readers.members(group, series)))
    return answer(meter, STANDING(partitions=partitions, processes=processes))


@operation(parameters=(_GROUP,), takes=STEERING, gives=STEERED, fails=(problems.GROUP_NOT_FOUND,))
def steer_group(groups: Groups, request: Request, _: QueryString) -> Response:
    """Steer a group.

    Pause it, let it go on, set its checkpoints, begin it where another is, or delete it. Whoever runs it is refused
    what it has not committed, and goes on from there.
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
            named = [fields["partition"]] if "partition" in fields else []
            start = start_of(_needed(fields, "to"), named)
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
    """Return the groups bound to one request, the request's meter, and the group's name.

    Raises:
        GroupMissing: the path's name is none that a reaction may have.
    """
    group = request.path["group"]
    if not NAME.fullmatch(group):
        raise GroupMissing(group)
    driver, meter = driver_for(request, groups.reader.driver)
    return replace(groups, reader=groups.reader.on(driver)), meter, group
