"""Every page that tells readers to deploy says that nothing has run on AWS yet, and what to do about that."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

DEPLOYING = re.compile(
    r"cdk deploy|deploy --all|preset=\"(prod|staging)\"|\bEventStore\(|EventStore\.from_name"
    r"|\b(Lake|Reaction|Publish|Process|Timers)\((self|stack), |npx aws-cdk"
    r"|^## (Deploying|In AWS|In a stack|In your stack)|\"(timers|reactions|lake)\": [{t]",
    re.MULTILINE,
)
"""What a page has that tells readers to deploy."""

ABOUT_US = {"CHANGELOG.md", "CONTRIBUTING.md"}
HISTORY = ("docs/decisions/", "docs/reference/")
"""Pages that describe, and lead nobody to a deployment."""


def pages() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "*.md", "*.md.tmpl"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return [
        name
        for name in listed
        if name not in ABOUT_US
        and not name.startswith(HISTORY)
        and (ROOT / name).exists()
        and DEPLOYING.search((ROOT / name).read_text("utf-8"))
    ]


@pytest.mark.parametrize("name", pages())
def test_a_page_that_leads_to_a_deployment_has_the_caveat_in_bold(name: str) -> None:
    text = " ".join((ROOT / name).read_text("utf-8").split())
    assert re.search(r"\*\*(It|Epochal) has not run on AWS yet\.\*\*", text), name
    assert "epochal prove" in text, f"{name} does not say what to do first"


def test_the_pages_that_people_begin_with_are_among_them() -> None:
    found = set(pages())
    assert {
        "README.md",
        "docs/index.md",
        "docs/deploy.md",
        "docs/first-day.md",
        "docs/guide/tutorial.md",
        "docs/guide/your-own-app.md",
        "docs/guide/reactions.md",
    } <= found


def test_the_home_page_says_how_to_install() -> None:
    text = (ROOT / "docs" / "index.md").read_text("utf-8")
    assert "pip install" in text
    assert "not on PyPI yet" in text
