"""A run: write, read and follow for so long, then read everything back and verify it."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from botocore.credentials import Credentials

from bench.load.aggregate_writers import TYPE, AggregateWriter
from bench.load.api import Api
from bench.load.collecting import Unreadable, read_back, read_feed, tails
from bench.load.crew import Crew
from bench.load.ledger import Ledger
from bench.load.measures import Lag, Measures, percentiles
from bench.load.readers import Follower, Reader
from bench.load.stream_writers import StreamWriter
from bench.load.tag_writers import TagWriter
from bench.load.verification import Found, feed_differs, followed_differs, stream_differs
from epochal.contrib.local.deploy import LocalDeployment
from epochal.contrib.local.endpoint import KEY, SECRET
from epochal.contrib.proving.deployed_stacks import stacks_of

WRITERS = 2
"""Of each layout. Each needs warm instances of the functions, and a small machine has two cores."""

SHARED = 3
"""Streams, aggregates and courses that all writers of a layout meet on."""

OWN = 2
BEAT = 5.0
"""Seconds between two lines of progress."""

WARM = 3
"""Steps that each worker makes before anything is measured."""

PATIENCE = 60.0
"""Seconds without a new event of the feed after which it is taken for stuck."""

Tell = Callable[[str], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """An HTTP API, and the credentials of its caller."""

    url: str
    region: str
    credentials: Credentials

    @classmethod
    def embedded(cls, deployment: LocalDeployment) -> Target:
        """Return the API of a deployment on the embedded AWS."""
        return cls(
            url=deployment.api_url, region=deployment.endpoint.region, credentials=Credentials(KEY, SECRET)
        )

    @classmethod
    def deployed(cls, cloudformation: Any, stack: str, credentials: Credentials) -> Target:
        """Return the API of a stage on AWS, by the name of its store's stack and the stage's outputs.

        Raises:
            LookupError: the stack holds no tables, or no stack beside it an API.
        """
        described = cloudformation.describe_stacks(StackName=stack)["Stacks"][0].get("Outputs", ())
        index = next(
            (output["OutputValue"] for output in described if output["OutputKey"] == "IndexTable"), None
        )
        stacks = [] if index is None else stacks_of(cloudformation, index, ())
        url = next((stack_.outputs["ApiUrl"] for stack_ in stacks if "ApiUrl" in stack_.outputs), None)
        if url is None:
            raise LookupError(f"{stack} is no stack of tables that one with an ApiUrl belongs to")
        return cls(url=url, region=cloudformation.meta.region_name, credentials=credentials)


@dataclass(slots=True, kw_only=True)
class Load:
    """One run against a stage. Everything it writes has `marker` in its name, so others may use the same tables."""

    target: Target
    tell: Tell
    marker: str = field(default_factory=lambda: f"r{uuid.uuid4().hex[:8]}")
    measures: Measures = field(default_factory=Measures)
    ledger: Ledger = field(default_factory=Ledger)
    lag: Lag = field(default_factory=Lag)
    starts: Mapping[int, str] = field(default_factory=dict)
    stored: Mapping[str, Sequence[Found]] = field(default_factory=dict)
    followers: Sequence[Follower] = ()
    seconds: float = 0.0

    @property
    def api(self) -> Api:
        """A client with its own connection pool."""
        at = self.target
        return Api(at.url, credentials=at.credentials, region=at.region, measures=self.measures)

    def put_on(self, seconds: float) -> None:
        """Write, read and follow for `seconds`, until the followers have received everything that was stored."""
        api = self.api
        self.starts = tails(api)
        self.followers = [self._follower(api, partition, at) for partition, at in self.starts.items()]
        workers = [*self._writers(api), self._reader(api)]
        with Crew([follower.step for follower in self.followers]) as following:
            with Crew([worker.step for worker in workers]) as working:
                self._warm(working, following)
                began = time.monotonic()
                self._wait(seconds, working, following)
                self.seconds = time.monotonic() - began
            self.tell("reading back what is stored")
            self.stored = {name: read_back(api, name) for name in self.ledger.streams}
            self._catch_up(following)

    def differences(self) -> Iterator[str]:
        """Yield everything that is wrong in the store and in the feed, read anew."""
        yield from self.ledger.wrong
        try:
            stored = {name: read_back(self.api, name) for name in self.ledger.streams}
            yield from self._store_differs(stored)
            yield from self._feed_differs(stored, read_feed(self.api, self.starts, self.marker))
        except Unreadable as error:
            yield str(error)

    def _store_differs(self, stored: Mapping[str, Sequence[Found]]) -> Iterator[str]:
        seen = {name: indices for follower in self.followers for name, indices in follower.seen.items()}
        for name, sent in self.ledger.streams.items():
            yield from stream_differs(name, sent, stored[name])
            yield from followed_differs(name, len(stored[name]), seen.get(name, ()))

    def _feed_differs(
        self, stored: Mapping[str, Sequence[Found]], fed: Mapping[str, Sequence[Found]]
    ) -> Iterator[str]:
        for name, events in stored.items():
            yield from feed_differs(name, events, fed.get(name, ()))
        yield from (f"{name}: the feed has it, and nobody wrote it" for name in fed.keys() - stored.keys())

    def _follower(self, api: Api, partition: int, at: str) -> Follower:
        return Follower(
            api=api, ledger=self.ledger, lag=self.lag, partition=partition, at=at, marker=self.marker
        )

    def _writers(self, api: Api) -> Iterator[StreamWriter | AggregateWriter | TagWriter]:
        for number in range(WRITERS):
            common = {"api": api, "ledger": self.ledger, "lag": self.lag}
            yield StreamWriter(
                name=f"stream writer {number}",
                shared=self._streams(),
                own=self._names(f"Load-{self.marker}-own{number}", OWN),
                luck=random.Random(f"{self.marker} streams {number}"),
                **common,
            )
            yield AggregateWriter(
                name=f"aggregate writer {number}",
                aggregates=self._aggregates(),
                luck=random.Random(f"{self.marker} aggregates {number}"),
                **common,
            )
            yield TagWriter(
                name=f"tag writer {number}",
                courses=self._courses(),
                students=self._names(f"student:{self.marker}-own{number}", OWN),
                luck=random.Random(f"{self.marker} tags {number}"),
                **common,
            )

    def _reader(self, api: Api) -> Reader:
        return Reader(
            api=api,
            ledger=self.ledger,
            streams=self._streams(),
            aggregates=self._aggregates(),
            tags=self._courses(),
            luck=random.Random(f"{self.marker} reader"),
        )

    def _streams(self) -> list[str]:
        return self._names(f"Load-{self.marker}", SHARED)

    def _aggregates(self) -> list[str]:
        return self._names(f"{TYPE}-{self.marker}", SHARED)

    def _courses(self) -> list[str]:
        return self._names(f"course:{self.marker}", SHARED)

    def _names(self, beginning: str, count: int) -> list[str]:
        return [f"{beginning}-{number}" for number in range(count)]

    def _warm(self, *crews: Crew) -> None:
        """Wait until each worker has had a few responses: functions start cold, a dozen at once on a few cores."""
        ends = time.monotonic() + PATIENCE
        while min(crew.least for crew in crews) < WARM and time.monotonic() < ends:
            time.sleep(0.2)
            for crew in crews:
                crew.check()
        self.measures.forget()
        self.lag.forget()
        self.tell("functions are warm: measuring from here on")

    def _wait(self, seconds: float, *crews: Crew) -> None:
        ends = time.monotonic() + seconds
        while (remaining := ends - time.monotonic()) > 0:
            time.sleep(min(BEAT, remaining))
            for crew in crews:
                crew.check()
            self.tell(self._progress(seconds - max(0.0, ends - time.monotonic())))

    def _progress(self, seconds: float) -> str:
        typical, *_ = percentiles(self.lag.seconds)
        return (
            f"{seconds:4.0f} s  {self.measures.answered(201):,} appends, {self.ledger.conflicts:,} conflicts, "
            f"{self.measures.answered(200):,} reads, {typical:.2f} s to the feed"
        )

    def _catch_up(self, following: Crew) -> None:
        """Wait until the followers have received what is stored; the verification reports what they lack."""
        wanted = sum(map(len, self.stored.values()))
        count, since = -1, time.monotonic()
        while count < wanted and time.monotonic() - since < PATIENCE:
            following.check()
            before = count
            count = sum(
                len(indices) for follower in self.followers for indices in list(follower.seen.values())
            )
            if count != before:
                since = time.monotonic()
                self.tell(f"the feed has {count:,} of {wanted:,} events")
            time.sleep(0.2)
