"""What `make audit` makes of what pip-audit says; nobody is asked here."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.doors import audit

CLEAN = {"name": "boto3", "version": "1.43.106", "vulns": []}
KNOWN = {
    "name": "old",
    "version": "1.0",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.1"], "aliases": ["CVE-1"], "description": "bad"}],
}


def said(*dependencies: object) -> str:
    return json.dumps({"dependencies": dependencies, "fixes": []})


def test_an_audit_that_found_nothing_says_how_much_it_looked_at() -> None:
    assert audit.verdict(said(CLEAN, CLEAN), "", {"boto3"}) == (
        0,
        ["2 pinned packages, no known vulnerability"],
    )


def test_a_known_vulnerability_fails_and_names_the_version_that_is_free_of_it() -> None:
    assert audit.verdict(said(CLEAN, KNOWN), "", ()) == (1, ["old 1.0: PYSEC-1, fixed in 1.1"])


def test_what_was_not_looked_at_is_no_success() -> None:
    code, lines = audit.verdict(said(CLEAN, {"name": "odd", "skip_reason": "no version"}), "", ())
    assert (code, lines) == (1, ["odd: not audited, no version"])


@pytest.mark.parametrize("dependencies", [[], [{**CLEAN, "name": "Other"}]])
def test_an_answer_about_less_than_was_asked_is_no_success(dependencies: list[object]) -> None:
    code, lines = audit.verdict(said(*dependencies), "", {"boto3"})
    assert (code, lines) == (1, ["boto3: not audited, pip-audit said nothing of it"])


@pytest.mark.parametrize("output", ["", "no JSON", "[]", "{}", "null"])
def test_an_answer_that_is_none_is_no_success(output: str) -> None:
    assert audit.verdict(output, "out of reach", ())[0] == audit.UNREACHABLE


def test_what_is_installed_and_what_the_functions_layer_holds_is_audited() -> None:
    names = audit.pinned(audit.PINS)
    assert {"aws-cdk-lib", "pytest", "aws-lambda-powertools", "typing-extensions", "cryptography"} <= names
    assert {path.parent.name for path in audit.PINS} == {audit.PINS[0].parent.name, "vendor"}


@pytest.mark.slow
def test_an_audit_that_could_not_ask_says_so_and_is_no_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A proxy that nobody listens at stands for a machine without a network."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    pins = tmp_path / "pins.txt"
    pins.write_text("boto3==1.43.106\n")
    assert audit.main([pins]) == audit.UNREACHABLE
    assert "nothing was audited" in capsys.readouterr().err


def test_everything_that_is_installed_is_pinned_to_one_version() -> None:
    pins = [line for line in audit.PINS[0].read_text().splitlines() if not line.startswith("#")]
    assert pins
    assert not [line for line in pins if not re.fullmatch(r"[\w.\-]+==[\w.!+]+", line)]


@pytest.mark.parametrize(
    "name",
    [
        "requirements.txt",
        "requirements-dev.txt",
        "docs/requirements.txt",
        "examples/flights/requirements.txt",
    ],
)
def test_every_direct_dependency_says_what_it_is_for(name: str) -> None:
    lines = (audit.PINS[0].parent / name).read_text().splitlines()
    direct = [line for line in lines if re.match(r"[\w\[]", line)]
    assert direct
    assert not [line for line in direct if not re.fullmatch(r"[\w.,\-\[\]]+==[\w.]+ +# \S.*", line)]
