"""A signature is the one that botocore makes of the same request, whatever is in it."""

from __future__ import annotations

import random
import string
from collections.abc import Iterator
from datetime import UTC, datetime

import botocore.auth
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from epochal.dynamo.wire.http import host_of
from epochal.dynamo.wire.signatures import FixedKeys, Signer
from epochal.errors import Misconfigured

PLAIN = string.ascii_letters + string.digits + string.punctuation
HOSTS = (
    "127.0.0.1",
    "[::1]",
    "dynamodb.eu-central-1.amazonaws.com",
    "123456789012.ddb.us-east-1.amazonaws.com",
    "Ab_c",
)


def requests(seed: int, count: int) -> Iterator[tuple[str, Signer, FixedKeys, str, str, bytes]]:
    """Signers stay for some requests, as those of a carrier do, while days and keys change."""
    luck = random.Random(seed)
    words = lambda most: "".join(luck.choices(PLAIN, k=luck.randint(1, most)))  # noqa: E731
    for number in range(count):
        if number % 7 == 0:
            port = luck.choice(("", ":80", ":443", f":{luck.randint(1, 65_535)}"))
            url = f"{luck.choice(('http', 'https'))}://{luck.choice(HOSTS)}{port}{luck.choice(('', '/'))}"
            region, service = luck.choice(("eu-central-1", "us-gov-west-1", "local")), words(9)
            signer = Signer(host_of(url), region, service.replace("/", "-"))
        if number % 3 == 0:
            token = luck.choice((None, "", words(900)))
            keys = FixedKeys(words(40), luck.choice((words(60), "ä ✈ key", "a b")), token)
            at = luck.randrange(4_102_444_800)
        signer.now = lambda at=at: at  # type: ignore[misc]
        target = luck.choice(("", f"DynamoDB_20120810.{''.join(luck.choices(string.ascii_letters, k=9))}"))
        yield (
            url,
            signer,
            keys,
            target,
            luck.choice(("application/x-amz-json-1.0", "a/b")),
            luck.randbytes(luck.randint(0, 300)),
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    "count", [3_000, pytest.param(1_000_000, marks=[pytest.mark.proof, pytest.mark.timeout(1_200)])]
)
def test_a_signature_is_botocores(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda: datetime.fromtimestamp(now[0], UTC))
    for url, signer, keys, target, media, body in requests(count, count):
        now[0] = signer.now()
        asked = {"X-Amz-Target": target} if target else {}
        theirs = AWSRequest("POST", url, headers={**asked, "Content-Type": media}, data=body)
        SigV4Auth(Credentials(*_of(keys)), signer.service, signer.region).add_auth(theirs)
        ours = signer.headers(keys, target, media, body)
        for name, value in theirs.headers.items():
            assert ours[name] == value, (url, keys, body)
        assert ours.get("X-Amz-Target", "") == target


def _of(keys: FixedKeys) -> tuple[str, str, str | None]:
    return keys.access_key, keys.secret_key, keys.token


@pytest.mark.parametrize("bad", ["a\r\nX-Evil: b", "a\nb", "a b", "ä", "\0", "a\x7f"])
@pytest.mark.parametrize("part", ["host", "region", "access key", "token"])
def test_nothing_that_would_end_a_header_is_ever_in_one(part: str, bad: str) -> None:
    parts = {"host": "here", "region": "eu-central-1", "access key": "A", "token": "T"} | {part: bad}
    with pytest.raises(Misconfigured) as raised:
        Signer(parts["host"], parts["region"], "dynamodb").headers(
            FixedKeys(parts["access key"], "secret", parts["token"]), "a", "b", b""
        )
    assert bad not in str(raised.value)


@pytest.mark.parametrize(
    "url", ["here", "ftp://here", "http://me:secret@here", "http://here/path", "http://here?a", "http://a b", "http://a\n",
            "http://h:1:2", "http://h\r\nX: y"]
)  # fmt: skip
def test_an_address_is_a_scheme_a_host_and_a_port(url: str) -> None:
    with pytest.raises(ValueError, match="a scheme, a host and a port"):
        host_of(url)
