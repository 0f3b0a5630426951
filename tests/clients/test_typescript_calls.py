"""The client in TypeScript besides the cases of all clients: signals, bodies, options of decisions and of the feed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.clients.typescript import run

PROGRAM: Final = Path(__file__).with_name("typescript_calls.mjs")
CLAIMS: Final = re.findall(r'^  async "(.*)"\(\) \{$', PROGRAM.read_text("utf-8"), re.MULTILINE)


@pytest.fixture(scope="module")
def wrong(client: Path) -> Mapping[str, str | None]:
    """What is wrong with each claim of the program, which is None where it holds."""
    found: Mapping[str, str | None] = json.loads(run("node", PROGRAM, client))
    return found


def test_every_claim_is_tried(wrong: Mapping[str, str | None]) -> None:
    assert [*wrong] == CLAIMS
    assert len(CLAIMS) > 20


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_client_holds_a_claim(claim: str, wrong: Mapping[str, str | None]) -> None:
    assert wrong[claim] is None
