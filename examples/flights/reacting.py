"""The demo's last act: two reactions over what was sent, one of which fails on one aircraft.

Its stream is parked, and everything else goes on; then the scale is mended, the stream is replayed, and both read
models are compared with what the flights say they must hold.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import inf

from epochal.dynamo.interpreter import interpreter
from epochal.dynamo.tables import create_table
from epochal.feed.deployed import reader_of
from epochal.hosting.runner import Runner
from epochal.layout.tables import READ_MODELS
from epochal.local.deploy import LocalDeployment
from epochal.reactions.group_member import Member
from epochal.reactions.parking import ParkedStream, Parking
from epochal.reactions.reaction import Reaction
from epochal.reactions.reactor import Ran, Reactor
from epochal.reactions.read_models import ReadModel, ReadModels
from epochal.store.bodies import BodyCodec
from epochal.store.driver import Driver, Meter
from examples.flights.boards import Expected, delay_table, departures_board, expected
from examples.flights.happenings import Batch

READ_MODELS_TABLE = "flights-read-models"

Tick = Callable[[int], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reacted:
    """What came of it.

    Attributes:
        parked: what waited while the scale was broken.
        events: handled, by reaction.
        wrong: documents that are not what they must be, by key.
        documents: compared.
    """

    parked: tuple[ParkedStream, ...]
    events: dict[str, int]
    wrong: tuple[str, ...]
    documents: int
    seconds: float


@dataclass
class Reactions:
    """Both reactions on the tables of a deployment."""

    deployment: LocalDeployment
    broken: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        client = self.deployment.endpoint.client("dynamodb")
        create_table(client, READ_MODELS_TABLE, READ_MODELS)
        self._driver = Driver(execute=interpreter(client), meter=Meter())
        models = ReadModels(driver=self._driver, table=READ_MODELS_TABLE)
        self.board, self.table = models.open("departures", 1), models.open("delays", 1)

    def run(self, batches: Iterable[Batch], tick: Tick) -> Reacted:
        """All of it."""
        started = time.monotonic()
        sent = list(batches)
        ((unlucky, _),) = Counter(batch.stream for batch in sent).most_common(1)
        self.broken.add(unlucky)
        handled = {
            each.name: self._caught_up(each, tick)
            for each in (departures_board(self.board), delay_table(self.table, self.broken))
        }
        parked = self._mended()
        board, table = expected(sent)
        wrong = (*_differing(self.board, board), *_differing(self.table, table))
        return Reacted(
            parked=parked,
            events=handled,
            wrong=wrong,
            documents=len(board) + len(table),
            seconds=time.monotonic() - started,
        )

    def _caught_up(self, reaction: Reaction, tick: Tick) -> int:
        handled = 0

        def heard(_partition: int, ran: Ran) -> None:
            nonlocal handled
            handled += ran.events
            tick(handled)

        runner = Runner(reactor=self._reactor(reaction), owner="demo", on_turn=heard)
        runner.run(until_done=True)
        return handled

    def _mended(self) -> tuple[ParkedStream, ...]:
        """Mend the scale and replay what waited for it."""
        parking = Parking(reactor=self._reactor(delay_table(self.table, self.broken)))
        parked = tuple(
            each
            for tail in parking.reactor.member.reader.partitions()
            for each in parking.streams(tail.partition)
        )
        self.broken.clear()
        for each in parked:
            parking.replay(each.partition, each.stream, seconds=inf)
        return parked

    def _reactor(self, reaction: Reaction) -> Reactor:
        tables = self.deployment.settings
        reader = reader_of(tables, self._driver, BodyCodec())
        return Reactor(member=Member(reaction=reaction, reader=reader))


def _differing(model: ReadModel, documents: Expected) -> Iterable[str]:
    return (key for key, value in documents.items() if model.get(key) != value)
