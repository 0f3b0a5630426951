"""Words to write JSON schemas in."""

from epochal.http.shapes import (
    CAPACITY,
    Schema,
    array,
    base64,
    flag,
    moment,
    only_one,
    record,
    ref,
    text,
    whole,
)

__all__ = [
    "CAPACITY",
    "Schema",
    "array",
    "base64",
    "flag",
    "moment",
    "only_one",
    "record",
    "ref",
    "text",
    "whole",
]
