"""Who has the address with the key is let in; nobody else of this machine, and no page of another site."""

from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from epochal.console.app import application
from epochal.console.guard import Guard
from epochal.deployment import Deployment

BASE = "http://127.0.0.1:7000"


@pytest.fixture
def locked(opened: Deployment) -> FlaskClient:
    return application(opened, "epochal-test", guard=Guard(key="secret-key")).test_client()


def test_the_address_with_the_key_opens_the_console_and_leaves_the_key_in_no_address(
    locked: FlaskClient,
) -> None:
    answer = locked.get("/feed?key=secret-key", base_url=BASE)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/feed")
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith("epochal-7000=secret-key;")
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert locked.get("/", base_url=BASE).status_code == 200


@pytest.mark.parametrize("path", ["/", "/?key=", "/?key=secret", "/static/console.css", "/nothing"])
def test_without_the_key_nothing_is_shown(locked: FlaskClient, path: str) -> None:
    answer = locked.get(path, base_url=BASE)
    assert answer.status_code == 403
    assert "Open the address that the command printed" in answer.text


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"])
def test_no_other_method_is_let_in_without_the_cookie(locked: FlaskClient, method: str) -> None:
    assert locked.open("/?key=secret-key", method=method, base_url=BASE).status_code == 403


def test_a_cookie_of_another_console_is_no_key_of_this_one(locked: FlaskClient) -> None:
    locked.set_cookie("epochal-7001", "secret-key", domain="127.0.0.1")
    assert locked.get("/", base_url=BASE).status_code == 403


def test_a_write_without_the_key_is_refused_before_it_is_looked_at(locked: FlaskClient) -> None:
    assert locked.post("/parked?key=secret-key", base_url=BASE, headers={"Origin": BASE}).status_code == 403


@pytest.mark.parametrize("host", ["example.com", "example.com:80", "127.0.0.1.example.com", ""])
def test_the_console_answers_to_names_of_this_machine_alone(locked: FlaskClient, host: str) -> None:
    assert locked.get("/?key=secret-key", headers={"Host": host}).status_code in (400, 403)
