"""docs/guide/platform.md: its answers are complete, and what it says that a deployment has, a stage has."""

from __future__ import annotations

import re
from pathlib import Path

from epochal.cdk.stages import RULES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "guide" / "platform.md").read_text("utf-8")
ROWS = dict(re.findall(r"^\| ([^|]+) \| (\*\*.*) \|$", PAGE, re.MULTILINE))


def test_each_answer_is_that_there_is_one_or_how_or_why_not() -> None:
    assert len(ROWS) > 12
    assert {re.match(r"\*\*(\w+)\*\*", answer)[1] for answer in ROWS.values()} == {"has", "how", "not"}  # type: ignore[index]


def test_what_is_there_is_a_setting_or_a_section() -> None:
    sections = {
        re.sub(r"[^\w -]", "", each).lower().replace(" ", "-")
        for each in re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    }
    for asked, answer in ROWS.items():
        settings = re.findall(r"`([a-z_]+)`", answer)
        links = re.findall(r"\]\(#([\w-]+)\)", answer)
        assert settings or links, asked
        assert set(settings) <= set(RULES), asked
        assert set(links) <= sections, asked
    assert {each for answer in ROWS.values() for each in re.findall(r"\(#([\w-]+)\)", answer)} == sections
