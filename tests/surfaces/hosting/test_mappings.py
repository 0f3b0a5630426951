"""Mappings that bring nothing are found by asking: they have no metric."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from epochal.errors import Refused
from epochal.hosting.services import disabled


class Lambda:
    """A client that knows mappings by their states."""

    def __init__(self, **states: str) -> None:
        self.states = states

    def get_event_source_mapping(self, *, UUID: str) -> dict[str, Any]:  # noqa: N803  boto3's
        if UUID not in self.states:
            raise ClientError({"Error": {"Code": "ResourceNotFoundException"}}, "GetEventSourceMapping")
        if self.states[UUID] == "?":
            raise ClientError({"Error": {"Code": "AccessDeniedException"}}, "GetEventSourceMapping")
        return {"State": self.states[UUID]}


def test_a_mapping_that_is_disabled_or_gone_is_told_and_one_that_changes_is_not() -> None:
    client = Lambda(tips="Enabled", tags="Disabled", index="Updating", journal="Disabling", new="Creating")
    assert disabled(client, ["tips", "tags", "index", "gone", "journal", "new"]) == [  # type: ignore[arg-type]
        "tags",
        "gone",
        "journal",
    ]


def test_a_client_that_may_not_ask_is_no_answer() -> None:
    with pytest.raises(Refused):
        disabled(Lambda(tips="?"), ["tips"])  # type: ignore[arg-type]
