"""The `append` function's entry point: wiring, and one call.

What it does is `epochal.http.writing`, `aggregating`, and what `deferred` imports.
"""

from __future__ import annotations

from epochal.http import coldstart  # before all others: see there

# isort: split
import os

from epochal.dynamo.bodies import S3Bodies
from epochal.dynamo.clients import dynamodb_client, s3_client
from epochal.dynamo.interpreter import interpreter
from epochal.dynamo.lazy_clients import lazily
from epochal.dynamo.signed_urls import S3Links
from epochal.http.aggregating import appending
from epochal.http.gateway import serve
from epochal.http.lazy_operations import deferred
from epochal.http.writing import operations
from epochal.model.aggregates import AggregateTypes
from epochal.settings import Settings
from epochal.store.aggregates import aggregates_of
from epochal.store.bodies import BodyCodec
from epochal.store.driver import driver_of
from epochal.store.streams import streams_of

settings = Settings.from_environment(os.environ)
s3 = lazily(s3_client)
driver = driver_of(settings, interpreter(dynamodb_client()))
streams = streams_of(settings, driver, BodyCodec(bodies=S3Bodies(s3, settings.bucket)))
aggregates = aggregates_of(settings, driver)

handler = serve(
    "append",
    {
        **operations(streams, S3Links(s3, settings.bucket).upload, settings.max_upload_bytes),
        **appending(aggregates, AggregateTypes(settings.aggregate_types)),
        **deferred("append", settings, driver, s3),
    },
)
coldstart.over()
