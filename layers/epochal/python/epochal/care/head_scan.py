"""Every head of a source, by a scan of its table; several segments may be under way at once.

What is between the heads is read and paid for too, but does not travel. A page that comes is worked on while the
next one of its segment is on its way, so as many pages are held as there are segments.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from epochal.layout.port import Source
from epochal.plan.ops import Items, Scan
from epochal.plan.values import Item, Key
from epochal.store.driver import Driver


def scan(
    source: Source, segment: tuple[int, int] = (0, 1), *, after: Key | None = None, consistent: bool = True
) -> Scan:
    """A page of a segment."""
    return Scan(table=source.table, segment=segment, where=source.where, after=after, consistent=consistent)


def heads(driver: Driver, source: Source, segments: int = 1) -> Iterator[tuple[Item, ...]]:
    """Pages of the heads that were there when this began, and maybe of some that came since."""
    # A single segment in this thread alone, so that whoever owns the driver owns the order of its requests.
    pages = driver.pages(scan(source)) if segments == 1 else _side_by_side(driver, source, segments)
    for page in pages:
        yield page.items


def _side_by_side(driver: Driver, source: Source, segments: int) -> Iterator[Items]:
    with ThreadPoolExecutor(segments) as pool:

        def ask(segment: tuple[int, int], after: Key | None) -> Future[Items]:
            return pool.submit(driver.ask, scan(source, segment, after=after))

        asked = {ask((number, segments), None): (number, segments) for number in range(segments)}
        try:
            while asked:
                done, _ = wait(asked, return_when=FIRST_COMPLETED)
                for future in done:
                    segment, page = asked.pop(future), future.result()
                    if page.last is not None:
                        asked[ask(segment, page.last)] = segment
                    yield page
        finally:
            for future in asked:
                future.cancel()
