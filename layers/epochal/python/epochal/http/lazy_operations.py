"""Operations that are imported when the first request asks for them.

Those on tagged events and on states of projections come with two dozen modules of their own. A deployment with only
streams and aggregates would pay for them in every cold start, some 6 % of it; here the first request that needs them
pays, once.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Final

from epochal.http.message import Request, Response
from epochal.http.routes import Function, routes_of
from epochal.http.service import Operations
from epochal.settings import Settings
from epochal.store.driver import Driver

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

PATHS: Final = ("/dcb/", "/projections/")


def deferred(function: Function, settings: Settings, driver: Driver, s3: S3Client) -> Operations:
    """A function's operations on tagged events and states, by name."""
    load = cache(partial(_load, function, settings, driver, s3))

    def perform(name: str, request: Request) -> Response:
        return load()[name](request)

    names = [route.operation for route in routes_of(function) if route.path.startswith(PATHS)]
    return {name: partial(perform, name) for name in names}


def _load(function: Function, settings: Settings, driver: Driver, s3: S3Client) -> Operations:
    from epochal.http import dcb  # noqa: PLC0415  the point of this module

    return dcb.operations(function, settings, driver, s3)
