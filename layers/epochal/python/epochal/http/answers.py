"""Answers with a JSON value, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from epochal.codec import json
from epochal.http.operation import Response
from epochal.plan.values import Units
from epochal.store.driver import Meter


def answer(
    meter: Meter,
    view: Any,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    figures: Mapping[str, float] | None = None,
) -> Response:
    """A JSON value as an answer; what it cost joins its figures."""
    figures = {**(figures or {}), **consumed(meter.units)}
    return Response(status=status, body=text_of(view), headers=headers or {}, figures=figures)


def appends(events: Sequence[object], *, replayed: bool) -> dict[str, float]:
    """Figures of an append of these events; none where an earlier request has made it."""
    return {} if replayed else {"Appends": 1.0, "Events": float(len(events))}


def consumed(units: Units) -> dict[str, float]:
    """What a request cost, as figures for its metrics."""
    return {"ReadUnits": units.read, "WriteUnits": units.write}


def text_of(value: Any) -> str:
    """A value as JSON text."""
    return json.dumps(value).decode()


def capacity(units: Units) -> dict[str, float]:
    """What a request cost, as an answer tells it."""
    return {"read": units.read, "write": units.write}
