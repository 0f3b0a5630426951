"""A stream's state with its events: a frame is decoded once, however many events it has."""

from __future__ import annotations

import pytest

from epochal.pages.frames import Frame
from tests.support.api import Api


@pytest.mark.parametrize(("appends", "events"), [(1, 1_000), (3, 100)])
def test_each_frame_of_a_head_is_decoded_once_for_all_its_events(
    monkeypatch: pytest.MonkeyPatch, appends: int, events: int
) -> None:
    api, decoded, decode = Api(), list[Frame](), Frame.events
    for _ in range(appends):
        assert api.append("Log-1", *["A"] * events).status == 201

    def counted(frame: Frame) -> object:
        decoded.append(frame)
        return decode(frame)

    monkeypatch.setattr(Frame, "events", counted)
    shown = api.call("GET", "/streams/Log-1", query="events=true").json["events"]
    assert [event["index"] for event in shown] == [*range(appends * events)]
    # Once for the outlines, and once for the bodies where a frame may be large, which is not kept beside others.
    assert len(decoded) <= 2 * appends
