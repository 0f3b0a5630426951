"""docs/guide/console.md lists every change that the console can make: those of the routes that write, and no others."""

from __future__ import annotations

import re

from epochal.contrib.console.reactions import ACTS, STEERING_ACTS
from epochal.contrib.console.server import application
from epochal.deployment import Deployment
from tests.docs.test_links import ROOT

GUIDE = (ROOT / "docs" / "guide" / "console.md").read_text("utf-8")
SECTION = GUIDE.partition("## What it can change\n")[2].partition("\n## ")[0]


def test_the_guide_names_every_route_that_writes(opened: Deployment) -> None:
    writing = {
        f"{method} {rule.rule}"
        for rule in application(opened, "t").url_map.iter_rules()
        for method in (rule.methods or set()) - {"GET", "HEAD", "OPTIONS"}
    }
    assert set(re.findall(r"`([A-Z]+ /\S*)`", SECTION)) == writing


def test_the_guide_names_every_act_under_its_route() -> None:
    parked, groups = (part for part in SECTION.split("(`POST /")[1:])
    assert tuple(re.findall(r"^- \*\*(\w+)\*\*", parked, re.MULTILINE)) == ACTS
    assert tuple(re.findall(r"^- \*\*(\w+)\*\*", groups, re.MULTILINE)) == STEERING_ACTS
