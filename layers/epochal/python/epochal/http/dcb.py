"""The operations on tagged events and states of projections, on the tables and the bucket of a deployment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochal.dynamo.objects import S3Objects
from epochal.dynamo.signed_urls import S3Links
from epochal.http import projecting, tagging
from epochal.http.routes import Function
from epochal.http.service import Operations
from epochal.settings import Settings
from epochal.store.driver import Driver
from epochal.store.projections import states_of
from epochal.store.tagged import tagged_of

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client


def operations(function: Function, settings: Settings, driver: Driver, s3: S3Client) -> Operations:
    """A function's operations, by name."""
    tagged = tagged_of(settings, driver)
    states = states_of(settings, driver, S3Objects(s3, settings.bucket))
    if function == "append":
        return {**tagging.appending(tagged), **projecting.appending(states)}
    link = S3Links(s3, settings.bucket).object
    return {**tagging.replaying(tagged), **projecting.replaying(states, link)}
