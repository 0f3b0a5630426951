"""Who has the address with the key is let in; nobody else of this machine, and no page of another site or port."""

from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from epochal.contrib.console.server import Guard, address, application
from epochal.deployment import Deployment

BASE = "http://127.0.0.1:7000"
KEY = ("epochal", "secret-key")


@pytest.fixture
def locked(opened: Deployment) -> FlaskClient:
    return application(opened, "epochal-test", guard=Guard(key="secret-key")).test_client()


def test_the_key_in_the_address_opens_the_console_and_no_cookie_keeps_it(locked: FlaskClient) -> None:
    """A cookie would go to every port of the machine: this is sent to the same one alone."""
    assert address(7000, "secret-key") == "http://epochal:secret-key@127.0.0.1:7000/"
    for path in ("/", "/feed", "/static/console.css"):
        with locked.get(path, base_url=BASE, auth=KEY) as answer:
            assert answer.status_code == 200
            assert "Set-Cookie" not in answer.headers
        assert locked.get(path, base_url=BASE).status_code == 401


@pytest.mark.parametrize("path", ["/", "/?key=secret-key", "/static/console.css", "/nothing"])
@pytest.mark.parametrize("auth", [None, ("epochal", ""), ("epochal", "secret"), ("", "secret-key")])
def test_without_the_key_nothing_is_shown_and_a_browser_asks_for_it(
    locked: FlaskClient, path: str, auth: tuple[str, str] | None
) -> None:
    answer = locked.get(path, base_url=BASE, auth=auth)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith('Basic realm="Epochal console, port 7000"')
    assert "Open the address that the command printed" in answer.text


@pytest.mark.parametrize("given", ["Bearer secret-key", "Basic", "Basic !!", "Digest username=epochal"])
def test_no_other_authentication_is_a_key(locked: FlaskClient, given: str) -> None:
    assert locked.get("/", base_url=BASE, headers={"Authorization": given}).status_code == 401


def test_a_cookie_is_no_key(locked: FlaskClient) -> None:
    locked.set_cookie("epochal-7000", "secret-key", domain="127.0.0.1")
    assert locked.get("/", base_url=BASE).status_code == 401


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "PUT", "DELETE", "TRACE", "POST"])
def test_no_method_is_let_in_without_the_key(locked: FlaskClient, method: str) -> None:
    answer = locked.open("/parked", method=method, base_url=BASE, headers={"Origin": BASE})
    assert answer.status_code == 401


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_a_page_of_another_site_or_port_asks_for_is_refused(locked: FlaskClient, site: str) -> None:
    """A browser that has the key sends it along: `same-site` is another port of this machine."""
    answer = locked.get("/", base_url=BASE, auth=KEY, headers={"Sec-Fetch-Site": site})
    assert (answer.status_code, "This request comes from another site" in answer.text) == (403, True)


@pytest.mark.parametrize("site", ["none", "same-origin"])
def test_its_own_pages_and_who_opens_the_address_are_let_in(locked: FlaskClient, site: str) -> None:
    assert locked.get("/", base_url=BASE, auth=KEY, headers={"Sec-Fetch-Site": site}).status_code == 200


@pytest.mark.parametrize("host", ["example.com", "example.com:80", "127.0.0.1.example.com", ""])
def test_the_console_answers_to_names_of_this_machine_alone(locked: FlaskClient, host: str) -> None:
    assert locked.get("/", headers={"Host": host}, auth=KEY).status_code in (400, 403)
