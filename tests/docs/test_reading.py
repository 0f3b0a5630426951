"""The pages are written for a reader in a hurry: short sentences, and an index for machines that names every page."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs import machine_index

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MOST_WORDS = 18
"""Of the median sentence of a page."""


def sentences(text: str) -> Iterator[str]:
    """Those of the paragraphs and lists; tables, headings and code are not read as sentences."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^(\||#).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`]*`", "code", text)
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text):
        yield from re.split(r"(?<=[.!?])\s+", " ".join(paragraph.split()))


def words(sentence: str) -> int:
    return len(re.findall(r"\w[\w'’-]*", sentence))


def test_words_are_counted_in_sentences_and_not_in_code_or_tables() -> None:
    text = "# A title\n\nOne two. Three `a b` four\nfive?\n\n| a | b |\n\n```sh\nno no no\n```\n- six [seven](x.md)\n"
    assert [words(each) for each in sentences(text) if words(each)] == [2, 4, 2]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_sentences_of_a_page_are_short(page: Path) -> None:
    lengths = [count for each in sentences(page.read_text("utf-8")) if (count := words(each)) > 1]
    assert statistics.median(lengths) <= MOST_WORDS


def test_the_index_for_machines_tells_of_each_page_what_it_says_first() -> None:
    told = re.findall(r"^- \[(.+?)\]\(.+?\): (.+)$", machine_index.index(), re.MULTILINE)
    assert [name for name, _ in told] == [name for _, pages in machine_index.sections() for name, _ in pages]
    first = (
        "Epochal stores events in DynamoDB, and maintains one index of all appends, which readers and reactions "
        "follow."
    )
    assert dict(told)["How it works"] == first


def test_a_site_has_the_index_and_the_pages_that_it_names(tmp_path: Path) -> None:
    machine_index.write(tmp_path)
    linked = re.findall(r"\]\((.+?)\):", (tmp_path / "llms.txt").read_text("utf-8"))
    assert all((tmp_path / file).is_file() for file in linked)
    assert "# How it works" in (tmp_path / "llms-full.txt").read_text("utf-8")
