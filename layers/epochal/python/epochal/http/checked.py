"""Checks of events appended over HTTP against the JSON Schemas of their types, for stages that name schemas.

An event whose type has no schema, or whose body is in the bucket, cannot be checked: a stage chooses whether such
events are accepted. Events of timers are checked when the timer is set. Where a stage names no schemas, this module is
not imported.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Iterator
from typing import Any

from epochal.codec import json
from epochal.errors import InvalidInput
from epochal.http.documents import document
from epochal.http.nodes import Node, UnknownName
from epochal.http.operation import Request, Response
from epochal.model.stream_names import TIMERS
from epochal.named_objects import load_object
from epochal.settings import Settings


class Unfit(Exception):
    """A body does not fit its schema; raised by the compiled schemas.

    Attributes:
        name: place of the value that breaks a rule.
        rule: the broken rule.
    """

    def __init__(self, message: str, *, name: str) -> None:
        """Store the name and the rule, which is the message without the name before it."""
        super().__init__(message)
        self.name = name
        self.rule = message.removeprefix(name).strip()


def checked(perform: Callable[[Request], Response], settings: Settings) -> Callable[[Request], Response]:
    """Wrap an operation so that it refuses events that do not fit the schemas of their types.

    Args:
        perform: the operation.
        settings: settings of the stage, which name the module of schemas.
    """
    schemas, refuses = load_object(settings.event_schemas), settings.unchecked_events == "refuse"

    def performed(request: Request) -> Response:
        """Check each event of a request against its schema, then perform the operation."""
        try:
            root = document(request)
        except InvalidInput:
            return perform(request)  # the operation refuses the body itself, or takes none
        for event in _events(root):
            _check(event, schemas, refuses=refuses)
        return perform(request)

    return performed


def _events(node: Node) -> Iterator[Node]:
    """Yield the events of a request, also those in bulk appends and in timers.

    Malformed parts are skipped: the operation itself refuses them.
    """
    if not isinstance(node.value, dict):
        return
    for name in ("appends", "events"):
        members = node.value.get(name)
        for position, value in enumerate(members if isinstance(members, list) else ()):
            member = Node(value, f"{node.below(name)}[{position}]")
            if name == "appends":
                yield from _events(member)
            elif isinstance(value, dict) and value.get("type") in TIMERS:
                yield from _events(Node(value.get("data"), member.below("data")))
            elif isinstance(value, dict) and isinstance(value.get("type"), str):
                yield member


def _check(event: Node, schemas: Any, *, refuses: bool) -> None:
    """Raise unless an event's body fits the schema of its type or may be taken unchecked.

    Args:
        schemas: the module of compiled schemas.
        refuses: whether to refuse events that cannot be checked: a type without a schema, or a body in the bucket.

    Raises:
        InvalidInput: the event is refused because it cannot be checked.
        UnknownName: the body does not fit its schema.
    """
    kind, value = event.value["type"], event.value
    key = schemas.KEYS.get(kind)
    if key is None or "claim" in value:
        if refuses and key is None:
            raise InvalidInput(event.below("type"), "must be a type for which the deployment has a schema")
        if refuses:
            raise InvalidInput(
                event.below("claim"), f"must not be given: the body must fit the schema of {kind}"
            )
        return
    place = event.below("data64" if "data64" in value else "data")
    try:
        schemas.validate({key: _body(value, place, kind)})
    except Unfit as unfit:
        field = place + unfit.name.removeprefix(f"data.{key}")
        raise UnknownName(place, field, f"{unfit.rule}, as the schema of {kind} requires") from None


def _body(value: Any, place: str, kind: str) -> Any:
    """Return the JSON value of an event's body, or raise `InvalidInput` where it is no JSON.

    Args:
        value: the event as it was sent.
        place: place of the body in the request.
        kind: type of the event.
    """
    if "data" in value:
        return value["data"]
    try:
        return json.loads(binascii.a2b_base64(value.get("data64", ""), strict_mode=True))
    except (ValueError, TypeError):
        raise InvalidInput(place, f"must be JSON that fits the schema of {kind}") from None
