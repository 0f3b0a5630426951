"""A secret is kept for a while, read again when it was refused, and counts for a day after a rotation."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from epochal.contrib.publish.cloudevents import Message
from epochal.contrib.publish.secrets import KEPT_SECONDS, OVERLAP_SECONDS, Secret
from epochal.contrib.publish.webhook import Proof
from epochal.errors import InvalidInput, Refused

KEYS = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_" + "b" * 40]


class Manager:
    """Secrets Manager with one secret, and the time."""

    def __init__(self, *values: str | bytes) -> None:
        self.now = 1_700_000_000.0
        self.versions = [(each, 0.0) for each in values]
        self.asked: list[str] = []
        self.code = ""

    def rotate(self, value: str | bytes) -> None:
        self.versions.insert(0, (value, self.now))

    def get_secret_value(self, **asked: str) -> dict[str, Any]:
        assert asked["SecretId"] == "shop/key"
        self.asked.append(asked["VersionStage"])
        at = ["AWSCURRENT", "AWSPREVIOUS"].index(asked["VersionStage"])
        if self.code or at >= len(self.versions):
            code = self.code or "ResourceNotFoundException"
            raise ClientError({"Error": {"Code": code, "Message": "no"}}, "GetSecretValue")
        value, made = self.versions[at]
        form = "SecretBinary" if isinstance(value, bytes) else "SecretString"
        return {form: value, "CreatedDate": datetime.fromtimestamp(made, UTC)}

    def secret(self) -> Secret:
        return Secret(self, "shop/key", clock=lambda: self.now)


def test_it_is_read_once_in_a_while() -> None:
    manager = Manager("a")
    secret = manager.secret()
    assert [secret.values() for _ in range(3)] == [("a",)] * 3
    assert manager.asked == ["AWSCURRENT"]
    manager.rotate("b")
    manager.now += KEPT_SECONDS
    assert secret.values() == ("b", "a")


def test_what_one_thread_has_forgotten_another_still_gets() -> None:
    manager = Manager("a")
    refused = False

    def clock() -> float:  # it is looked at between the look whether there is a value and its use
        if refused:
            secret.forget()
        return manager.now

    secret = Secret(manager, "shop/key", clock=clock)
    assert secret.values() == ("a",)
    refused = True
    assert secret.values() == ("a",)


def test_for_a_day_after_a_rotation_the_value_before_it_counts_too() -> None:
    manager = Manager("a")
    manager.rotate("b")
    assert manager.secret().values() == ("b", "a")
    manager.now += OVERLAP_SECONDS
    assert manager.secret().values() == ("b",)


def test_a_new_secret_has_no_value_before() -> None:
    manager = Manager()
    manager.rotate("first")
    assert manager.secret().values() == ("first",)


def test_one_that_must_not_be_read_says_which_action_was_denied() -> None:
    manager = Manager("a")
    manager.code = "AccessDeniedException"
    with pytest.raises(Refused, match="secretsmanager:GetSecretValue"):
        manager.secret().values()


def test_bytes_are_refused_by_the_name_of_the_secret_and_its_version() -> None:
    manager = Manager("a")
    manager.rotate(b"k")
    with pytest.raises(InvalidInput, match="secret shop/key, version AWSCURRENT: must be text"):
        manager.secret().values()


def test_bytes_that_text_took_the_place_of_are_left_out() -> None:
    manager = Manager(b"k")
    manager.rotate(KEYS[0])
    assert manager.secret().values() == (KEYS[0],)
    assert " " not in Proof(sign_with=manager.secret()).headers([], b"[]")["webhook-signature"]


def test_while_keys_are_rotated_a_request_has_two_signatures() -> None:
    event = Message(id="Order-7@0", source="epochal/shop", type="Placed", group="Order-7", text="{}")
    manager = Manager(KEYS[0])
    proof = Proof(sign_with=manager.secret(), clock=lambda: 1.0)
    alone = proof.headers([event], b"[]")["webhook-signature"]
    manager.rotate(KEYS[1])
    proof.forget()
    new, old = proof.headers([event], b"[]")["webhook-signature"].split(" ")
    assert (old == alone, new == alone) == (True, False)


def test_what_was_no_key_before_a_rotation_makes_no_signature() -> None:
    manager = Manager("made by chance")
    manager.rotate(KEYS[0])
    assert " " not in Proof(sign_with=manager.secret()).headers([], b"[]")["webhook-signature"]
