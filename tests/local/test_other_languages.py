"""The function in TypeScript of the guide, on the embedded AWS, behind a queue that gets what `Publish` sends."""

from __future__ import annotations

import io
import json
import re
import subprocess
import threading
import time
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from epochal.contrib.local.endpoint import Endpoint
from epochal.contrib.publish.cloudevents import Message
from epochal.contrib.publish.publication import Publication, publisher
from epochal.contrib.publish.recipients import Limit, recipient
from epochal.model.events import Event
from epochal.testing.feeds import MemoryStore

pytestmark = pytest.mark.embedded

ROOT: Final = Path(__file__).resolve().parents[2]
GUIDE: Final = ROOT / "docs" / "guide" / "reactions-in-other-languages.md"
TSC: Final = ROOT / "node_modules" / ".bin" / "tsc"
EVENTS: Final = 4
TRUST: Final = {
    "Effect": "Allow",
    "Principal": {"Service": "lambda.amazonaws.com"},
    "Action": "sts:AssumeRole",
}


class Index:
    """A search index: it refuses versions that are not newer, and `failing` names what it cannot take."""

    def __init__(self) -> None:
        self.documents: dict[str, tuple[int, Any]] = {}
        self.versions: dict[str, list[int]] = {}
        self.failing: set[str] = set()

    def put(self, name: str, version: int, document: Any) -> int:
        if name in self.failing:
            return 503
        self.versions.setdefault(name, []).append(version)
        if self.documents.get(name, (0, None))[0] >= version:
            return 409
        self.documents[name] = (version, document)
        return 201


@pytest.fixture
def index() -> Iterator[tuple[Index, str]]:
    own = Index()

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            address = urlsplit(self.path)
            name = unquote(address.path.rpartition("/")[2])
            document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(own.put(name, int(parse_qs(address.query)["version"][0]), document))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield own, f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The function of the guide as an archive for Lambda."""
    folder = tmp_path_factory.mktemp("search")
    (code,) = re.findall(r"```ts\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    (folder / "handler.mts").write_text(code)
    options = [
        "--strict",
        "--target",
        "es2022",
        "--module",
        "nodenext",
        "--noPropertyAccessFromIndexSignature",
    ]
    types = ["--types", "node", "--typeRoots", str(ROOT / "node_modules" / "@types")]
    subprocess.run([TSC, *options, *types, folder / "handler.mts"], check=True, cwd=folder)
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.write(folder / "handler.mjs", "handler.mjs")
    return held.getvalue()


def published(*streams: str) -> list[Message]:
    """Return what `Publish` sends of streams with some events each, and one of a type that is not indexed."""
    feed, sent = MemoryStore(), list[Message]()
    for number in range(EVENTS):
        for stream in streams:
            feed.streams.append(stream, [Event.json("Placed", {"total": number})])
    feed.streams.append(streams[0], [Event.json("Paid", {})])
    publication = Publication(name="search", to="queue", place="", source="epochal/shop")
    limit = Limit(message=240_000, request=240_000, messages=10)
    feed.react(publisher(publication, None, "", send=sent.extend, limit=limit))
    return sent


def test_the_function_of_the_guide_keeps_an_index_in_order(
    embedded: Endpoint, index: tuple[Index, str], compiled: bytes
) -> None:
    own, url = index
    own.failing = {"Order-8"}
    lambdas, sqs, iam = embedded.clients("lambda", "sqs", "iam")
    queue = sqs.create_queue(
        QueueName="search.fifo", Attributes={"FifoQueue": "true", "VisibilityTimeout": "1"}
    )["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    trust = json.dumps({"Version": "2012-10-17", "Statement": [TRUST]})
    role = iam.create_role(RoleName="search", AssumeRolePolicyDocument=trust)["Role"]["Arn"]
    reading = {"Effect": "Allow", "Action": "sqs:*", "Resource": arn}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [reading]})
    iam.put_role_policy(RoleName="search", PolicyName="read", PolicyDocument=policy)
    lambdas.create_function(
        FunctionName="search",
        Runtime="nodejs20.x",
        Role=role,
        Handler="handler.handler",
        Timeout=60,
        Code={"ZipFile": compiled},
        Environment={"Variables": {"SEARCH_URL": url}},
    )
    lambdas.create_event_source_mapping(
        EventSourceArn=arn,
        FunctionName="search",
        BatchSize=10,
        FunctionResponseTypes=["ReportBatchItemFailures"],
    )
    sent = published("Order-7", "Order-8")
    assert len(sent) == 2 * EVENTS + 1
    recipient("queue", queue, client=sqs)(sent)
    waits_until(lambda: own.documents.get("Order-7", (0, None))[0] == EVENTS)
    assert own.documents["Order-7"] == (EVENTS, {"total": EVENTS - 1})
    assert "Order-8" not in own.documents, "one stream that fails does not hold up another"
    own.failing = set()
    waits_until(lambda: own.documents.get("Order-8", (0, None))[0] == EVENTS)
    for versions in own.versions.values():
        assert versions == sorted(versions), "the events of a stream come in order"

    records = [
        {"messageId": str(place), "body": one.text, "attributes": {"MessageGroupId": one.group}}
        for place, one in enumerate(sent)
    ]
    before = dict(own.documents)
    assert answer(lambdas, records) == []
    assert own.documents == before, "what comes again changes nothing"
    own.failing = {"Order-7"}
    failed = [place for place, one in enumerate(sent) if one.group == "Order-7"]
    assert answer(lambdas, records) == [{"itemIdentifier": str(place)} for place in failed]


def answer(lambdas: Any, records: list[dict[str, Any]]) -> Any:
    """Return the failures that the function reports of records."""
    done = lambdas.invoke(FunctionName="search", Payload=json.dumps({"Records": records}).encode())
    return json.loads(done["Payload"].read())["batchItemFailures"]


def waits_until(holds: Any) -> None:
    ends = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < ends, "it takes too long"
        time.sleep(0.1)
