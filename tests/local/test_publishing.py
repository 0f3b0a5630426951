"""Recipients of published events, on the embedded AWS: what arrives, and what is not taken."""

from __future__ import annotations

import base64
import hmac
import json
import threading
import time
from collections.abc import Iterator
from email.message import Message
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, ClassVar

import pytest

from epochal.contrib.local.endpoint import Endpoint
from epochal.contrib.publish.cloudevents import CloudEvent, message
from epochal.contrib.publish.publication import Publication, proof_of
from epochal.contrib.publish.recipients import UNTOLD, limit_of, recipient
from epochal.errors import EpochalError, InvalidInput, Unavailable
from epochal.feed.events import FeedEvent

pytestmark = pytest.mark.embedded

EVENTS = [
    message(
        FeedEvent(stream="Order-7", index=number, type="Placed"),
        CloudEvent(type="Placed", data=b'{"n": 1}'),
        "epochal/shop",
    )
    for number in range(3)
]
KEYS = [base64.b64encode(each * 32).decode() for each in (b"a", b"b")]
TOKENS = ["Bearer old", "Bearer new"]
IDS = [f"Order-7@{number}" for number in range(3)]


class Queue:
    """A queue, and what has arrived in it."""

    def __init__(self, client: Any, name: str) -> None:
        self.client = client
        fifo = {"FifoQueue": "true"} if name.endswith(".fifo") else {}
        self.url: str = client.create_queue(QueueName=name, Attributes=fifo)["QueueUrl"]
        asked = client.get_queue_attributes(QueueUrl=self.url, AttributeNames=["QueueArn"])
        self.arn: str = asked["Attributes"]["QueueArn"]
        sending = {
            "Effect": "Allow",
            "Principal": "*",
            "Action": "sqs:SendMessage",
            "Resource": self.arn,
        }
        policy = json.dumps({"Version": "2012-10-17", "Statement": [sending]})
        client.set_queue_attributes(QueueUrl=self.url, Attributes={"Policy": policy})

    def received(self) -> list[str]:
        found: list[str] = []
        while messages := self.client.receive_message(
            QueueUrl=self.url, MaxNumberOfMessages=10, WaitTimeSeconds=1
        ).get("Messages"):
            for each in messages:
                found.append(each["Body"])
                self.client.delete_message(QueueUrl=self.url, ReceiptHandle=each["ReceiptHandle"])
        return found


@pytest.mark.parametrize("name", ["published", "published.fifo"])
def test_a_queue_gets_each_event_as_a_message(embedded: Endpoint, name: str) -> None:
    queue = Queue(embedded.client("sqs"), name)
    send = recipient("queue", queue.url, client=queue.client)
    send(EVENTS)
    found = [json.loads(each)["id"] for each in queue.received()]
    assert sorted(found) == IDS
    if name.endswith(".fifo"):
        assert found == IDS
        send(EVENTS)
        assert queue.received() == []  # it had them


def test_a_topic_gets_each_event_as_a_message(embedded: Endpoint) -> None:
    queue, sns = Queue(embedded.client("sqs"), "of-topic"), embedded.client("sns")
    topic = sns.create_topic(Name="published")["TopicArn"]
    sns.subscribe(
        TopicArn=topic, Protocol="sqs", Endpoint=queue.arn, Attributes={"RawMessageDelivery": "true"}
    )
    recipient("topic", topic, client=sns)(EVENTS)
    assert sorted(json.loads(each)["id"] for each in queue.received()) == IDS


def test_a_bus_gets_each_event_with_its_type_as_the_details(embedded: Endpoint) -> None:
    queue, bus = Queue(embedded.client("sqs"), "of-bus"), embedded.client("events")
    bus.create_event_bus(Name="published")
    pattern = {"source": ["epochal/shop"], "detail-type": ["Placed"]}
    bus.put_rule(Name="all", EventBusName="published", EventPattern=json.dumps(pattern))
    bus.put_targets(Rule="all", EventBusName="published", Targets=[{"Id": "1", "Arn": queue.arn}])
    recipient("bus", "published", client=bus)(EVENTS)
    found = [json.loads(each) for each in queue.received()]
    assert sorted(each["detail"]["id"] for each in found) == IDS
    assert {each["detail-type"] for each in found} == {"Placed"}


