"""Lets readers of one process that wait at the same place of a partition share their polls.

    nobody waits there              the reader leads: it pauses, polls, and passes new entries to those that wait
    somebody does                   it waits for new entries from the leader, until its own time is over
    the leader ends without news    the first that waits leads

So no thread is left behind, and nobody waits longer than alone. The leader polls with its own driver. If a poll fails,
all readers that share it get the error, unless the leader has a deadline of its own. Readers are threads, or tasks of
an event loop (`epochal.store.driver`), and share a client.
"""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Final

from epochal.errors import EpochalError
from epochal.lazy_dataclasses import dataclass, field
from epochal.store.driver import TURN, Driver, Turn, loop_number, turn

if TYPE_CHECKING:
    from epochal.index.feed_walk import WalkPage

POLL_SECONDS: Final = 0.25
"""Seconds from a poll of the tail that found nothing to the next poll. A poll costs half a read unit."""

LONGEST_POLL: Final = 2.0
"""Longest seconds between polls, when nothing has come for long: so a thousand waiting readers take 250 read units a
second. A poll that costs more is made correspondingly less often."""

LONGER: Final = 1.5
"""Factor by which each pause exceeds the last one, while nothing is new."""


@dataclass(slots=True)
class Pauses:
    """Pauses between polls, each longer than the last, until there are new entries.

    Attributes:
        seconds: length of the next pause.
        weight: read units of the next look, as a multiple of the least.
    """

    seconds: float = POLL_SECONDS
    weight: int = 1

    def longer(self) -> float:
        """Return the next pause in seconds, and lengthen the one after it."""
        pause, self.seconds = self.seconds, min(LONGER * self.seconds, LONGEST_POLL * self.weight)
        return pause


@dataclass(slots=True, eq=False)
class _Waiting:
    """A reader that waits until `until`; when its turn comes it has been given news, or leads."""

    until: float
    turn: Turn = field(default_factory=turn)
    news: WalkPage | EpochalError | None = None


@dataclass(slots=True, eq=False)
class _Watch:
    """The readers that wait at a place, in the order of their arrival.

    Attributes:
        key: identity of the place.
        due: time of the leader's next poll.
        pauses: pauses between polls.
        last: whether the leader's next poll is its last.
        waiting: readers that wait for the leader's news.
    """

    key: Hashable
    due: float
    pauses: Pauses
    last: bool = False
    waiting: list[_Waiting] = field(default_factory=list)


_LOCK = threading.Lock()
_WATCHES: Final[dict[Hashable, _Watch]] = {}


def _forget() -> None:
    """Start over in a child process, whose parent's threads do not lead and hold no lock."""
    global _LOCK  # noqa: PLW0603
    _LOCK = threading.Lock()
    _WATCHES.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def wait_for_more(
    driver: Driver,
    place: tuple[Hashable, ...],
    pauses: Pauses,
    patience: float,
    look: Callable[[bool], WalkPage],
) -> WalkPage:
    """Wait for entries until `patience`, sharing polls with other readers; return the last poll's page.

    The last poll is made once the clock shows `patience`: it is consistent, and may be another reader's of a moment
    before.

    Args:
        place: identity of the place.
        pauses: pauses between polls, if nobody waits yet.
        look: function that polls once, consistently or not.
    """
    key = (driver.place, TURN.get(), loop_number(), *place)
    own = _Waiting(patience)
    with _LOCK:
        watch = _WATCHES.get(key)
        leads = watch is None
        if watch is None:
            watch = _WATCHES[key] = _Watch(key, driver.clock() + pauses.longer(), pauses)
        else:
            watch.waiting.append(own)
    news: WalkPage | EpochalError | None = None
    try:
        if not leads:
            own.turn.wait(max(0.0, patience - driver.clock()))
            if watch.last and not own.turn.is_set():
                own.turn.wait(POLL_SECONDS)
            leads = _stop_waiting(watch, own)
        news = own.news or (_lead(driver, watch, patience, look) if leads else look(True))
    except BaseException as error:
        leads = leads or _stop_waiting(watch, own)
        if leads and isinstance(error, EpochalError) and driver.deadline is None:
            news = error
        raise
    finally:
        if own.news is None:
            _leave(watch, leads, news, driver.clock() + POLL_SECONDS)
    if isinstance(news, EpochalError):
        raise news
    return news


def _stop_waiting(watch: _Watch, own: _Waiting) -> bool:
    """Remove a reader from those that wait; return whether it leads now."""
    with _LOCK:
        if own in watch.waiting:
            watch.waiting.remove(own)
        return own.turn.is_set() and own.news is None


def _lead(driver: Driver, watch: _Watch, patience: float, look: Callable[[bool], WalkPage]) -> WalkPage:
    """Poll a place until there are new entries or `patience` is over; return the last poll's page."""
    while True:
        now = driver.clock()
        last = watch.due >= patience
        # Nobody waits for more than there is, but the last look says where the tail is.
        driver.sleep(max(0.0, min(watch.due, patience) - now))
        watch.last = last
        page = look(last)
        if last or page.is_news:
            return page
        watch.pauses.weight = page.weight
        watch.due = driver.clock() + watch.pauses.longer()


def _leave(watch: _Watch, leads: bool, news: WalkPage | EpochalError | None, over: float) -> None:
    """Give news to the readers that wait, and let the next one lead.

    Without news, those whose time is over get the last poll's page.
    """
    with _LOCK:
        ends = isinstance(news, EpochalError) or (news is not None and news.is_news)
        readers = [reader for reader in watch.waiting if ends or (news is not None and reader.until <= over)]
        watch.waiting = [reader for reader in watch.waiting if reader not in readers]
        for reader in readers:
            reader.news = copy.copy(news)
            reader.turn.set()
        watch.last = watch.last and not leads
        if leads and watch.waiting:
            watch.waiting.pop(0).turn.set()
        elif (ends or leads) and _WATCHES.get(watch.key) is watch:
            del _WATCHES[watch.key]
