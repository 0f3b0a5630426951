"""docs/first-day.md: what it has deployed is what is proven with, and its tables name the checks that there are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click

from epochal import extensions
from epochal.cli.main import epochal
from epochal.contrib.event_store_adapter import AdapterOptions
from epochal.contrib.proving.commands import ACCOUNT
from epochal.contrib.proving.proof import CATEGORY, ProofRun, Trial
from epochal.contrib.proving.store import PROCESS, REACTION, quarantine, store_checks
from epochal.contrib.proving.updating import changed_setting
from stacks.stages import stage_from
from tests.contrib.proving.stage import Stage
from tests.docs.shell import commands
from tests.support.api import Api

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "docs" / "first-day.md"
PAGE = FILE.read_text("utf-8")


def all_checks(proof: ProofRun) -> list[Trial]:
    of_packages = (each for trials in extensions.parts("proofs") for each in trials(proof))
    return [*store_checks(proof), *of_packages, *ACCOUNT, changed_setting, quarantine]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_stage_that_it_declares_is_one_and_has_what_a_proof_asks_for() -> None:
    (declared,) = blocks("json")
    stage = stage_from("dev", json.loads(f"{{{declared}}}")["stages"])
    assert CATEGORY in stage.of_plugin(AdapterOptions).aggregate_types
    assert [*stage.reactions] == [REACTION, PROCESS]
    assert (ROOT / stage.reactions[REACTION].entry / "handler.py").is_file()
    assert (ROOT / stage.reactions[PROCESS].entry / "process.py").is_file()
    assert stage.reactions[PROCESS].process


def test_it_shows_the_code_that_is_deployed() -> None:
    shown = dict(re.fullmatch(r"# (\S+)\n(.*)", block, re.DOTALL).groups() for block in blocks("py")[1:])
    files = [path for path in (ROOT / "examples" / "proof").glob("*.py") if path.stem != "__init__"]
    assert shown == {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in files}


def test_its_list_has_each_check_in_its_order() -> None:
    timed = Stage(api=Api(types=(CATEGORY,), chosen={"timers_table": "timers"}))
    checks = all_checks(timed.proof())
    (listed,) = re.findall(r"A check fails if:\n\n((?:- .*\n)+)", PAGE)
    rows = re.findall(r"^- ((?:`[^`]+`|[^:`])+):", listed, re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    expected = list(
        dict.fromkeys("appends: …" if each.name.startswith("appends") else each.name for each in checks)
    )
    assert named == expected


def test_what_it_says_of_costs_is_what_the_checks_say() -> None:
    cents = 100 * sum(each.dollars for each in all_checks(Stage().proof()))
    assert cents <= 5
    assert "| 2. `epochal prove` | up to 10 minutes | 5 cents at most |" in PAGE
    assert "for less than five cents" in (ROOT / "README.md").read_text("utf-8")


def test_it_names_the_permissions_that_the_checks_ask_for() -> None:
    code = "".join(
        (ROOT / "layers/epochal/python/epochal" / each).read_text()
        for each in (
            "contrib/lake/proofs.py",
            "contrib/proving/commands.py",
            "contrib/proving/proof.py",
            "contrib/proving/updating.py",
            "hosting/services.py",
        )
    )
    asked = {*re.findall(r'translate_errors\("(\w+)"', code)} - {
        "Invoke",
        "ListQueues",
        "GetQueueUrl",
    }  # the console's
    assert asked >= {"DescribeStacks", "SimulatePrincipalPolicy", "GetMetricData"}
    assert not {action for action in asked if action not in PAGE}


def test_its_commands_have_the_options_that_it_gives_them() -> None:
    told = [words[1:] for words in commands(FILE) if words[0] == "epochal"]
    assert len(told) > 4
    for words in told:
        command: click.Command = epochal
        rest = words
        while isinstance(command, click.Group):
            name = next(word for word in rest if word in command.commands)
            command, rest = command.commands[name], rest[rest.index(name) + 1 :]
        with command.make_context(command.name, rest):
            pass
