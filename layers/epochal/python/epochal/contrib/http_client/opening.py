"""Opens the store behind an HTTP API: what a program does once, when it starts."""

from __future__ import annotations

from epochal.contrib.http_client.api import PATIENCE, ApiClient, checked_url
from epochal.contrib.http_client.carrier import ANSWER_SECONDS, Carrier
from epochal.contrib.http_client.credentials import sigv4
from epochal.contrib.http_client.exchange import Auth
from epochal.contrib.http_client.streams import HttpStreams
from epochal.model.kinds import must_be_seconds
from epochal.store.driver import Patience


def open_http_streams(
    url: str,
    *,
    auth: Auth | None = None,
    patience: Patience = PATIENCE,
    answer_seconds: float = ANSWER_SECONDS,
) -> HttpStreams:
    """Open the store of streams of an HTTP API, for programs without rights on its tables.

        with open_http_streams("https://abc123.execute-api.eu-central-1.amazonaws.com") as streams:
            streams.append("Cart-1", [Event.json("Opened", {})], expected=NO_STREAM)

    It sends no request. The store is safe to share between threads.

    Args:
        url: address of the API: the stack's output `ApiUrl`.
        auth: how the API knows the caller: `sigv4(…)`, the default, or `bearer(…)`.
        patience: how long and how often a request is repeated.
        answer_seconds: seconds that the answer to one attempt may take.

    Raises:
        InvalidInput: `url` is no address, or `answer_seconds` no time.
    """
    address = checked_url(url)
    must_be_seconds(answer_seconds, "answer_seconds")
    carrier = Carrier(address, answer_seconds)
    api = ApiClient(url=address, send=carrier, auth=sigv4() if auth is None else auth, patience=patience)
    return HttpStreams(api=api, connections=carrier)
