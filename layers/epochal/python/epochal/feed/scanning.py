"""Every head of a source, by a scan of its table, of which several segments may be under way at once.

What lies between the heads is read and paid for too, but does not travel. A page that comes is worked on while the
next one of its segment is on its way, so as many pages are held as there are segments.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from epochal.index.sources import Source
from epochal.plan.ops import Items, Scan
from epochal.plan.values import Item, Key
from epochal.store.driver import Driver


def scan(
    source: Source,
    segment: tuple[int, int] = (0, 1),
    *,
    after: Key | None = None,
    consistent: bool = True,
) -> Scan:
    """A page of a segment."""
    return Scan(table=source.table, segment=segment, where=source.where, after=after, consistent=consistent)


def heads(driver: Driver, source: Source, segments: int = 1) -> Iterator[tuple[Item, ...]]:
    """Pages of the heads that were there when this began, and maybe of some that came since."""
    if segments == 1:
        yield from _one_by_one(driver, source)
        return
    with ThreadPoolExecutor(segments) as pool:

        def ask(segment: tuple[int, int], after: Key | None) -> Future[Items]:
            return pool.submit(driver.ask, scan(source, segment, after=after))

        asked = {ask((number, segments), None): (number, segments) for number in range(segments)}
        try:
            while asked:
                done, _ = wait(asked, return_when=FIRST_COMPLETED)
                for page in done:
                    segment, found = asked.pop(page), page.result()
                    if found.last is not None:
                        asked[ask(segment, found.last)] = segment
                    yield found.items
        finally:
            for page in asked:
                page.cancel()


def _one_by_one(driver: Driver, source: Source) -> Iterator[tuple[Item, ...]]:
    """In this thread alone, so that whoever owns the driver owns the order of its requests."""
    after = None
    while True:
        page = driver.ask(scan(source, after=after))
        yield page.items
        after = page.last
        if after is None:
            return
