from __future__ import annotations

import base64
from typing import Any

import pytest

from epochal.errors import InvalidInput
from epochal.feed.stream_records import read_records


def event(kind: str = "MODIFY", number: str = "111", /, **image: Any) -> dict[str, Any]:
    arn = "arn:aws:dynamodb:us-east-1:123456789012:table/tips/stream/2026-01-01T00:00:00.000"
    change = {"SequenceNumber": number, "Keys": {}, "NewImage": image}
    return {"eventName": kind, "eventSourceARN": arn, "dynamodb": change}


def test_binaries_of_an_event_are_decoded_wherever_they_are() -> None:
    packed = base64.b64encode(b"\x00\xffbody").decode()
    (found,) = read_records(
        [
            event(
                d={"B": packed},
                e={"L": [{"M": {"d": {"B": packed}, "D": {"N": "2"}}}]},
                s={"BS": [packed]},
                u={"M": {"deep": {"L": [{"B": packed}]}}},
            )
        ]
    )
    assert found.image == {
        "d": {"B": b"\x00\xffbody"},
        "e": {"L": [{"M": {"d": {"B": b"\x00\xffbody"}, "D": {"N": "2"}}}]},
        "s": {"BS": [b"\x00\xffbody"]},
        "u": {"M": {"deep": {"L": [{"B": b"\x00\xffbody"}]}}},
    }


def test_binaries_that_boto_has_decoded_stay_as_they_are() -> None:
    (found,) = read_records([event(d={"B": b"c29tZQ=="})])
    assert found.image == {"d": {"B": b"c29tZQ=="}}


def test_all_other_types_pass_unchanged() -> None:
    image: dict[str, Any] = {
        "s": {"S": "text"},
        "n": {"N": "12345678901234567890123456789012345678"},
        "t": {"BOOL": True},
        "z": {"NULL": True},
        "ss": {"SS": ["a"]},
        "ns": {"NS": ["1"]},
    }
    (found,) = read_records([event(**image)])
    assert found.image == image


def test_records_keep_their_numbers_and_their_order() -> None:
    found = read_records([event("INSERT", "300", n={"N": "1"}), event("MODIFY", "301", n={"N": "2"})])
    assert [(each.sequence_number, each.image["n"]["N"]) for each in found] == [("300", "1"), ("301", "2")]


def test_a_record_names_the_table_whose_stream_it_is_of() -> None:
    arns = {
        "arn:aws:dynamodb:us-east-1:123456789012:table/a.b-c_9/stream/2026-01-01T00:00:00.000": "a.b-c_9",
        "arn:aws-cn:dynamodb:cn-north-1:123456789012:table/tags/stream/2026-01-01T00:00:00.000": "tags",
        "arn:aws:dynamodb:ddblocal:000000000000:table/tips/stream/2026-01-01T00:00:00.000": "tips",
    }
    found = read_records({**event(n={"N": "1"}), "eventSourceARN": arn} for arn in arns)
    assert [each.table for each in found] == list(arns.values())


def test_deletions_are_passed_over() -> None:
    removed = {"eventName": "REMOVE", "dynamodb": {"SequenceNumber": "1", "Keys": {"p": {"S": "A"}}}}
    expired = {**removed, "userIdentity": {"type": "Service", "principalId": "dynamodb.amazonaws.com"}}
    assert list(read_records([removed, expired])) == []


def test_a_stream_without_new_images_is_an_error_and_not_an_empty_feed() -> None:
    keys_only = {"eventName": "MODIFY", "dynamodb": {"SequenceNumber": "1", "Keys": {"p": {"S": "A"}}}}
    with pytest.raises(InvalidInput, match="StreamViewType"):
        list(read_records([keys_only]))
