"""Pauses of an append that was refused because other writers wrote to the same pages, so that they can finish.

    refused once         it is sent again at once, on the page that came back with the refusal
    refused again        it pauses, and then reads the page again: the one that came back is too old by then
    refused for long     it pauses for a shorter time, so that it does not wait much longer than others

A round trip passes between the moment at which a page is read and the arrival of a write on it, and the write is
refused if another one is applied meanwhile. So all writers of a page together should send about one write in each round
trip. An append that was refused twice has rivals: it waits for many round trips, by chance a longer or a shorter time,
so that few of its rivals wait for as long as it does.

The page shows that it is busy, but not how many writers it has: under two that write without a break it grows nearly as
fast as under thirty. So the length of a pause depends on the number of refusals alone.
"""

from __future__ import annotations

from typing import Final

from epochal.plan.ops import Pause

ROUND_TRIPS: Final = (32, 48, 32, 16)
"""Longest pauses after the second refusal, the third, and so on, in round trips; the last is that of all further ones.
The shortest pauses are half as long.

If 8 writers append without a break, an append is refused once on average, and 2.3 times with 32 writers; in both cases
there are more appends a second than one writer would make (`bench/shared_tag.py`). Shorter pauses waste more writes,
and longer ones make the last appends wait."""


def pause_after(refusals: int) -> Pause | None:
    """Return an append's pause after `refusals` refusals in a row; None after the first.

    Args:
        refusals: number of refusals, from 1.
    """
    if refusals == 1:
        return None
    most = ROUND_TRIPS[min(refusals - 2, len(ROUND_TRIPS) - 1)]
    return Pause(least=most / 2, most=most)
