"""The documentation's diagrams in a real browser: it draws all of them, and asks nobody else for anything."""

from __future__ import annotations

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.browser.conftest import Look
from tests.docs import browser_scripts, site


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and says nothing of it."""

    def log_message(self, *_: object) -> None:
        """A line for each file would hide what the tests say."""


@pytest.mark.proof
def test_a_browser_draws_every_diagram(look: Look, tmp_path: Path) -> None:
    site.prepare(tmp_path)
    browser_scripts.put(tmp_path / "docs")
    assert site.build(tmp_path).returncode == 0
    serving = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "site")))
    thread = threading.Thread(target=serving.serve_forever)
    thread.start()
    try:
        base = f"http://127.0.0.1:{serving.server_port}"
        pages = {"diagrams": "/how-it-works/"}
        seen = look({"base": base, "enter": "/", "pages": pages, "flows": {}, "pictures": None})
    finally:
        serving.shutdown()
        thread.join()
        serving.server_close()
    assert seen["pages"]["diagrams"]["complaints"] == []
