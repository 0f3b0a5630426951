"""Writes conditions and updates in DynamoDB's expression language.

Every name and value goes through a placeholder, so no stored name can collide with a reserved word, and no value is
ever part of an expression's text.
"""

from __future__ import annotations

from typing import Any

from epochal.plan import ops
from epochal.plan.conditions import Absent, All, AnyOf, BeginsWith, Compare, Condition, Not, Present
from epochal.plan.values import AttributeValue, text


class Expressions:
    """Writes the expressions of one request, and collects their placeholders."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: dict[str, AttributeValue] = {}

    def parameters(self) -> dict[str, Any]:
        """Return the request parameters `ExpressionAttributeNames` and `...Values`, omitted if empty."""
        names = {mark: name for name, mark in self._names.items()}
        placeholders = {"ExpressionAttributeNames": names, "ExpressionAttributeValues": self._values}
        return {name: marks for name, marks in placeholders.items() if marks}

    def condition(self, condition: Condition) -> str:
        """Return a condition as DynamoDB's expression text, with placeholders for names and values."""
        match condition:
            case Compare(name, operator, value):
                return f"{self.name(name)} {operator} {self.value(value)}"
            case Absent(name):
                return f"attribute_not_exists({self.name(name)})"
            case All(conditions):
                return self._combine(" AND ", conditions)
            case AnyOf(conditions):
                return self._combine(" OR ", conditions)
            case Present(name):
                return f"attribute_exists({self.name(name)})"
            case BeginsWith(name, prefix):
                return f"begins_with({self.name(name)}, {self.value(text(prefix))})"
            case Not(compared):
                return f"NOT ({self.condition(compared)})"

    def update(self, update: ops.Update) -> str:
        """Return an update's sets and removes as the text of DynamoDB's update expression."""
        text = (
            "SET " + ", ".join([self._write_change(change) for change in update.sets]) if update.sets else ""
        )
        if update.removes:
            text += " REMOVE " + ", ".join([self.name(name) for name in update.removes])
        return text.strip()

    def name(self, name: str) -> str:
        """Return the placeholder of an attribute name."""
        return self._names.setdefault(name, f"#{len(self._names)}")

    def value(self, value: AttributeValue) -> str:
        """Return a new placeholder for a value."""
        mark = f":{len(self._values)}"
        self._values[mark] = value
        return mark

    def _combine(self, operator: str, conditions: tuple[Condition, ...]) -> str:
        """Return conditions as one; a single one without parentheses, which DynamoDB refuses as redundant."""
        texts = [self.condition(condition) for condition in conditions]
        return texts[0] if len(texts) == 1 else operator.join([f"({text})" for text in texts])

    def _write_change(self, change: ops.Change) -> str:
        """Return the expression for one change of an update: set an attribute, add to a number, extend a list."""
        name = self.name(change.name)
        if isinstance(change, ops.Set):
            return f"{name} = {self.value(change.value)}"
        if isinstance(change, ops.Add):
            present = f"if_not_exists({name}, {self.value({'N': '0'})})"
            return f"{name} = {present} + {self.value(change.value)}"
        present = f"if_not_exists({name}, {self.value({'L': []})})"
        return f"{name} = list_append({present}, {self.value(change.value)})"
