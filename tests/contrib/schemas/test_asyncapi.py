"""An AsyncAPI document of a codec's events: valid by AsyncAPI's own schema, and its payloads take what is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from jsonschema import Draft7Validator

from epochal.codec.json import dumps
from epochal.contrib.publish.cloudevents import cloud_event, message
from epochal.contrib.schemas.asyncapi import asyncapi
from epochal.contrib.schemas.drafts import draft7
from epochal.deciders.codecs import json_codec
from epochal.feed.events import FeedEvent
from tests.contrib.schemas.test_event_schemas import CODEC, EVENTS, Boarded, Leg, with_gate, with_passenger

OFFICIAL = Path(__file__).parents[3] / "node_modules/@asyncapi/specs/schemas/3.0.0.json"
BOARDED = json_codec(Boarded, Leg, upcasts=[with_passenger, with_gate])
CODECS = {"": CODEC, "Flight": BOARDED, "Größe": json_codec(named={"leg/flown": Leg})}


def payload(document: dict[str, Any], key: str) -> Draft7Validator:
    """The validator of a message's payload, with all that it refers to."""
    message = document["components"]["messages"][key]
    return Draft7Validator({**message["payload"], "components": document["components"]})


@pytest.mark.proof
@pytest.mark.parametrize("cloud_events", [False, True])
def test_the_document_is_valid_by_the_schema_that_asyncapi_publishes(cloud_events: bool) -> None:
    document = asyncapi(CODECS, title="Flights", cloud_events=cloud_events)
    Draft7Validator(json.loads(OFFICIAL.read_text("utf-8"))).validate(document)


def test_a_category_is_a_channel_with_a_message_for_each_type() -> None:
    document = asyncapi(CODECS, title="Flights", version="2.0.0")
    assert document["info"] == {"title": "Flights", "version": "2.0.0"}
    assert list(document["channels"]) == ["feed", "Flight", "Gr_f6__df_e"]
    channel = document["channels"]["Flight"]
    assert channel["address"] == "Flight-{id}"
    assert channel["parameters"] == {"id": {"description": "Id of the Flight."}}
    assert channel["messages"] == {
        "Boarded": {"$ref": "#/components/messages/Flight.Boarded"},
        "Leg": {"$ref": "#/components/messages/Flight.Leg"},
    }
    assert document["channels"]["feed"]["address"] is None
    assert document["operations"]["send.Flight"] == {
        "action": "send",
        "channel": {"$ref": "#/channels/Flight"},
    }
    odd = document["components"]["messages"]["Gr_f6__df_e.leg_2f_flown"]
    assert (odd["name"], odd["summary"]) == ("leg/flown", "One flight, and the one that it connects to.")


def test_every_reference_of_the_document_leads_somewhere() -> None:
    document = asyncapi(CODECS, title="Flights")

    def references(value: Any) -> list[str]:
        if isinstance(value, dict):
            own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
            return own + [each for inner in value.values() for each in references(inner)]
        return [each for inner in value for each in references(inner)] if isinstance(value, list) else []

    found = references(document)
    assert len(found) > 20
    for reference in found:
        place: Any = document
        for step in reference.removeprefix("#/").split("/"):
            place = place[step]
        assert isinstance(place, dict)


@pytest.mark.slow
@pytest.mark.parametrize("kind", EVENTS, ids=lambda each: each.__name__)
def test_a_payload_takes_every_event_as_it_is_stored(kind: type) -> None:
    takes = payload(asyncapi({"": CODEC}, title="Events"), kind.__name__)

    @settings(max_examples=20, deadline=None)
    @given(EVENTS[kind])
    def fits(event: Any) -> None:
        takes.validate(json.loads(CODEC.encode(event).content))

    fits()


def test_a_payload_of_draft_7_is_as_strict_with_arrays_of_a_fixed_length() -> None:
    takes = payload(asyncapi({"": CODEC}, title="Events"), "ByMsgspec")
    body = {"flownAt": "x", "day": "2026-01-01", "price": "1", "bags": [], "cabin": "F"}
    assert takes.is_valid({**body, "pair": ["a", 1]})
    assert not takes.is_valid({**body, "pair": [1, "a"]})
    assert not takes.is_valid({**body, "pair": ["a", 1, 1]})


def test_a_cloud_event_is_as_publish_sends_it_and_its_data_have_no_version() -> None:
    document = asyncapi({"Flight": BOARDED}, title="Flights", cloud_events=True)
    takes = payload(document, "Flight.Boarded")
    stored = BOARDED.encode(Boarded("Ada", 7))
    event = FeedEvent(
        stream="Flight-UA1", index=0, type="Boarded", timestamp="2026-01-01T00:00:00Z", data=stored.content
    )
    shown = cloud_event(event, BOARDED)
    assert shown is not None
    sent = json.loads(message(event, shown, "epochal/dev").text)
    takes.validate(sent)
    assert not takes.is_valid({**sent, "data": {"passenger": "Ada"}})
    assert not takes.is_valid({**sent, "type": "Leg"})
    assert (
        document["components"]["messages"]["Flight.Boarded"]["contentType"] == "application/cloudevents+json"
    )


def test_words_of_2020_are_said_as_draft_7_has_them_and_names_and_values_stay() -> None:
    schema = {
        "properties": {"prefixItems": {"const": {"$ref": "x", "prefixItems": [1]}}},
        "prefixItems": [{"$ref": "#/$defs/A", "description": "d"}],
        "items": False,
        "dependentRequired": {"a": ["b"]},
    }
    assert draft7(schema, lambda reference: f"{reference}!") == {
        "properties": {"prefixItems": {"const": {"$ref": "x", "prefixItems": [1]}}},
        "items": [{"description": "d", "allOf": [{"$ref": "#/$defs/A!"}]}],
        "additionalItems": False,
        "dependencies": {"a": ["b"]},
    }
    assert dumps(draft7({"$ref": "#/$defs/A"})) == b'{"$ref":"#/$defs/A"}'
