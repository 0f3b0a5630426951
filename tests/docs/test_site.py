"""The documentation is a site: every page has its place, every link leads somewhere, nothing comes from elsewhere."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from tests.docs import site

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
NAV: list[dict[str, Any]] = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]["nav"]


def _pages(nav: Any) -> Iterator[str]:
    for entry in nav:
        for place in entry.values():
            yield from _pages(place) if isinstance(place, list) else (place,)


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    site.prepare(place)
    return place


def test_every_page_is_in_the_navigation_and_decisions_are_by_their_index() -> None:
    pages = [str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")]
    expected = sorted(each for each in pages if not re.match(r"decisions/(?!README)", each))
    assert sorted(_pages(NAV)) == expected


def test_the_first_page_runs_and_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    text = (DOCS / "index.md").read_text("utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    exec(compile(code, "index.md", "exec", dont_inherit=True), {"__name__": __name__})  # noqa: S102
    (said,) = re.findall(r"^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert capsys.readouterr().out == said


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_loads_nothing_from_elsewhere(copied: Path) -> None:
    done = site.build(copied)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = list((copied / "site").rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        loaded = re.findall(
            r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=\"?(https?://[^\">]*)", page.read_text("utf-8")
        )
        assert loaded == [], page


def test_the_owner_names_the_address_of_the_site_and_of_the_repository() -> None:
    plain = tomllib.loads(site.settings({}))["project"]
    assert not {"site_url", "repo_url", "edit_uri"} & plain.keys()
    assert plain["copyright"] == f"Epochal {version('epochal')}"
    named = tomllib.loads(
        site.settings(
            {"SITE_URL": "https://docs.example.com", "REPOSITORY_URL": "https://code.example.com/it/"}
        )
    )["project"]
    assert (named["site_url"], named["repo_url"]) == (
        "https://docs.example.com/",
        "https://code.example.com/it",
    )
    assert "content.action.edit" in named["theme"]["features"]
    assert named["nav"] == plain["nav"] == NAV


@pytest.mark.slow
def test_links_that_lead_nowhere_are_errors(tmp_path: Path) -> None:
    """Two pages, built as all are."""
    site.prepare(tmp_path)
    for path in (tmp_path / "docs").rglob("*.md"):
        path.unlink()
    settings = tmp_path / "zensical.toml"
    pages = 'nav = [{ "One" = "index.md" }, { "Broken" = "broken.md" }]\n'
    settings.write_text(
        re.sub(r"^nav = \[.*?^\]\n", pages, settings.read_text(), flags=re.MULTILINE | re.DOTALL)
    )
    (tmp_path / "docs" / "index.md").write_text("# One\n\n[another page](broken.md)\n")
    (tmp_path / "docs" / "broken.md").write_text(
        "# Broken\n\n[a page](nothing.md), [a heading](index.md#nothing), [what is there](index.md#one)\n"
    )
    done = site.build(tmp_path)
    assert done.returncode != 0
    assert "2 issues found" in done.stdout + done.stderr
