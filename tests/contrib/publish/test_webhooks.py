"""What proves to an address who sends: signatures as Standard Webhooks has them, and headers."""

from __future__ import annotations

import base64

import pytest

from epochal.contrib.publish.cloudevents import Message
from epochal.contrib.publish.signatures import header_value, request_id, signed, signing_key
from epochal.errors import InvalidInput

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
"""With what follows, the example that the specification's own libraries are tested with."""


def event(number: int, source: str = "epochal/shop") -> Message:
    return Message(id=f"Order-7@{number}", source=source, type="Placed", group="Order-7", text="{}")


def test_a_signature_is_that_of_the_specifications_example() -> None:
    content = b'{"test": 2432232314}'
    assert signed("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, content, [signing_key(SECRET)]) == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_each_key_that_is_in_use_makes_a_signature() -> None:
    old, new = signing_key(SECRET), b"n" * 32
    both = signed("msg_1", 1, b"[]", [new, old])["webhook-signature"].split(" ")
    assert both == [signed("msg_1", 1, b"[]", [key])["webhook-signature"] for key in (new, old)]
    assert both[0] != both[1]


def test_a_request_is_named_by_its_events_and_their_order() -> None:
    assert request_id([event(0), event(1)]) == request_id([event(0), event(1)])
    others = [[event(0)], [event(1), event(0)], [event(0, "epochal/other"), event(1, "epochal/other")]]
    assert len({request_id(each) for each in [[event(0), event(1)], *others]}) == 4


def test_a_key_may_be_bare_base64_and_end_with_a_line() -> None:
    assert signing_key(f"{SECRET.removeprefix('whsec_')}\n") == signing_key(SECRET)


@pytest.mark.parametrize(
    "secret",
    ["", "whsec_", "not base64!", base64.b64encode(b"k" * 23).decode(), base64.b64encode(b"k" * 65).decode()],
)
def test_what_is_no_key_is_refused_and_not_quoted(secret: str) -> None:
    with pytest.raises(InvalidInput, match="sign_with: must be 24 to 64 bytes in base64") as caught:
        signing_key(secret)
    assert len(secret) < 7 or secret not in str(caught.value)


def test_a_header_is_all_of_a_secret_that_is_one_line() -> None:
    assert header_value("Bearer abc\n") == "Bearer abc"
    for secret in ("", "a\r\nHost: b", "käse"):
        with pytest.raises(InvalidInput, match="authorization: must be one line") as caught:
            header_value(secret)
        assert not secret or secret not in str(caught.value)
