"""Links, anchors and citations: each names something that is there, and the index of decisions is complete."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DECISIONS = ROOT / "docs" / "decisions"
PAGES = sorted(path for path in DECISIONS.glob("*.md") if path.name != "README.md")
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *(ROOT / "layers" / "epochal").rglob("README.md")]
)
SOURCES = sorted(
    path
    for folder in ("layers/epochal", "lambdas", "stacks", "tests", "bench", "examples")
    for path in (ROOT / folder).rglob("*.py")
)


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


# ---------------------------------------------------------------------------------------------------------------- links


def prose(path: Path) -> str:
    """A document without its examples of code."""
    return re.sub(r"^```.*?^```$", "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(path: Path) -> set[str]:
    """What a link may name in a document: its headings, as Git hosts make anchors of them, and ids of its own."""
    text = prose(path)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    headings = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
    return headings | set(re.findall(r'<a id="([^"]+)"></a>', text))


def lost_links(path: Path) -> Iterator[str]:
    for link, anchor in re.findall(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)", prose(path)):
        target = (path.parent / link) if link else path
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield f"{link}#{anchor}" if anchor else link


@pytest.mark.parametrize("path", DOCUMENTS, ids=relative)
def test_links_lead_to_files_and_anchors_that_are_there(path: Path) -> None:
    assert list(lost_links(path)) == []


def test_a_link_to_a_file_a_heading_or_an_id_that_is_not_there_is_lost(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        '# A page\n\n<a id="d0001"></a>\n\n'
        "[1](page.md) [2](#a-page) [3](page.md#d0001) [4](gone.md) [5](#gone) [6](page.md#d0002)\n"
    )
    assert list(lost_links(page)) == ["gone.md", "#gone", "page.md#d0002"]


def test_files_that_pages_name_are_there() -> None:
    named = {
        (relative(path), file)
        for path in DOCUMENTS
        for file in re.findall(
            r"`((?:tests|docs|bench|layers|lambdas|stacks|examples)/[\w./-]+)`", prose(path)
        )
    }
    assert len(named) > 40
    assert {(page, file) for page, file in named if not (ROOT / file).exists()} == set()


# ------------------------------------------------------------------------------------------------------------ decisions


@dataclass(frozen=True, kw_only=True)
class Decision:
    """As its page heads it, and as the index lists it."""

    number: int
    page: str


HEADED = re.compile(
    r'^<a id="d(\d{4})"></a>\n\n## (\d+)\. ([^\n]+)\n\n(.+?)(?=\n\n<a |\Z)', re.MULTILINE | re.DOTALL
)
LISTED = re.compile(r"\[(\d+)\]\(([\w-]+\.md)#d(\d{4})\)")

MOST_DECISIONS = 45
MOST_WORDS = 6_000
"""Of all their pages together, the index included."""


def headed() -> list[Decision]:
    found = []
    for page in PAGES:
        for anchor, number, title, _ in HEADED.findall(page.read_text("utf-8")):
            assert int(anchor) == int(number), title
            found.append(Decision(number=int(number), page=page.name))
    return found


def listed() -> list[Decision]:
    found = []
    for number, page, anchor in LISTED.findall((DECISIONS / "README.md").read_text("utf-8")):
        assert int(anchor) == int(number)
        found.append(Decision(number=int(number), page=page))
    return found


def test_the_index_lists_every_decision_of_every_page_once() -> None:
    assert sorted(listed(), key=lambda each: each.number) == sorted(headed(), key=lambda each: each.number)
    assert {decision.page for decision in headed()} == {page.name for page in PAGES}


def test_no_number_is_given_twice_and_decisions_stay_few() -> None:
    numbers = [decision.number for decision in headed()]
    assert len(numbers) == len(set(numbers)) <= MOST_DECISIONS
    assert sum(len(page.read_text("utf-8").split()) for page in DECISIONS.glob("*.md")) <= MOST_WORDS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_section_of_a_page_is_a_decision_of_a_paragraph_of_what_and_one_of_why(page: Path) -> None:
    text = page.read_text("utf-8")
    decisions = HEADED.findall(text)
    assert len(decisions) == len(re.findall(r"^## ", text, re.MULTILINE)) > 0
    assert {title: body.strip().count("\n\n") for _, _, title, body in decisions} == {
        title: 1 for _, _, title, _ in decisions
    }


# ------------------------------------------------------------------------------------------------------------ citations

DECISION = re.compile(r"\bdecisions? (\d+)((?:,? (?:and )?\d+)*)")
SECTION = re.compile(r"\b(FORMATS|DESIGN) §(\d+)(?:\.(\d+))?")


def cited(text: str) -> set[int]:
    return {int(n) for first, more in DECISION.findall(text) for n in [first, *re.findall(r"\d+", more)]}


def sections(name: str) -> set[tuple[str, str, str]]:
    """Of a page: its numbered headings, and the numbered paragraphs below each."""
    page = {"FORMATS": "reference/formats.md", "DESIGN": "design.md"}[name]
    found, heading = set(), ""
    for line in (ROOT / "docs" / page).read_text("utf-8").splitlines():
        if top := re.match(r"## (\d+)\. ", line):
            heading = top[1]
            found.add((name, heading, ""))
        elif inner := re.match(r"(?:### \d+\.)?(\d+)\. \*{0,2}\w", line):
            found.add((name, heading, inner[1]))
    return found


def test_every_decision_that_is_cited_is_there() -> None:
    numbers = {decision.number for decision in headed()}
    lost = {
        relative(path): unknown
        for path in (*SOURCES, *DOCUMENTS)
        if path != Path(__file__) and (unknown := cited(path.read_text("utf-8")) - numbers)
    }
    assert lost == {}
    assert cited("decision 1; decisions 2, 3 and 4") == {1, 2, 3, 4}


def test_every_section_of_the_formats_and_the_design_that_is_cited_is_there() -> None:
    there = sections("FORMATS") | sections("DESIGN")
    found = {
        (relative(path), citation)
        for path in (*SOURCES, *DOCUMENTS)
        for citation in SECTION.findall(path.read_text("utf-8"))
    }
    assert len(found) > 20
    assert {(path, citation) for path, citation in found if citation not in there} == set()
