"""A client whose requests go to the API over tables in memory, past any network, and faults that can be put between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from urllib.parse import unquote, urlsplit

from epochal.contrib.http_client.api import PATIENCE
from epochal.contrib.http_client.api import ApiClient as Client
from epochal.contrib.http_client.exchange import HttpAnswer, HttpRequest, Send
from epochal.contrib.http_client.streams import HttpStreams
from epochal.store.driver import Patience
from tests.support.api import Api, gateway_event

URL = "https://a1.execute-api.eu-central-1.amazonaws.com"


@dataclass
class Clock:
    """Time that passes only while someone sleeps."""

    now: float = 0.0
    pauses: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@dataclass
class MemoryApi:
    """The API, its requests as they came, and the client of it. `around` may put faults between them.

    `held` says whether requests and answers are held to the OpenAPI document, which takes its time with large ones.
    """

    api: Api = field(default_factory=Api)
    around: Callable[[Send], Send] = lambda send: send
    held: bool = True
    patience: Patience = PATIENCE
    clock: Clock = field(default_factory=Clock)
    requests: list[HttpRequest] = field(default_factory=list)

    @property
    def streams(self) -> HttpStreams:
        client = Client(
            url=URL,
            send=self.around(self.send),
            auth=lambda _: {"Authorization": "known"},
            patience=self.patience,
            clock=self.clock,
            sleep=self.clock.sleep,
            luck=lambda: 1.0,
        )
        return HttpStreams(api=client)

    def send(self, request: HttpRequest) -> HttpAnswer:
        """Hand a request to the API's functions, or to the bucket behind it."""
        self.requests.append(request)
        address = urlsplit(request.url)
        if address.hostname == "bucket.example":
            return self._in_bucket(request, unquote(address.path).removeprefix("/"))
        assert request.headers["Authorization"] == "known"
        event = gateway_event(
            request.method,
            unquote(address.path),
            request.body,
            query=address.query,
            headers=request.headers,
        )
        answer = self.api.send(event) if self.held else self.api.invoke(event)
        body = answer.text.encode()
        headers = {name.lower(): value for name, value in answer.headers.items()}
        return HttpAnswer(
            status=answer.status, headers={**headers, "content-length": str(len(body))}, body=body
        )

    def _in_bucket(self, request: HttpRequest, key: str) -> HttpAnswer:
        assert "Authorization" not in request.headers
        objects = self.api.bodies.objects
        if request.method == "PUT":
            assert request.headers["content-length"] == str(len(request.body))
            objects[key] = request.body
            return HttpAnswer(status=200, headers={"content-length": "0"}, body=b"")
        if key not in objects:
            return HttpAnswer(status=404, headers={"content-length": "0"}, body=b"")
        return HttpAnswer(status=200, headers={"content-length": str(len(objects[key]))}, body=objects[key])


def paths(memory: MemoryApi) -> list[str]:
    """Return method and path of each request, with its query string."""
    return [f"{request.method} {request.url.removeprefix(URL)}" for request in memory.requests]


def with_header(answer: HttpAnswer, name: str, value: str) -> HttpAnswer:
    """Return an answer with one more header."""
    return replace(answer, headers={**answer.headers, name: value})
