"""Running a reaction in a process of one's own: a container, or a laptop. Same states, same semantics as in Lambda.

Several processes of one group share the partitions, or the shares that a reaction with several members has of each.
Each takes turns over its own; where there is nothing to do it looks again after a pause, and where it is blocked after
a longer one. A run that fails is recorded, so that the status of the group shows why it makes no progress.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from math import inf
from typing import Final

from epochal.hosting.failure_records import FailureRecords
from epochal.index.group_state import Unit
from epochal.index.live_members import Sign, assign_units, read_signs, remove_sign, write_sign
from epochal.layout.registry import source_of
from epochal.lazy_dataclasses import dataclass, field
from epochal.reactions.reactor import Reactor, RunResult

SIGN_SECONDS: Final = 10.0
"""Seconds between signs of life."""

ALIVE_SECONDS: Final = 35.0
"""Seconds for which a sign is valid, so that three may be lost. Then the other processes take over."""

FORGOTTEN_SECONDS: Final = 3_600.0
"""Seconds after which the sign of a process that died is deleted."""

TURN_SECONDS: Final = 5.0
"""Longest run of one partition in seconds, so that the other partitions and the sign get their turns."""

IDLE_SECONDS: Final = 0.5
"""Seconds between checks of partitions without new events; a check takes two read requests."""

BLOCKED_SECONDS: Final = 15.0
"""Seconds before a blocked partition is tried again."""

OnTurn = Callable[[int, RunResult], None]
"""Function that is called with a partition and the result of its run."""


@dataclass(slots=True, kw_only=True)
class Runner:
    """One of the processes that run a reaction outside of Lambda, and share its partitions.

    Attributes:
        reactor: runs the reaction.
        owner: name of the process, unique in the group.
        on_turn: called after each turn that handled events, parked a stream or was blocked.
        on_rest: called once, when there is nothing to do for the first time.
        on_unrecorded: function that is called with the kinds of the error if a failed run cannot be recorded.
        stop: ends the run when it is set.
        now: the clock, in seconds since 1970.
    """

    reactor: Reactor
    owner: str
    on_turn: OnTurn = lambda _partition, _ran: None
    on_rest: Callable[[], object] = lambda: None
    on_unrecorded: Callable[[str], object] = lambda _error: None
    stop: threading.Event = field(default_factory=threading.Event)
    now: Callable[[], float] = time.time
    _signed: float = -inf
    _rested: bool = False
    _mine: list[Unit] = field(default_factory=list)
    _careful: set[Unit] = field(default_factory=set)
    _blocked: dict[Unit, float] = field(default_factory=dict)

    def run(self, *, until_done: bool = False) -> bool:
        """Run the reaction until stopped or, with `until_done`, until done; return whether nothing is blocked."""
        with self.reactor.calls:
            self._run(until_done=until_done)
        return not self._blocked

    def _run(self, *, until_done: bool) -> None:
        """Run the process's own partitions in turn until stopped or, with `until_done`, until all is done."""
        try:
            while not self.stop.is_set():
                self._sign()
                moved = [
                    self._turn(unit, until_done=until_done) for unit in self._mine if not self.stop.is_set()
                ]
                if not any(moved):
                    if not self._rested:
                        self._rested = True
                        self.on_rest()
                    if until_done:
                        return
                    self.stop.wait(IDLE_SECONDS)
        finally:
            self._leave(self._records() if not until_done else None)

    def _turn(self, unit: Unit, *, until_done: bool) -> bool:
        """Run one partition, or a share of it, for a few seconds, and return whether there may be more to do."""
        if self._blocked.get(unit, 0.0) > self.now():
            return False
        partition, share_ = unit
        records = self._records()
        try:
            ran = self.reactor.run(
                partition, share=share_, seconds=TURN_SECONDS, careful=unit in self._careful
            )
        except Exception as error:
            records.record_error(unit, error, due=None)
            raise
        self._careful.discard(unit)
        self._blocked.pop(unit, None)
        if ran.blocked is not None:
            self._blocked[unit] = self.now() + BLOCKED_SECONDS
            # One that ends when the rest is done does not wait for what is blocked.
            records.record_blocked(unit, ran.blocked, due=None if until_done else BLOCKED_SECONDS)
        if ran.moved or ran.blocked is not None:
            self.on_turn(partition, ran)
        return ran.moved or not (ran.at_tail or ran.blocked or ran.paused)

    def _sign(self) -> None:
        """Renew the process's sign of life when it is due, and compute which partitions it runs."""
        now, member = self.now(), self.reactor.member
        if now < self._signed + SIGN_SECONDS:
            return
        group = member.reaction.name
        until = int((now + ALIVE_SECONDS) * 1000)
        member.driver.run(write_sign(member.table, group, Sign(owner=self.owner, until=until)))
        signs = member.driver.run(read_signs(member.table, group))
        owners = {sign.owner for sign in signs if sign.until > now * 1000} | {self.owner}
        units = assign_units(self.owner, owners, self._units())
        if any(sign.until <= now * 1000 for sign in signs):
            # A process ended without deleting its sign: it may have died over an event of the new partitions.
            self._careful |= set(units).difference(self._mine)
        self._mine, self._signed = units, now
        for sign in signs:
            if sign.until < (now - FORGOTTEN_SECONDS) * 1000:
                member.driver.run(remove_sign(member.table, group, sign.owner))

    def _units(self) -> list[Unit]:
        """Return the partitions that the reaction reads, or the shares of them that run on their own."""
        member = self.reactor.member
        partitions = (tail.partition for tail in member.reader.partitions())
        sharing = member.reaction.sharing
        return [
            unit
            for partition in partitions
            if source_of(partition) in member.reaction.sources
            for unit in sharing.units(partition)
        ]

    def _records(self) -> FailureRecords:
        """Return the writer of records of failed runs."""
        return FailureRecords(member=self.reactor.member, keeps_words=False, on_unrecorded=self.on_unrecorded)

    def _leave(self, records: FailureRecords | None) -> None:
        """Delete the sign of life; with `records`, record that what is blocked has no further run.

        Args:
            records: where it is recorded that no further run of what is blocked is expected, unless that is on record.
        """
        member = self.reactor.member
        if records is not None:
            for unit in self._blocked:
                records.record_end(unit)
        member.driver.run(remove_sign(member.table, member.reaction.name, self.owner))
