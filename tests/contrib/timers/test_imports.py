"""The function that fires timers starts without what only late timers, failures and reactions need."""

from __future__ import annotations

import pytest

from tests.surfaces.lambdas.test_api_handlers import NOT_ON_THE_WAY, in_a_fresh_process

STARTED = f"""
import gc, handler, json, sys
not_needed = [*{NOT_ON_THE_WAY!r}, "epochal.reactions.reactor", "epochal.hosting.function"]
heavy = sorted(set(sys.modules) & set(not_needed))
print(json.dumps([heavy, gc.isenabled()]))
"""


@pytest.mark.slow
def test_the_function_that_fires_timers_starts_without_botocore_and_powertools() -> None:
    tables = {f"EPOCHAL_{name.upper()}_TABLE": name for name in ("streams", "index", "timers")}
    assert in_a_fresh_process("timers", STARTED, HOME="/nowhere", **tables) == [[], True]
