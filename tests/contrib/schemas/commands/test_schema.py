"""`epochal schema`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from epochal import json_codec
from epochal.cli.main import epochal
from epochal.errors import EpochalError


@dataclass(frozen=True)
class Boarded:
    passenger: str


@dataclass(frozen=True)
class Other:
    seat: int


codec = json_codec(Boarded)
clashing = json_codec(named={"Boarded": Other})
other = json_codec(Other)
HERE = "tests.contrib.schemas.commands.test_schema"


def run(*arguments: str) -> Any:
    found = CliRunner().invoke(epochal, ["schema", *arguments])
    if isinstance(found.exception, EpochalError):
        raise found.exception
    return found


def test_the_schemas_of_a_codec_are_one_document_and_need_no_store() -> None:
    document = json.loads(run("--codec", f"{HERE}:codec", "--codec", f"{HERE}:other").stdout)
    Draft202012Validator.check_schema(document)
    assert list(document["$defs"]) == ["Boarded", "Other"]


def test_an_asyncapi_document_has_a_channel_for_each_category() -> None:
    arguments = (
        "--asyncapi",
        "--title",
        "Flights",
        "--codec",
        f"Flight={HERE}:codec",
        "--codec",
        f"{HERE}:other",
    )
    found = run(*arguments)
    document = json.loads(found.stdout)
    assert (document["asyncapi"], document["info"]["title"]) == ("3.0.0", "Flights")
    assert list(document["channels"]) == ["Flight", "feed"]
    assert found.stdout.count("\n") > 10
    assert run("--json", *arguments).stdout.count("\n") == 1
    sent = json.loads(run("--cloudevents", *arguments).stdout)["components"]["messages"]["Flight.Boarded"]
    assert sent["contentType"] == "application/cloudevents+json"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            [f"{HERE}:codec", f"{HERE}:clashing"],
            "--codec: two codecs define the type Boarded differently",
        ),
        ([f"{HERE}:Boarded"], f"--codec: {HERE}:Boarded is not a codec; name one as module:name"),
        ([f"{HERE}:missing"], f"--codec: {HERE}:missing is not a codec; name one as module:name"),
        ([HERE], "--codec: must be module:name, the name of a codec in a module"),
        (["nowhere.at.all:codec"], "--codec: there is no module nowhere"),
    ],
)
def test_what_is_no_codec_is_refused_by_name(arguments: list[str], told: str) -> None:
    with pytest.raises(EpochalError, match=told):
        run(*(part for each in arguments for part in ("--codec", each)))


def test_options_that_say_nothing_together_are_refused() -> None:
    assert run("--codec", f"{HERE}:codec", "--cloudevents").exit_code == 2
    assert run("--asyncapi", "--codec", f"A={HERE}:codec", "--codec", f"A={HERE}:other").exit_code == 2


MODULE = """from dataclasses import dataclass
from epochal import json_codec

@dataclass
class Lent:
    book: str

codec = json_codec(Lent)
"""


@pytest.mark.parametrize("place", [".", "service"])
def test_a_module_of_the_current_directory_is_found_and_one_of_its_folders_named(
    place: str, tmp_path: Path
) -> None:
    (tmp_path / place).mkdir(exist_ok=True)
    (tmp_path / place / "lending_of_mine.py").write_text(MODULE)
    command = [str(Path(sys.executable).with_name("epochal")), "schema", "--codec", "lending_of_mine:codec"]
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ran = subprocess.run(command, cwd=tmp_path, env=bare, capture_output=True, text=True, check=False)
    if place == ".":
        assert "Lent" in ran.stdout, ran.stderr
    else:
        told = "there is no module lending_of_mine in the current directory, but there is one in service: "
        assert f"{told}set PYTHONPATH=service" in ran.stderr
        mended = {**bare, "PYTHONPATH": "service"}
        ran = subprocess.run(command, cwd=tmp_path, env=mended, capture_output=True, text=True, check=False)
        assert "Lent" in ran.stdout, ran.stderr
