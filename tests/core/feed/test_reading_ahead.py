"""Reading to the tail asks for the next request while the last is being worked on, and for no more."""

from __future__ import annotations

import threading
import time
from hashlib import sha512

from epochal.plan.ops import Op
from tests.core.feed.feeds import Feeds


def test_the_next_request_is_made_while_a_page_is_being_worked_on() -> None:
    feeds = Feeds()
    for number in range(60):
        # Names that do not compress, so that the index takes several requests.
        feeds.append(f"A-{number}", *(sha512(b"%d %d" % (number, at)).hexdigest() * 3 for at in range(20)))
    indexer = feeds.indexer()
    indexer.register()
    for record in feeds.records():
        assert not indexer.index([record]).failed
    ahead, made = threading.Event(), []

    def note(_: Op) -> None:
        if threading.get_ident() != here:
            made.append(1)
            ahead.set()

    here, feeds.fault = threading.get_ident(), note
    pages = feeds.reader().read(0, limit=1)
    next(pages)
    assert ahead.wait(120), "nothing was asked for while the page was worked on"
    time.sleep(0.1)
    assert len(made) <= 2, "more than the next request was made"
    assert sum(len(page.items) for page in pages) == 59 * 20


def test_who_stops_early_leaves_no_thread_behind() -> None:
    feeds = Feeds()
    for number in range(10):
        feeds.append(f"A-{number}", "happened")
    indexer = feeds.indexer()
    indexer.register()
    indexer.index(feeds.records())
    before = set(threading.enumerate())
    pages = feeds.reader().read(0, limit=1)
    next(pages)
    pages.close()  # type: ignore[attr-defined]
    assert not set(threading.enumerate()) - before
