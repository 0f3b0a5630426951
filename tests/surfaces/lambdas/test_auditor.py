"""The auditor's function starts without what only findings and mappings need."""

from __future__ import annotations

import pytest

from tests.surfaces.lambdas.test_api_handlers import NOT_ON_THE_WAY, in_a_fresh_process

STARTED = f"""
import gc, handler, json, sys
heavy = sorted(set(sys.modules) & set({NOT_ON_THE_WAY!r}))
print(json.dumps([heavy, gc.isenabled()]))
"""


@pytest.mark.slow
def test_the_auditor_starts_without_botocore_and_powertools() -> None:
    tables = {"EPOCHAL_STREAMS_TABLE": "streams", "EPOCHAL_INDEX_TABLE": "index"}
    assert in_a_fresh_process("auditor", STARTED, HOME="/nowhere", **tables) == [[], True]
