"""The documentation in a real browser: every page is drawn, accessible, fits, and asks nobody else for anything."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.browser.conftest import Look
from tests.docs import browser_scripts, site

# Some seventy pages, at two widths and in two themes, take minutes.
pytestmark = [pytest.mark.proof, pytest.mark.timeout(3_600)]

RENDERED_BY_OTHERS = "/reference/api/"
"""The page whose content Redoc draws: what it draws is not ours to judge, the rest is."""


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files without a line of log for each."""

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    site.prepare(folder)
    browser_scripts.put(folder / "docs")
    assert site.build(folder).returncode == 0
    return folder / "site"


@pytest.fixture(scope="module")
def base(built: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(built)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_every_page_is_accessible_and_fits_a_desk_and_a_telephone(
    look: Look, built: Path, base: str, tmp_path: Path
) -> None:
    """Pictures are in `SITE_PICTURES` if that names a folder: look at them after a change of the theme."""
    pictures = Path(os.environ.get("SITE_PICTURES", tmp_path))
    pictures.mkdir(parents=True, exist_ok=True)
    paths = [f"/{page.parent.relative_to(built)}/".replace("/./", "/") for page in built.rglob("index.html")]
    assert len(paths) > 50
    faults: dict[str, object] = {}
    paths.sort()
    for start in range(0, len(paths), 8):
        group = paths[start : start + 8]
        pages = {path: path for path in group}
        names = {path: path.strip("/").replace("/", "-") or "home" for path in group}
        files = {path: str(pictures / f"{name}.png") for path, name in names.items()}
        narrow = {f"{path}, narrow": str(pictures / f"{name}-390.png") for path, name in names.items()}
        request = {"base": base, "enter": "/", "pages": pages, "flows": {}, "pictures": files | narrow}
        report = look({**request, "ignored": "#openapi", "width": 1440, "narrow": 390, "main_only": True})
        for path, page in report["pages"].items():
            violations = [*page["axe"]["light"], *page["axe"]["dark"]]
            if page["complaints"] or violations or page["overflow"] > 0 or page["cut"]:
                faults[path] = (page["complaints"], violations, page["overflow"], page["cut"])
    assert faults == {}