def test_a_stream_of_kinesis_gets_each_event_in_order(embedded: Endpoint) -> None:
    kinesis = embedded.client("kinesis")
    kinesis.create_stream(StreamName="published", ShardCount=2)
    arn = kinesis.describe_stream_summary(StreamName="published")["StreamDescriptionSummary"]["StreamARN"]
    recipient("stream", arn, client=kinesis)(EVENTS)
    found = []
    for shard in kinesis.list_shards(StreamName="published")["Shards"]:
        asked = {"StreamName": "published", "ShardId": shard["ShardId"]}
        iterator = kinesis.get_shard_iterator(**asked, ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
        records = kinesis.get_records(ShardIterator=iterator)["Records"]
        found.append([json.loads(each["Data"])["id"] for each in records])
        assert {each["PartitionKey"] for each in records} <= {"Order-7"}
    assert sorted(found) == [[], IDS]


def test_a_delivery_stream_writes_each_event_as_a_line(embedded: Endpoint) -> None:
    s3, firehose, iam = embedded.clients("s3", "firehose", "iam")
    s3.create_bucket(Bucket="lake")
    trust = {
        "Effect": "Allow",
        "Principal": {"Service": "firehose.amazonaws.com"},
        "Action": "sts:AssumeRole",
    }
    policy = {"Version": "2012-10-17", "Statement": [trust]}
    role = iam.create_role(RoleName="firehose", AssumeRolePolicyDocument=json.dumps(policy))["Role"]["Arn"]
    writing = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
    policy = {"Version": "2012-10-17", "Statement": [writing]}
    iam.put_role_policy(RoleName="firehose", PolicyName="write", PolicyDocument=json.dumps(policy))
    firehose.create_delivery_stream(
        DeliveryStreamName="published",
        ExtendedS3DestinationConfiguration={"RoleARN": role, "BucketARN": "arn:aws:s3:::lake"},
    )
    recipient("firehose", "published", client=firehose)(EVENTS)
    lines: list[bytes] = []
    ends = time.monotonic() + 60
    while len(lines) < len(IDS) and time.monotonic() < ends:
        keys = [each["Key"] for each in s3.list_objects_v2(Bucket="lake").get("Contents", ())]
        lines = b"".join(s3.get_object(Bucket="lake", Key=key)["Body"].read() for key in keys).splitlines()
    assert sorted(json.loads(each)["id"] for each in lines) == IDS


def test_a_queue_and_a_topic_say_how_large_a_message_may_be(embedded: Endpoint) -> None:
    sqs, sns = embedded.clients("sqs", "sns")
    attributes = {"MaximumMessageSize": "20000"}
    url = sqs.create_queue(QueueName="small", Attributes=attributes)["QueueUrl"]
    assert limit_of("queue", url, client=sqs).message == 20_000 - 16 * 1024
    assert limit_of("queue", f"{url}-missing", client=sqs).message == UNTOLD
    topic = sns.create_topic(Name="sized")["TopicArn"]
    assert limit_of("topic", topic, client=sns).message >= UNTOLD


class Web(BaseHTTPRequestHandler):
    """An address that takes what it is sent, but below /full, and shows pages to who does not send anything.

    Below /private it takes what has the newest token.
    """

    taken: ClassVar[list[tuple[str, bytes]]] = []
    headers_seen: ClassVar[list[Message]] = []

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self.taken.append((self.headers["Content-Type"], content))
        self.headers_seen.append(self.headers)
        private = 202 if self.headers["X-Token"] == TOKENS[-1] else 401
        self.send_response({"/full": 503, "/moved": 302, "/private": private}.get(self.path, 202))
        self.send_header("Location", "/orders")
        self.end_headers()

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def address() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Web) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_an_address_gets_them_as_a_batch_and_fails_the_delivery_otherwise(address: str) -> None:
    recipient("webhook", f"{address}/orders")(EVENTS)
    ((kind, content),) = Web.taken
    assert kind == "application/cloudevents-batch+json"
    assert [each["id"] for each in json.loads(content)] == IDS
    with pytest.raises(Unavailable, match="did not accept 3 events"):
        recipient("webhook", f"{address}/full")(EVENTS)


def test_an_address_that_sends_elsewhere_has_taken_nothing(address: str) -> None:
    with pytest.raises(Unavailable, match="did not accept 3 events: HTTP Error 302"):
        recipient("webhook", f"{address}/moved")(EVENTS)


def test_an_address_with_secrets_gets_signatures_and_a_token_and_new_ones_after_a_rotation(
    embedded: Endpoint, address: str
) -> None:
    manager = embedded.client("secretsmanager")
    for name, values in (("key", KEYS), ("token", TOKENS)):
        manager.create_secret(Name=name, SecretString=values[0])
    publication = Publication(
        name="p",
        to="webhook",
        place=address,
        source="s",
        sign_with="key",
        authorization="token",
        header="X-Token",
    )
    send = recipient("webhook", f"{address}/private", proof=proof_of(publication, manager))
    with pytest.raises(Unavailable, match="401"):
        send(EVENTS)
    assert _signatures(Web.headers_seen[-1], Web.taken[-1][1]) == KEYS[:1]
    for name, values in (("key", KEYS), ("token", TOKENS)):
        manager.put_secret_value(SecretId=name, SecretString=values[1])
    send(EVENTS)  # what was refused is read again at once
    assert _signatures(Web.headers_seen[-1], Web.taken[-1][1]) == [KEYS[1], KEYS[0]]
    first, second = Web.headers_seen[-2:]
    assert first["webhook-id"] == second["webhook-id"]


def _signatures(headers: Message, content: bytes) -> list[str]:
    """The keys that have signed, computed as a receiver does."""
    message = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + content
    known = {
        base64.b64encode(hmac.digest(base64.b64decode(key), message, "sha256")).decode(): key for key in KEYS
    }
    return [known[each.removeprefix("v1,")] for each in headers["webhook-signature"].split(" ")]


def test_what_is_not_there_takes_nothing_and_says_so(embedded: Endpoint) -> None:
    sqs = embedded.client("sqs")
    with pytest.raises(EpochalError):
        recipient("queue", f"{embedded.url}/000000000000/missing", client=sqs)(EVENTS)
    with pytest.raises(InvalidInput, match="must be one of bus, queue, topic"):
        recipient("pigeon", "home")
