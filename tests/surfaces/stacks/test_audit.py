"""The auditor as deployed: when it runs, what it is told, whom it tells, and that its grants are what it does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from epochal.care.auditor import Auditor
from epochal.care.mender import Mender
from epochal.care.retention import rules_of
from epochal.model.events import Event
from epochal.pages.layout import Pages
from epochal.pages.port import pages_source
from epochal.plan.ops import Op, Reply
from epochal.settings import variable
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from tests.layouts.stores import ALICE, BOB
from tests.surfaces.care.damage import Damaged
from tests.surfaces.stacks.templates import Deployment, Synthesise
from tests.surfaces.stacks.test_permissions import EXPECTED, OWN_LOG, Allowed, on
from tests.surfaces.stacks.test_permissions_used import actions

FUNCTION = "AWS::Lambda::Function"


@pytest.fixture(scope="module")
def deployed(synthesise: Synthesise) -> Deployment:
    return synthesise("prod", alarm_topic="arn:aws:sns:eu-west-1:123456789012:alarms")


def test_it_is_told_what_the_indexer_is_told(deployed: Deployment) -> None:
    def environment(name: str) -> dict[str, Any]:
        told = deployed.named("feed", FUNCTION, name)["Properties"]["Environment"]["Variables"]
        return {name: value for name, value in told.items() if name.startswith("EPOCHAL_")}

    told = environment("AuditAuditor")
    del told[variable("mappings")]
    assert told == environment("IndexerFunction")


def test_it_may_ask_how_the_mappings_are_of_which_it_is_told(deployed: Deployment) -> None:
    told = deployed.named("feed", FUNCTION, "AuditAuditor")["Properties"]["Environment"]["Variables"]
    mappings = deployed.of_type("feed", "AWS::Lambda::EventSourceMapping").keys()
    assert {each["Fn::GetAtt"][0] for each in told[variable("mappings")]["Fn::Join"][1][::2]} == mappings
    role = deployed.named("feed", "AWS::IAM::Role", "AuditAuditorRole")["Properties"]
    (asking,) = [
        each
        for each in role["Policies"][0]["PolicyDocument"]["Statement"]
        if each["Action"] == "lambda:GetEventSourceMapping"
    ]
    assert {each["Fn::Join"][1][-1]["Fn::GetAtt"][0] for each in asking["Resource"]} == mappings


def test_it_may_do_what_it_does_and_nothing_else() -> None:
    world = Damaged()
    world.fill(30)
    for stream in ("Long-1", "Long-2"):
        for turn in range(60):
            world.layouts.append(stream, f"Moved{turn:0200}", f"Moved{turn:0200}")
    world.layouts.persist(ALICE, "late")
    world.layouts.persist_elsewhere(BOB, "late")
    world.layouts.tag("late", "room:1")
    world.layouts.tag("later", "room:1")
    pages = Streams(driver=world.layouts.driver, table="streams", layout=Pages())
    for number in range(3):
        pages.append(f"Alike-{number}", [Event(type="Noted", data=b'{"said": "what all of them say"}')])
    used: Allowed = set()

    def execute(op: Op) -> Reply:
        used.update(actions(op))
        return world.layouts.execute(op)

    driver = Driver(execute=execute, meter=Meter(), sleep=lambda _: None)
    sources = (*world.layouts.sources, pages_source("streams"))
    for _ in range(60):
        Auditor(mender=Mender(driver=driver, index_table="index"), sources=sources).audit(60)
        moved = [f"Moved{turn:0200}" for turn in range(40)]
        world.layouts.append("Long-1", *moved)
        pages.append("Long-3", [Event(type=each, data=each.encode()) for each in moved])
        pages.prune("Long-3", 10)
    asking = {each for each in EXPECTED["auditor"] if each[0].startswith(("lambda:", "sns:"))}
    assert used == EXPECTED["auditor"] - OWN_LOG - asking
    keeping = Auditor(
        mender=Mender(driver=driver, index_table="index"),
        sources=sources,
        rules=rules_of(["Alike:1", "Long:5"]),
        streams=lambda: replace(pages, driver=driver),
    )
    assert sum(keeping.audit(60).pruned for _ in range(3)) == 1
    assert used == (EXPECTED["auditor"] | set(on("streams", "UpdateItem"))) - OWN_LOG - asking
