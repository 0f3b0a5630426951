"""The demo's reactions, deployed as functions, one of which fails on one aircraft.

Its stream is parked, and everything else goes on; then the scale is mended, the stream is replayed, and both read
models are compared with what the flights say they must hold.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from epochal.care.status import standings
from epochal.codec import json
from epochal.contrib.local.deploy import LocalDeployment
from epochal.dynamo.interpreter import interpreter
from epochal.feed.events import FeedEvent
from epochal.layout.registry import source_of
from epochal.read_models.documents import ReadModel, ReadModels
from epochal.store.driver import Driver, Meter
from examples.flights.happenings import Batch
from examples.flights.reactions.boards import DELAYS, DEPARTURES, delays, departures

GROUPS: Final = (DEPARTURES, DELAYS)
FOLDER: Final = "examples/flights/reactions"
BROKEN: Final = "BROKEN_FOR"

PATIENCE: Final = 90.0
"""Seconds without any progress after which a reaction is taken for dead."""

Tick = Callable[[int], object]


class ReactionStalled(Exception):
    """A reaction is behind, and does not get on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """A stream that waited while the scale was broken."""

    stream: str
    index: int
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reacted:
    """What came of it.

    Attributes:
        parked: what waited while the scale was broken.
        wrong: documents that are not what they must be, by key.
        documents: compared.
        late: seconds that the reactions needed, once everything was indexed and read back.
    """

    parked: tuple[Parked, ...]
    wrong: tuple[str, ...]
    documents: int
    late: float


def busiest(batches: Iterable[Batch]) -> str:
    """The stream with the most appends."""
    ((stream, _),) = Counter(batch.stream for batch in batches).most_common(1)
    return stream


def declared(stages: Mapping[str, Any], broken: str) -> dict[str, Any]:
    """A checkout's stages with both reactions in `dev`, one of them broken for a stream."""
    reactions = {
        DEPARTURES: {"entry": FOLDER, "handler": "departures.handler", "read_models": ["departures"]},
        DELAYS: {
            "entry": FOLDER,
            "handler": "delays.handler",
            "read_models": ["delays"],
            "environment": {BROKEN: broken},
        },
    }
    return {**stages, "dev": {**stages.get("dev", {}), "reactions": reactions, "read_models": True}}


class Reactions:
    """Both reactions of a deployment."""

    def __init__(self, deployment: LocalDeployment) -> None:
        client, self._lambda = deployment.endpoint.clients("dynamodb", "lambda")
        self._driver = Driver(execute=interpreter(client), meter=Meter())
        self._settings = deployment.settings
        models = ReadModels(driver=self._driver, table=deployment.settings.read_models_table)
        self.board, self.table = models.open("departures", 1), models.open("delays", 1)

    def run(self, batches: Iterable[Batch], ticks: Sequence[Tick]) -> Reacted:
        """Wait until they have caught up, mend what is broken, and compare."""
        started = time.monotonic()
        self._caught_up(ticks)
        late = time.monotonic() - started
        parked = self._mended()
        board, table = expected(batches)
        wrong = (*_differing(self.board, board), *_differing(self.table, table))
        return Reacted(parked=parked, wrong=wrong, documents=len(board) + len(table), late=late)

    def behind(self) -> dict[str, int]:
        """Entries of the index that each has not handled yet."""
        found = dict.fromkeys(GROUPS, 0)
        for each in standings(self._driver, self._settings.index_table, GROUPS):
            known = {group.group: group.behind for group in each.groups}
            for name in GROUPS:
                behind = known.get(name, each.entries)
                found[name] += each.entries if behind is None else behind
        return found

    def _caught_up(self, ticks: Sequence[Tick]) -> None:
        first = behind = self.behind()
        since = time.monotonic()
        while any(behind.values()):
            if time.monotonic() - since > PATIENCE:
                raise ReactionStalled(
                    f"a reaction is behind by {max(behind.values()):,} entries, and stays there"
                )
            time.sleep(0.5)
            before, behind = behind, self.behind()
            since = since if behind == before else time.monotonic()
            for tick, name in zip(ticks, GROUPS, strict=True):
                tick(first[name] - behind[name])

    def _mended(self) -> tuple[Parked, ...]:
        """Mend the scale, as a deployment of better code would, and replay what waited for it."""
        name = f"{self._settings.index_table.removesuffix('-index')}-reaction-{DELAYS}"
        partitions = [
            each.partition
            for each in standings(self._driver, self._settings.index_table)
            if source_of(each.partition) == "pages"
        ]
        parked = [
            each for at in partitions for each in self._ask(name, command="parked", partition=at)["parked"]
        ]
        environment = self._lambda.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
        mended = {key: value for key, value in environment.items() if key != BROKEN}
        self._lambda.update_function_configuration(FunctionName=name, Environment={"Variables": mended})
        for each in parked:
            self._ask(name, command="replay", partition=each["partition"], stream=each["stream"])
        return tuple(
            Parked(stream=each["stream"], index=each["index"], cause=each["cause"]) for each in parked
        )

    def _ask(self, function: str, **payload: object) -> Any:
        """Invoke a function as an operator does."""
        answer = self._lambda.invoke(FunctionName=function, Payload=json.dumps(payload))
        content = answer["Payload"].read()
        if "FunctionError" in answer:
            raise ReactionStalled(f"{function}: {content.decode(errors='replace')[:500]}")
        return json.loads(content)


class Expected(dict[str, Any]):
    """What a model should hold."""

    def put(self, key: str, value: Any) -> None:
        """Write a document."""
        self[key] = value


def expected(batches: Iterable[Batch]) -> tuple[Expected, Expected]:
    """Board and table as they must be once everything has been handled."""
    board, table = Expected(), Expected()
    for batch in batches:
        for index, event in enumerate(batch.events):
            known = FeedEvent(
                stream=batch.stream,
                index=index,
                type=event.type,
                data=event.data,
                correlation_id=event.correlation_id,
            )
            departures(board, known)
            delays(table, known)
    return board, table


def _differing(model: ReadModel[Any], documents: Expected) -> Iterable[str]:
    return (key for key, value in documents.items() if model.get(key) != value)
