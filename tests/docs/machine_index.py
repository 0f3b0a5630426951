"""llms.txt and llms-full.txt of the site: every page by its title and first sentence, and all pages as one text.

python -m tests.docs.machine_index build/site
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"


def sections() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """The navigation: each section's title, with the titles and files of its pages, those of its groups included."""
    nav: list[dict[str, Any]] = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]["nav"]
    for entry in nav:
        for title, content in entry.items():
            yield title, list(_pages(title, content))


def _pages(title: str, content: str | list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    if isinstance(content, str):
        yield title, content
    else:
        for entry in content:
            for name, pages in entry.items():
                yield from _pages(name, pages)


def first_sentence(page: str) -> str:
    """What a page says first, without its links."""
    for paragraph in re.split(r"\n\s*\n", page):
        if not paragraph.startswith(("#", "```", "|", "<", "!", ">", "---")):
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(paragraph.split()))
            return re.split(r"(?<=[.:])\s", text, maxsplit=1)[0]
    raise ValueError("a page has no sentence")


def index() -> str:
    """llms.txt, as llmstxt.org has it."""
    lines = ["# Epochal", "", f"> {first_sentence((DOCS / 'index.md').read_text('utf-8'))}"]
    for title, pages in sections():
        lines += ["", f"## {title}", ""]
        lines += [
            f"- [{name}](source/{Path(file).with_suffix('.txt')}): {first_sentence((DOCS / file).read_text('utf-8'))}"
            for name, file in pages
        ]
    return "\n".join([*lines, ""])


def full() -> str:
    """All pages, one after another."""
    files = [file for _, pages in sections() for _, file in pages]
    return "\n\n".join((DOCS / file).read_text("utf-8").rstrip() for file in files) + "\n"


def write(docs: Path) -> None:
    """Write both among the pages of a site; the index names copies of the pages as they were written."""
    for _, pages in sections():
        for _, file in pages:
            copy = docs / "source" / Path(file).with_suffix(".txt")
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text((DOCS / file).read_text("utf-8"), "utf-8")
    (docs / "llms.txt").write_text(index(), "utf-8")
    (docs / "llms-full.txt").write_text(full(), "utf-8")
