"""A deployment on AWS."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from epochal.deployment import Deployment
from epochal.dynamo import interpreter
from epochal.lazy_dataclasses import dataclass
from epochal.settings import Settings
from epochal.store.driver import Driver, Meter, Patience

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

    from epochal.deployment import Links
    from epochal.plan.ops import Execute
    from epochal.store.encoding import Bodies, Objects


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Bucket:
    """A bucket by name. Without one, what is too large for an item is refused."""

    s3: S3Client
    name: str

    @property
    def bodies(self) -> Bodies | None:
        """Bodies of events."""
        return cast("Bodies", _InBucket("S3Bodies", self.s3, self.name)) if self.name else None

    @property
    def objects(self) -> Objects | None:
        """What plug-ins keep there."""
        return cast("Objects", _InBucket("S3Objects", self.s3, self.name)) if self.name else None

    @property
    def links(self) -> Links:
        """Signed URLs."""
        return cast("Links", _InBucket("S3Links", self.s3, self.name))


class _InBucket:
    """Calls methods of a class of `bucket`, which is loaded when one is called: it brings errors of botocore's, and few
    bodies are too large for an item.
    """

    def __init__(self, kind: str, s3: S3Client, name: str) -> None:
        self._made = (kind, s3, name)

    def __getattr__(self, name: str) -> Any:
        return partial(self._call, name)

    def _call(self, method: str, *args: Any) -> Any:
        from epochal.dynamo import bucket

        kind, s3, name = self._made
        return getattr(getattr(bucket, kind)(s3, name), method)(*args)


def deployed(
    settings: Settings,
    *,
    execute: Execute | None = None,
    s3: S3Client | None = None,
    at_once: int = 1,
    patience: Patience | None = None,
    kinds: Mapping[str, str] | None = None,
) -> Deployment:
    """The deployment that these settings tell of.

    Args:
        execute: performs plans; through the carrier that the settings say where none is given.
        s3: a client; that of the chain of credentials and region where none is given.
        patience: how long to try; that of functions, with the retries that the settings say, where none is given.
        at_once: requests that may be under way at the same time.
        kinds: of tables that a caller named: they are checked before they are used.
    """
    execute = execute or interpreter.execute_through(settings.carrier)
    if kinds:
        from epochal.care.checking import checked

        execute = checked(execute, kinds)
    return Deployment(
        settings=settings,
        driver=Driver(
            execute=execute,
            meter=Meter(),
            patience=patience or Patience(retries=settings.retries),
            at_once=at_once,
        ),
        bucket=S3Bucket(s3=s3 or lazily(_s3_client), name=settings.bucket),
    )


def _s3_client() -> S3Client:
    from epochal.dynamo.clients import s3_client

    return s3_client()


# Clients made when first needed. An S3 client costs a cold start as much as the DynamoDB client, and few requests
# ever need it.

T = TypeVar("T")


class _Lazy(Generic[T]):
    """Stands for what `make` returns, and calls it at the first use of an attribute."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._made: T | None = None

    def __getattr__(self, name: str) -> Any:
        with self._lock:
            if self._made is None:
                self._made = self._make()
        return getattr(self._made, name)


def lazily(make: Callable[[], T]) -> T:
    """A stand-in for `make()`, made once, when first used. Safe under threads."""
    return cast("T", _Lazy(make))
