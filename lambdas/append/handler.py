"""The `append` function's entry point: wiring, and one call. What it does is in `epochal.http.operations`."""

from __future__ import annotations

from epochal.http import coldstart  # before all others: see there

# isort: split
import os

from epochal.dynamo.clients import dynamodb_client, s3_client
from epochal.dynamo.interpreter import interpreter
from epochal.dynamo.lazy_clients import lazily
from epochal.http.deployment import Deployment
from epochal.http.gateway import serve
from epochal.settings import Settings
from epochal.store.driver import driver_of

settings = Settings.from_environment(os.environ)
driver = driver_of(settings, interpreter(dynamodb_client()))
deployment = Deployment(settings=settings, driver=driver, s3=lazily(s3_client))

handler = serve("append", deployment)
coldstart.over()
