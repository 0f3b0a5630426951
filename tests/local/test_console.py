"""The console is served on this machine alone, at a port that is free."""

from __future__ import annotations

import threading
from urllib.request import urlopen

from epochal.console.server import server
from epochal.deployment import Deployment
from epochal.testing.bucket import MemoryBucket
from epochal.testing.feeds import MemoryFeed
from epochal.testing.stores import memory_settings


def test_a_browser_on_this_machine_gets_the_pages_and_their_style() -> None:
    feed = MemoryFeed()
    deployment = Deployment(settings=memory_settings(), driver=feed.reader.driver, bucket=MemoryBucket())
    serving = server(deployment, "epochal-test")
    assert serving.server_address[0] == "127.0.0.1"
    thread = threading.Thread(target=serving.serve_forever)
    thread.start()
    try:
        for path, told in (
            ("/", b"epochal-test"),
            ("/static/console.css", b"--ink"),
            ("/static/live.js", b"data-live"),
        ):
            with urlopen(f"http://127.0.0.1:{serving.server_port}{path}", timeout=30) as answer:
                assert told in answer.read()
    finally:
        serving.shutdown()
        thread.join()
        serving.server_close()
