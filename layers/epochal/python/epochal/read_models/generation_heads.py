"""The head of a generation of a read model: its item that says with which keys the generation was built."""

from __future__ import annotations

from collections.abc import Mapping

from epochal.plan.values import AttributeValue, Item, mapping, number, text
from epochal.read_models.keys import DeclaredKey


def head_key(model: str) -> dict[str, AttributeValue]:
    """Return the key of a generation's head."""
    return {"pk": text(model), "sk": text("keys")}


def head_item(model: str, declared: Mapping[str, DeclaredKey]) -> Item:
    """Encode the head of a generation with these keys."""
    marks = {name: {"n": number(key.spread), "h": number(int(key.holds))} for name, key in declared.items()}
    return {**head_key(model), "k": mapping({name: mapping(mark) for name, mark in marks.items()})}


def read_head(item: Item) -> dict[str, DeclaredKey]:
    """Decode the keys in the head of a generation."""
    return {
        name: DeclaredKey(int(mark["M"]["n"]["N"]), mark["M"]["h"]["N"] == "1")
        for name, mark in item["k"]["M"].items()
    }
