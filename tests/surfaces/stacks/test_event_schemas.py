"""From the file that `epochal schema` prints to the module in a function's layer that checks events."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from epochal import json_codec
from epochal.cdk.parts.layers import SCHEMAS, Platform, checking
from epochal.cdk.rules import BadSetting
from epochal.cli.main import epochal
from epochal.settings import LAMBDA_PYTHON
from stacks.stages import stage_from
from tests.support.api import Api

HERE = Platform(python=LAMBDA_PYTHON)


@dataclass(frozen=True)
class Boarded:
    passenger: str


codec = json_codec(Boarded)


def printed(place: Path) -> Path:
    found = CliRunner().invoke(
        epochal, ["schema", "--codec", "tests.surfaces.stacks.test_event_schemas:codec"]
    )
    assert found.exit_code == 0
    (place / "events.json").write_text(found.stdout)
    return place / "events.json"


def test_what_the_command_prints_is_what_a_function_checks_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer = checking(printed(tmp_path), HERE, tmp_path / "cache")
    assert layer == checking(printed(tmp_path), HERE, tmp_path / "cache")
    monkeypatch.syspath_prepend(str(layer / "python"))
    monkeypatch.delitem(sys.modules, SCHEMAS, raising=False)
    api = Api(pages=True, chosen={"event_schemas": SCHEMAS})
    event = {"type": "Boarded", "data": {"passenger": "Ada"}}
    assert api.call("POST", "/streams/Flight-1/events", {"events": [event]}).status == 201
    answer = api.call("POST", "/streams/Flight-1/events", {"events": [{**event, "data": {"passenger": 1}}]})
    assert (answer.status, answer.json["field"]) == (400, "events[0].data.passenger")
    monkeypatch.delitem(sys.modules, SCHEMAS)


def test_the_layer_is_small_since_no_library_is_in_it(tmp_path: Path) -> None:
    layer = checking(printed(tmp_path), HERE, tmp_path / "cache")
    files = [each for each in layer.rglob("*") if each.is_file()]
    assert {each.stem.partition(".")[0] for each in files} == {SCHEMAS}
    assert sum(each.stat().st_size for each in files) < 10_000


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "No such file"),
        ("{", "events.json: Expecting"),
        ("[]", "must be a document printed by `epochal schema`"),
        ('{"$defs": {}}', "must be a document printed by `epochal schema`"),
        (
            '{"$defs": {"A": {"unevaluatedItems": false}}}',
            "A: unevaluatedItems cannot be expressed in draft 7",
        ),
    ],
)
def test_a_file_that_nothing_can_be_checked_by_is_refused_by_its_setting(
    tmp_path: Path, text: str | None, told: str
) -> None:
    document = tmp_path / "events.json"
    if text is not None:
        document.write_text(text)
    with pytest.raises(BadSetting, match=told) as refused:
        checking(document, HERE, tmp_path / "cache")
    assert refused.value.name == "event_schemas"


def test_to_refuse_what_cannot_be_checked_means_nothing_without_schemas() -> None:
    with pytest.raises(BadSetting, match=r"stages\.dev\.event_schemas must be set with unchecked_events"):
        stage_from("dev", {"dev": {"unchecked_events": "refuse"}})
