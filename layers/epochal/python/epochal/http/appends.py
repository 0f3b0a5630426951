"""Appends over HTTP, to one stream or several: what is read from a request, and what is answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from epochal.errors import InvalidInput
from epochal.http import problems, schemas
from epochal.http.answer_size import AnswerSize
from epochal.http.bodies import Link
from epochal.http.components import Component, Read, Shown
from epochal.http.event_fields import CONDITION, MAX_EVENTS, MAX_UNFOLDS, POSITION
from epochal.http.nodes import Node
from epochal.http.preconditions import EXPECTATIONS, expectation_of
from epochal.http.problems import Problem
from epochal.http.sent_events import IN_STREAM, event_of, unfold_of
from epochal.http.stream_fields import EXPECTED_TOKEN, FIRST, REPLAYED, STREAM, TOKEN, VERSION
from epochal.http.stream_problems import conflict_problem
from epochal.lazy_dataclasses import replace
from epochal.model.expected_version import ExpectedVersion
from epochal.model.outcomes import Appended, Conflict, Outcome, Undetermined
from epochal.model.stream_append import StreamAppend
from epochal.model.stream_names import no_step, stream_name
from epochal.model.tokens import MAX_VERSION, Token, parse_token
from epochal.store.driver import Meter
from epochal.store.seals import Seals
from epochal.store.streams import Streams

if TYPE_CHECKING:
    from epochal.http.tagged_views import Listed


WITH_QUERY: Final = {"after": ["failIf"]}
REACHED: Final = {
    **POSITION,
    "description": "Position for the `after` of a later append: the position under `failIf`, moved past this "
    "append; without `failIf`, the position in the tags of the events. Absent if there is neither. "
    "For a replayed append it may lie before the events.",
}


def contents_of(node: Node, members: Mapping[str, Any]) -> dict[str, Any]:
    """Return an append request's events and unfolds; raise `InvalidInput` where it has neither.

    Args:
        node: the request's JSON object.
        members: its members as `Component.read` returns them.

    Returns:
        `events`, and `unfolds`, which is None where the append leaves the stored unfolds unchanged.

    Raises:
        InvalidInput: there is no event and no unfold.
    """
    events, unfolds = members.get("events", ()), members.get("unfolds")
    if not events and not unfolds:
        raise InvalidInput(node.below("events"), "at least one event, or one unfold, is required")
    return {"events": events, "unfolds": unfolds}


def expected_of(node: Node) -> ExpectedVersion:
    """Read the `expected` member of an append: a version, a word such as `any`, or a state token.

    A text with points is taken for a token.
    """
    if isinstance(node.value, str) and "." in node.value:
        return parse_token(node.value, node.name)
    return expectation_of(node)


def append_form(
    name: str,
    *,
    stream: Mapping[str, schemas.Schema],
    condition: Mapping[str, schemas.Schema],
    event: schemas.Schema = IN_STREAM,
    **keywords: Any,
) -> Component:
    """Build the schema and reader of an append to one stream.

    Args:
        name: name of the schema in the OpenAPI document.
        stream: the `stream` member and its schema; empty where the path names the stream.
        condition: the members `failIf` and `after` and their schemas; empty where the append takes no condition.
        event: schema of an event.
        keywords: further JSON Schema keywords of the object.
    """
    choices = [
        schemas.whole("Version of the stream.", 0, MAX_VERSION),
        {"enum": list(EXPECTATIONS)},
        EXPECTED_TOKEN,
    ]
    schema = schemas.record(
        {
            **stream,
            "events": schemas.array(event, "Events to append, in this order, all or none.", MAX_EVENTS),
            "unfolds": schemas.array(
                schemas.ref("NewUnfold"),
                "Unfolds to store beside the events. They replace all stored unfolds. If left out, the stored "
                "unfolds stay.",
                MAX_UNFOLDS,
            ),
            "expected": {
                "description": "State that the stream must have. If it has another state, the answer is 409. If "
                "left out, any state is accepted.",
                "anyOf": choices,
            },
            **condition,
        },
        required=tuple(stream),
        description="At least one event or unfold.",
        anyOf=[{"required": [name], "properties": {name: {"minItems": 1}}} for name in ("events", "unfolds")],
        **keywords,
    )
    reads: dict[str, Read] = {
        "stream": lambda node: no_step(stream_name(node.value, node.name), node.name),
        "events": event_of,
        "unfolds": unfold_of,
        "expected": expected_of,
    }
    return Component(name, schema, reads=reads)


APPEND: Final = append_form("Append", stream={}, condition=CONDITION, dependentRequired=WITH_QUERY)
APPEND_UNTAGGED: Final = append_form(
    "AppendUntagged", stream={}, condition={}, event=schemas.ref("NewUntaggedEvent")
)
APPENDED: Final = Shown(
    "Appended",
    {
        "stream": STREAM,
        "first": (FIRST, "first"),
        "version": (VERSION, "version"),
        "token": TOKEN,
        "replayed": (REPLAYED, "replayed"),
        "position": REACHED,
        "capacity": schemas.CAPACITY,
    },
    optional=("position",),
)


def verify_token(store: Streams, append: StreamAppend) -> ExpectedVersion:
    """Return the expected version of an append; a token is marked as the store's own if its seal is valid."""
    expected = append.expected
    if not isinstance(expected, Token):
        return expected
    return Seals.of(store, writes=True).verify_token(append.stream, expected)


