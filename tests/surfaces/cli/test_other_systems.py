"""The command line on systems that are no Unix, and on consoles that know few characters."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from tests.support.other_systems import WINDOWS, command, run

ROOT = Path(__file__).resolve().parents[3]

ODD = "東京 😀 é\u0007"
"""Text with characters that cp1252 lacks, and one that a terminal would obey."""


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--version", "--help"])
def test_the_command_starts_without_the_modules_of_unix(option: str) -> None:
    done = run(f"{WINDOWS}\nfrom epochal.cli.main import main\nmain([{option!r}])")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"epochal" in done.stdout


@pytest.mark.slow
def test_every_command_is_there_without_the_modules_of_unix() -> None:
    code = """
import click
from epochal.cli.main import epochal

def walk(command, path):
    context = click.Context(command, info_name=path[-1])
    command.get_help(context)
    print(" ".join(path))
    for name, part in getattr(command, "commands", {}).items():
        walk(part, [*path, name])

walk(epochal, ["epochal"])
"""
    here, there = run(code), run(f"{WINDOWS}\n{code}")
    assert (there.returncode, there.stderr) == (0, b"")
    assert there.stdout == here.stdout
    assert len(there.stdout.splitlines()) > 80


@pytest.mark.slow
def test_events_are_appended_and_read_without_the_modules_of_unix() -> None:
    before = "store.streams.append('Order-1', [Event(type='Opened')])"
    for arguments in (
        ["append", "Order-1", "--events", '[{"type":"Placed","data":{"city":"東京"}}]'],
        ["read", "Order-1", "--json"],
        ["read", "Order-1"],
    ):
        done = run(f"{WINDOWS}\n{command(*arguments, before=before)}", encoding="cp1252")
        assert (done.returncode, done.stderr) == (0, b""), arguments


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "ascii", "utf-8"])
def test_json_is_utf_8_whatever_the_consoles_encoding(encoding: str) -> None:
    append = f"store.streams.append('Odd-1', [Event.json({ODD!r}, {{'city': {ODD!r}}})])"
    done = run(command("read", "Odd-1", "--json", before=append), encoding=encoding)
    assert (done.returncode, done.stderr) == (0, b"")
    (line,) = done.stdout.decode("utf-8").splitlines()
    shown = json.loads(line)
    assert (shown["type"], shown["data"]) == (ODD, {"city": ODD})


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "utf-8"])
def test_lines_for_people_have_escapes_for_characters_that_the_console_lacks(encoding: str) -> None:
    append = f"store.streams.append('Odd-1', [Event.json('Moved', {{'city': {ODD!r}}})])"
    done = run(command("read", "Odd-1", before=append), encoding=encoding)
    assert (done.returncode, done.stderr) == (0, b"")
    shown = done.stdout.decode(encoding)
    assert ("東京" in shown) == (encoding == "utf-8")
    assert ("\\u6771\\u4eac" in shown) == (encoding != "utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["cp1252", "latin-1"])
def test_an_error_has_escapes_for_characters_that_the_console_lacks(encoding: str) -> None:
    done = run(command("react", "東京:board"), encoding=encoding)
    assert done.returncode == 1
    assert done.stdout == b""
    assert "\\u6771\\u4eac" in done.stderr.decode(encoding)
    assert "Traceback" not in done.stderr.decode(encoding)


@pytest.mark.slow
def test_events_on_standard_input_are_utf_8_whatever_the_consoles_encoding() -> None:
    events = json.dumps([{"type": "Moved", "data": {"city": "東京"}}], ensure_ascii=False).encode()
    ends = "atexit.register(lambda: print(next(store.streams.read('Odd-1')).json() == {'city': '東京'}))"
    code = command("append", "Odd-1", "--events", "-", before=f"import atexit\n{ends}")
    done = run(code, encoding="cp1252", stdin=events)
    assert done.stderr == b""
    assert done.stdout.decode("cp1252").splitlines()[-1] == "True"


def test_files_of_text_are_opened_with_an_encoding() -> None:
    """Without one Python takes that of the system, which is cp1252 on Windows."""
    offenders = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / "layers/epochal/python/epochal").rglob("*.py"))
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if ".read_text()" in line or (".write_text(" in line and "utf-8" not in line)
    ]
    assert offenders == []


def test_the_metadata_say_which_systems_are_supported() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    systems = {line for line in project["classifiers"] if line.startswith("Operating System")}
    assert systems == {
        "Operating System :: POSIX :: Linux",
        "Operating System :: MacOS",
        "Operating System :: Microsoft :: Windows",
    }
