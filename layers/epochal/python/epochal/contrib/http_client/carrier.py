"""Sends requests over connections that are kept, by urllib3, which botocore brings: each request once."""

from __future__ import annotations

from ssl import SSLCertVerificationError
from typing import Final

import urllib3
from botocore.utils import get_environ_proxies

from epochal.contrib.http_client.exchange import HttpAnswer, HttpRequest
from epochal.dynamo.wire.http import CONNECT_SECONDS, KEPT, NoAnswer, Unsent
from epochal.lazy_dataclasses import dataclass, field

ANSWER_SECONDS: Final = 35.0
"""The API answers within 29 seconds, a long poll included."""


@dataclass(slots=True)
class Carrier:
    """Connections to an address and to the bucket. Safe to share between threads.

    A proxy that the environment names is used.

    Attributes:
        url: address of the API.
        seconds: seconds that an answer may take.
    """

    url: str
    seconds: float = ANSWER_SECONDS
    _pool: urllib3.PoolManager = field(init=False, repr=False)

    def __post_init__(self) -> None:
        proxy = get_environ_proxies(self.url).get(self.url.partition(":")[0])
        timeout = urllib3.Timeout(connect=CONNECT_SECONDS, read=self.seconds)
        if proxy:
            self._pool = urllib3.ProxyManager(proxy, maxsize=KEPT, timeout=timeout)
        else:
            self._pool = urllib3.PoolManager(maxsize=KEPT, timeout=timeout)

    def __call__(self, request: HttpRequest) -> HttpAnswer:
        """Send a request once, and return the whole answer; raise `Unsent` or `NoAnswer` without one.

        Raises:
            Unsent: no connection could be opened.
            NoAnswer: the connection ended before the whole answer had arrived.
        """
        try:
            answer = self._pool.request(
                request.method,
                request.url,
                body=request.body or None,
                headers={**request.headers},
                retries=False,
                redirect=False,
                decode_content=False,
            )
        except (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError) as error:
            nowhere = isinstance(error, urllib3.exceptions.NewConnectionError)
            raise Unsent(_failure(error, request), address=request.url, nowhere=nowhere) from error
        except urllib3.exceptions.SSLError as error:
            if isinstance(error.args[0], SSLCertVerificationError):
                raise Unsent(_failure(error, request), address=request.url, nowhere=True) from error
            raise NoAnswer(_failure(error, request)) from error
        except urllib3.exceptions.HTTPError as error:
            raise NoAnswer(_failure(error, request)) from error
        headers = {name.lower(): value for name, value in answer.headers.items()}
        return HttpAnswer(status=answer.status, headers=headers, body=answer.data)

    def close(self) -> None:
        """Close the connections that wait for a request."""
        self._pool.clear()


def _failure(error: Exception, request: HttpRequest) -> str:
    """Describe a failed request without its query string, which may hold a signature."""
    return f"{type(error).__name__} at {request.url.partition('?')[0]}"
