"""The `feed` function's entry point: wiring, and one call. What it does is `epochal.http.feeding`."""

from __future__ import annotations

from epochal.http import coldstart  # before all others: see there

# isort: split
import os

from epochal.dynamo.clients import dynamodb_client, s3_client
from epochal.dynamo.interpreter import interpreter
from epochal.dynamo.lazy_clients import lazily
from epochal.dynamo.signed_urls import S3Links
from epochal.feed.deployed import reader_of
from epochal.http.feeding import operations
from epochal.http.gateway import serve
from epochal.layout.registry import partitions_of
from epochal.settings import Settings
from epochal.store.bodies import BodyCodec
from epochal.store.driver import driver_of

settings = Settings.from_environment(os.environ)
links = S3Links(lazily(s3_client), settings.bucket)
# Bodies in the bucket are linked, never fetched: the codec needs none.
reader = reader_of(settings, driver_of(settings, interpreter(dynamodb_client())), BodyCodec())

handler = serve(
    "feed",
    operations(reader, partitions_of(settings), links.download, settings.feed_wait_seconds),
)
coldstart.over()
