"""The operations on tagged events, on those in Sekiban's tables, which keep who did it and when an event may go."""

from __future__ import annotations

from typing import Final

from epochal.contrib.sekiban import store
from epochal.contrib.sekiban.items import TaggedEvent
from epochal.contrib.sekiban.store import DcbEvents
from epochal.deployment import Deployment
from epochal.errors import InvalidInput, TooLarge
from epochal.http import parameters, problems, schemas, tagged
from epochal.http.components import Component
from epochal.http.declarations import described, operation
from epochal.http.nodes import Node, optional_id
from epochal.http.operation import Request, Response
from epochal.http.query_strings import QueryString
from epochal.http.sent_events import NEW_EVENT
from epochal.http.tagged import Tagged
from epochal.http.tagged_requests import APPEND, event_of
from epochal.http.tagged_views import APPENDED
from epochal.lazy_dataclasses import replace
from epochal.model.bodies import Claim
from epochal.model.events import MAX_ID_BYTES, Event
from epochal.model.moments import MAX_EXPIRES

_BESIDES: Final = {
    "executedUser": schemas.text("Who did it.", most=MAX_ID_BYTES),
    "expires": schemas.whole("Seconds since 1970 after which it may be deleted.", 1, MAX_EXPIRES),
}
_SENT: Final = NEW_EVENT.schema["properties"]
NEW_TAGGED_EVENT: Final = Component(
    "NewTaggedEvent",
    {
        **NEW_EVENT.schema,
        "properties": {
            **{name: property_ for name, property_ in _SENT.items() if name != "claim"},
            **_BESIDES,
        },
    },
)
APPEND_HERE: Final = Component(
    "AppendTaggedHere",
    {
        **APPEND.schema,
        "properties": {
            **APPEND.schema["properties"],
            "events": {**APPEND.schema["properties"]["events"], "items": schemas.ref("NewTaggedEvent")},
        },
    },
)


def sent_event(node: Node) -> Event:
    """Decode the JSON of an event to append to Sekiban's tables; raise if a field breaks a rule.

    Raises:
        InvalidInput: a field breaks a rule; names the field.
        TooLarge: the data or metadata exceeds what an item holds.
    """
    fields = node.members(NEW_TAGGED_EVENT.names)
    plain = {name: value for name, value in node.value.items() if name not in _BESIDES}
    event = TaggedEvent.of(event_of(Node(plain, node.at)))
    for name, body in (("data", event.data), ("meta", event.meta)):
        if isinstance(body, Claim):
            raise InvalidInput(node.below("claim"), "must not be given: these tables do not use a bucket")
        if len(body) > DcbEvents.most_bytes:
            member = name if name in fields else f"{name}64"
            raise TooLarge(node.below(member), len(body), DcbEvents.most_bytes)
    return replace(
        event,
        executed_user=optional_id(fields, "executedUser"),
        expires=fields["expires"].whole(1, MAX_EXPIRES) if "expires" in fields else None,
    )


def opened(deployment: Deployment, _store: str) -> Tagged:
    """Open the tagged events of a deployment in Sekiban's tables."""
    return Tagged(store=store.opened(deployment), link=deployment.bucket.links.download, event_of=sent_event)


@operation(
    parameters=(parameters.IDEMPOTENCY_KEY,),
    takes=APPEND_HERE,
    status=201,
    gives=APPENDED,
    fails=(problems.CONDITION_FAILED,),
)
def append_tagged(on: Tagged, request: Request, _: QueryString) -> Response:
    """Append tagged events on a condition.

    As `POST /events` does, to Sekiban's tables.
    """
    return tagged.append_tagged(on, request)


query_tagged, read_tag = tagged.query_tagged, tagged.read_tag
read_tagged = described(tagged.read_tagged, "Strongly consistent.")
list_tagged = described(
    tagged.list_tagged,
    "In order of their places. A page ends at its limit or at 4 MB, and never between events of one "
    "place. A tag's are strongly consistent. All events come through an index that lags by moments; what an append "
    "that is under way brings later may sort before what was listed; and events that have expired are missing.",
)
count_tagged = described(
    tagged.count_tagged,
    "By walking an index that lags by moments, which costs what it holds. Of a tag `readTagOfDcb` tells the number.",
)
list_tags = described(
    tagged.list_tags,
    "Those of a group in order, from an index that lags by moments; of all by reading through the table of tags. A "
    "page may be empty: go by `next`.",
)
list_entries = described(
    tagged.list_entries,
    "Which events the tag has, without their bodies: what is counted is listed, also those that have expired, of which "
    "the entry is all that is left. None where no event has the tag.",
)
