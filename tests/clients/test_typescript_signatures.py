"""The client in TypeScript signs as AWS's published examples and as botocore does."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import botocore.auth
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.clients.typescript import run

PROGRAM: Final = Path(__file__).with_name("typescript_signatures.mjs")
MOMENT: Final = datetime(2015, 8, 30, 12, 36, tzinfo=UTC)

EXAMPLE: Final = {
    "headers": {},
    "body": "",
    "credentials": {
        "accessKeyId": "AKIDEXAMPLE",
        "secretAccessKey": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
    },
    "region": "us-east-1",
    "service": "service",
    "moment": MOMENT.isoformat(),
}
"""What all examples of AWS's test suite of Signature Version 4 have."""

PUBLISHED: Final = {
    "get-vanilla": (
        {"method": "GET", "url": "https://example.amazonaws.com/"},
        "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
    ),
    "post-vanilla": (
        {"method": "POST", "url": "https://example.amazonaws.com/"},
        "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
    ),
    "get-vanilla-query-order-key-case": (
        {"method": "GET", "url": "https://example.amazonaws.com/?Param2=value2&Param1=value1"},
        "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
    ),
}

SIGNS: Final = "aZ09-_.:~@+= /%?&#'()*!ü\u6f22"


def sign(client: Path, requests: list[dict[str, Any]]) -> list[dict[str, str]]:
    """The headers that the client adds to each request."""
    signed: list[dict[str, str]] = json.loads(run("node", PROGRAM, client, text=json.dumps(requests)))
    return signed


def test_signatures_are_those_that_aws_has_published(client: Path) -> None:
    signed = sign(client, [{**EXAMPLE, **request} for request, _ in PUBLISHED.values()])
    for headers, (_, signature) in zip(signed, PUBLISHED.values(), strict=True):
        assert headers["authorization"].endswith(f"Signature={signature}")


def drawn_request(luck: random.Random) -> dict[str, Any]:
    """A request with odd signs in path, query, headers and body."""

    def text(most: int) -> str:
        return "".join(luck.choices(SIGNS, k=luck.randint(1, most)))

    path = "/".join(quote(text(12), safe="") for _ in range(luck.randint(1, 3)))
    pairs = [f"{quote(text(4), safe='')}={quote(text(8), safe='')}" for _ in range(luck.randint(0, 4))]
    headers = {"content-type": "application/json", "idempotency-key": luck.choice(["a", " b  c "])}
    credentials = {"accessKeyId": text(9).strip() or "a", "secretAccessKey": text(20)}
    if luck.random() < 0.5:
        credentials["sessionToken"] = "t" + quote(text(20), safe="") + "t"
    return {
        **EXAMPLE,
        "method": luck.choice(["GET", "POST", "DELETE"]),
        "url": f"https://a1.example.org{luck.choice(['', ':8443'])}/{path}"
        + ("?" + "&".join(pairs) if pairs else ""),
        "headers": headers if luck.random() < 0.7 else {},
        "body": luck.choice(["", json.dumps({"events": text(9)}, ensure_ascii=False)]),
        "credentials": credentials,
        "region": luck.choice(["eu-west-1", "us-east-1"]),
        "service": luck.choice(["execute-api", "lambda"]),
    }


def test_signatures_are_those_of_botocore(client: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda **_: MOMENT.replace(tzinfo=None))
    luck = random.Random(1)
    requests = [drawn_request(luck) for _ in range(200)]
    for request, headers in zip(requests, sign(client, requests), strict=True):
        keys = request["credentials"]
        theirs = AWSRequest(
            request["method"], request["url"], headers=request["headers"], data=request["body"].encode()
        )
        credentials = Credentials(keys["accessKeyId"], keys["secretAccessKey"], keys.get("sessionToken"))
        SigV4Auth(credentials, request["service"], request["region"]).add_auth(theirs)
        assert headers["authorization"] == theirs.headers["Authorization"], request
        assert headers["x-amz-date"] == theirs.headers["X-Amz-Date"]
        assert headers.get("x-amz-security-token") == theirs.headers.get("X-Amz-Security-Token")
