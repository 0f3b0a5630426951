"""What is wrong within a setting of cdk.json that is an object is said of the member, with the nearest name."""

from __future__ import annotations

from typing import Any

import pytest

from epochal.cdk.rules import BadSetting
from epochal.cdk.store_options import stage_of
from stacks.stages import stage_from

BOARD = {"entry": "reactions/board"}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"reactions": {"board": {**BOARD, "timeout": 60}}},
            "reactions.board.timeout is not a known member; did you mean timeout_seconds?",
        ),
        (
            {"reactions": {"board": {**BOARD, "allow": []}}},
            "reactions.board.allow is not a known member; known names are entry, handler, memory_mb, timeout_seconds, ",
        ),
        (
            {"reactions": {"board": {**BOARD, "memory_mb": 64}}},
            "reactions.board.memory_mb must be a whole number from 128 to 10,240, not 64",
        ),
        (
            {
                "reactions": {
                    "board": {**BOARD, "permissions": [{"actions": ["PutItem"], "resources": ["*"]}]}
                }
            },
            "reactions.board.permissions.0.actions must be an action such as dynamodb:PutItem, not 'PutItem'",
        ),
        ({"reactions": {"board": {}}}, "reactions.board must be an object with an entry, not {}"),
        (
            {"reserved_concurrency": {"apend": 5}},
            "reserved_concurrency.apend is not a known member; did you mean append?",
        ),
        (
            {"reserved_concurrency": {"append": "5"}},
            "reserved_concurrency.append must be a whole number from 1 to 100,000, not '5'",
        ),
        ({"tags": {"team": 4}}, "tags.team must be text of 1 to 256 characters, not 4"),
    ],
)
def test_the_member_is_named(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(BadSetting) as refused:
        stage_from("prod", {"prod": settings})
    assert str(refused.value).startswith(f"stages.prod.{words}")


def test_so_it_is_in_a_construct() -> None:
    with pytest.raises(BadSetting, match=r"EventStore\.route_limits\.GET /fed is not a known member; "):
        stage_of("shop", "dev", {"route_limits": {"GET /fed": 5}})
