"""Answers with a JSON value, and their cost in capacity units."""

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
    """Build the response that carries a JSON value, with the request's cost among its metrics.

    Args:
        meter: meter of the request's cost.
        view: the JSON value.
        figures: further metrics of the request, by name.
    """
    figures = {**(figures or {}), **consumed(meter.units)}
    return Response(status=status, body=text_of(view), headers=headers or {}, figures=figures)


def appends(events: Sequence[object], *, replayed: bool) -> dict[str, float]:
    """Return the metrics of an append; empty where an earlier request has made it.

    Args:
        replayed: whether an earlier request has made the append.
    """
    return {} if replayed else {"Appends": 1.0, "Events": float(len(events))}


def consumed(units: Units) -> dict[str, float]:
    """Return the capacity units that a request used, as metrics."""
    return {"ReadUnits": units.read, "WriteUnits": units.write}


def text_of(value: Any) -> str:
    """Serialize a value as JSON text."""
    return json.dumps(value).decode()


def capacity(units: Units) -> dict[str, float]:
    """Return the capacity units that a request used, as the answer's `capacity` member."""
    return {"read": units.read, "write": units.write}
