"""Functions change leases and publish notices without botocore, which takes a fifth of a second to load."""

from __future__ import annotations

import pytest

from tests.core.wire import test_sns as sns
from tests.core.wire import test_sqs as sqs
from tests.surfaces.lambdas.test_api_handlers import in_a_fresh_process

LEASED = f"""
import json, sys
from epochal.dynamo.wire.sqs import queue_client
client = queue_client(None)
client._batches._connections.send = lambda *_: (200, {{}}, {sqs.taken("1")!r})
entries = [{{"Id": "1", "ReceiptHandle": "r", "VisibilityTimeout": 45}}]
client.change_message_visibility_batch(QueueUrl={sqs.QUEUE!r}, Entries=entries)
print(json.dumps("botocore" in sys.modules))
"""


@pytest.mark.slow
def test_a_function_keeps_its_lease_without_ever_loading_botocore() -> None:
    assert in_a_fresh_process("indexer", LEASED, HOME="/nowhere") is False


PUBLISHED = f"""
import json, sys
from epochal.index.checkpoints import Checkpoint
from epochal.feed.notices import Topic
from epochal.dynamo.wire.sns import topic_client
client = topic_client(None)
client._batches._connections.send = lambda *_: (200, {{}}, {sns.taken("1")!r})
print(json.dumps([Topic(client, {sns.ARN!r}).publish({{1: Checkpoint(5)}}), "botocore" in sys.modules]))
"""


@pytest.mark.slow
def test_an_indexer_tells_its_topic_without_ever_loading_botocore() -> None:
    assert in_a_fresh_process("indexer", PUBLISHED, HOME="/nowhere") == [1, False]