def check_appended(
    store: Streams,
    meter: Meter,
    stream: str,
    outcome: Outcome,
    condition: Mapping[str, Any],
    *,
    in_header: bool = False,
) -> Appended:
    """Return an append's outcome, its token sealed; raise `Problem` for a conflict or an unknown outcome.

    Args:
        condition: condition of the append, as `condition_of` returns it.
        in_header: whether a header named the expected version, so that a conflict is answered with 412 instead of 409.

    Raises:
        Problem: the append met a conflict, or whether it was applied cannot be determined.
    """
    seals = Seals.of(store, writes=True)
    match outcome:
        case Appended():
            return replace(outcome, token=seals.seal_token(stream, outcome.token))
        case Conflict() if outcome.events:
            raise condition_problem(outcome, condition, store, meter)
        case Conflict():
            if outcome.token is not None:
                outcome = replace(outcome, token=seals.seal_token(stream, outcome.token))
            raise conflict_problem(stream, outcome, meter.units, in_header=in_header)
        case Undetermined(first=first):
            raise Problem(
                problems.UNDETERMINED,
                "a response was lost, and the events from this index on, which would show whether the append was made, "
                "have been pruned since: read the stream's state before writing again",
                stream=stream,
                index=first,
            )


def condition_of(
    members: Mapping[str, Any],
    store: Streams,
    link: Link,
    limit: int = schemas.DEFAULT_LIMIT,
    room: AnswerSize | None = None,
) -> dict[str, Any]:
    """Return the append condition of a request as keyword arguments for the store; empty without one.

    The argument `takes` collects the conflicting events for the answer.

    Args:
        members: members of the request; the condition is in `failIf` and `after`.
        limit: most conflicting events to answer with.
        room: space that is left in the answer; None for an answer of its own.

    Raises:
        InvalidInput: `after` is sent without `failIf`, or the store has no tags.
    """
    if "after" in members and "failIf" not in members:
        raise InvalidInput("after", "must not be given without failIf")
    if "failIf" not in members:
        return {}
    from epochal.http import tagged_requests, tagged_views  # noqa: PLC0415  most appends have none

    try:
        tagged = store.tagged
    except InvalidInput as error:
        raise InvalidInput("failIf", error.rule) from error
    after = tagged_requests.position_of(members)
    return {
        "fail_if": tagged_requests.query_of(members["failIf"], tagged),
        "after": None if after is None else tagged.verify_seals(after),
        "takes": tagged_views.Listed(limit, link, answer=room),
    }


def position_member(outcome: Appended, store: Streams) -> dict[str, Any]:
    """Return the answer's `position` member after an append; empty where the append concerned no tags."""
    if not outcome.position.seen:
        return {}
    from epochal.model.position_text import write_position  # noqa: PLC0415  most appends concern none

    return {"position": write_position(store.tagged.seal_position(outcome.position, writes=True))}


def condition_problem(
    conflict: Conflict, condition: Mapping[str, Any], store: Streams, meter: Meter
) -> Problem:
    """Return the problem of an append whose condition found conflicting events."""
    sealed = replace(conflict, position=store.tagged.seal_position(conflict.position, writes=True))
    listed: Listed = condition["takes"]
    return listed.refused(sealed, meter.units)
