"""The reference of the constructs, made of their signatures, docstrings and rules.

python -m tests.docs.constructs_page        writes docs/reference/constructs.md
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FunctionType
from typing import Any, Final

from epochal.cdk import EventStore, Network, Reaction, Store
from epochal.cdk.arguments import RULES_OF
from epochal.cdk.rules import Rule
from epochal.cdk.stages import RULES, STAGES
from epochal.cdk.store_options import StoreOptions
from epochal.contrib.lake.cdk import Lake
from epochal.contrib.processes.cdk import Process
from epochal.contrib.publish.cdk import Publish, Webhook
from epochal.contrib.subjects.cdk import SubjectKeys
from epochal.contrib.timers.cdk import Timers

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "reference" / "constructs.md"

CONSTRUCTS: Final = (EventStore, Reaction, Process, Publish, Webhook, Lake, SubjectKeys, Network)
"""Public classes that an app makes, in the order of the page."""

GUIDES: Final[Mapping[type, str]] = {
    EventStore: "[The guide](../guide/your-own-app.md#a-store-and-a-reaction) has an example.",
    Reaction: "[The guide](../guide/reactions.md#deploying) has an example.",
    Process: "[The guide](../guide/processes.md#deploying) has an example.",
    Publish: "[The guide](../guide/your-own-app.md#events-for-others) has examples.",
    Webhook: "[The guide](../guide/your-own-app.md#webhooks-with-secrets) has an example.",
    Lake: "[The guide](../guide/lake.md) has an example.",
    SubjectKeys: "[The guide](../guide/forgetting.md#in-a-stack) has an example.",
    Timers: "[The guide](../guide/timers.md) has examples.",
}

HEAD: Final = """# Constructs

Every construct for [an app of your own](../guide/your-own-app.md), with all its arguments. They need
`pip install 'epochal[cdk]'`. The names of arguments are those of [`cdk.json`](../deploy.md#stages).
All arguments but `scope` and `id_` are given by name.

A wrong name, a wrong type or a value outside its limits raises `BadSetting` before anything is made, such as
`Reaction.timeout_seconds must be a whole number from 10 to 900, not '60'`. The app prints this and its own lines that
led to it, without a stack trace, and `cdk synth` and `epochal local up` show what the app prints.
"""

TIMERS: Final = """`EventStore(…, timers=True)` makes it; an app does not make it itself."""

_HELD: Final = re.compile(r"must be (.*), not <object")


def page() -> str:
    """The text of the page."""
    sections = ["\n".join(_construct(construct)) for construct in CONSTRUCTS]
    timers = [f"## Timers\n\n{_words(Timers)}\n\n{TIMERS} {GUIDES[Timers]}\n", *_attributes(Timers)]
    return "\n".join([HEAD, *sections, "\n".join(timers)]).rstrip() + "\n"


def arguments_of(function: Any) -> dict[str, str]:
    """What the docstring of a function says of each argument."""
    return _described(inspect.getdoc(function) or "", "Args")


def _construct(construct: type) -> Iterator[str]:
    """The lines of a construct."""
    yield f"## {construct.__name__}\n\n{_words(construct)}\n"
    yield (
        f"`from {_module(construct)} import {construct.__name__}`. {GUIDES.get(construct, '')}".rstrip()
        + "\n"
    )
    described = arguments_of(construct.__init__) or _described(inspect.getdoc(construct) or "", "Attributes")
    yield from _arguments(construct, described)
    if construct is EventStore:
        yield "### Settings of a store\n\nThese are further arguments of `EventStore`.\n"
        yield from _settings(described)
    if construct is not Network:
        yield from _attributes(construct)
    yield from _methods(construct)
    raised = _described(inspect.getdoc(construct.__init__) or "", "Raises")
    if raised:
        yield "**Errors**\n"
        yield from (f"- `{name}`: {words}" for name, words in raised.items())
        yield ""


def _module(construct: type) -> str:
    """The module that an app imports a construct from."""
    return "epochal.cdk" if construct in (EventStore, Reaction, Network) else construct.__module__


def _words(construct: Any) -> str:
    """What a docstring says before its sections, on a line for each paragraph."""
    text = re.split(r"\n\n(?:Attributes|Args|Raises):\n", inspect.getdoc(construct) or "")[0]
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _described(text: str, section: str) -> dict[str, str]:
    """The entries of a section of a docstring by name; `a, b: text` describes both."""
    found = re.search(rf"^{section}:\n((?:    .*\n?|\n(?=    ))*)", text, re.MULTILINE)
    entries = re.split(r"^    (?=\S)", found[1], flags=re.MULTILINE)[1:] if found else []
    split = (" ".join(entry.split()).partition(": ") for entry in entries)
    return {name: words for names, _, words in split for name in names.split(", ")}


def _arguments(construct: Any, described: Mapping[str, str]) -> Iterator[str]:
    """A table of the arguments of a construct."""
    rules = RULES_OF.get(construct.__name__, {})
    yield "| Argument | Type | Default | Meaning | Limits |\n|---|---|---|---|---|"
    for parameter in [*inspect.signature(construct.__init__).parameters.values()][1:]:
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        default = "required" if parameter.default is inspect.Parameter.empty else _value(parameter.default)
        limits = _limits(rules.get(parameter.name))
        cells = (
            f"`{parameter.name}`",
            _code(parameter.annotation),
            default,
            described[parameter.name],
            limits,
        )
        yield f"| {' | '.join(_cell(cell) for cell in cells)} |"
    yield ""


def _settings(described: Mapping[str, str]) -> Iterator[str]:
    """A table of the settings of a store, whose defaults are those of the preset."""
    yield "| Setting | Type | Default | Meaning | Limits |\n|---|---|---|---|---|"
    for name in sorted(StoreOptions.__annotations__):
        annotation = StoreOptions.__annotations__[name].__forward_arg__
        cells = (
            f"`{name}`",
            _code(annotation),
            _by_preset(name),
            described[name],
            _limits(RULES[name]),
        )
        yield f"| {' | '.join(_cell(cell) for cell in cells)} |"
    yield ""


def _by_preset(name: str) -> str:
    """The default of a setting in each preset, or in all if it is the same."""
    if name == "layouts":
        return "`['pages']`"
    if name.startswith("existing_"):
        return "none"
    defaults = {preset: _value(_default(stage, name)) for preset, stage in STAGES.items()}
    if len(set(defaults.values())) == 1:
        return defaults["dev"]
    return ", ".join(f"{preset} {value}" for preset, value in defaults.items())


def _default(stage: Any, name: str) -> Any:
    """The value of a setting in a preset."""
    if hasattr(stage, name):
        return getattr(stage, name)
    from epochal.cdk.stage_rules import OF_LAYOUTS  # noqa: PLC0415  settings of layouts alone

    return stage.of_layouts.get(name, OF_LAYOUTS[name].default)


def _limits(rule: Rule | None) -> str:
    """What a rule admits, in the words of its error; empty where the type says it."""
    if rule is None:
        return ""
    try:
        rule(object())
    except ValueError as error:
        held = _HELD.match(str(error))
        words = held[1] if held else ""
        return "" if words in ("true or false", "text", "a list", "an object") else words
    return ""


def _attributes(construct: type) -> Iterator[str]:
    """A list of the attributes of a construct, with those of the library's classes that it extends."""
    classes = [one for one in construct.__mro__ if one.__module__.startswith("epochal.")]
    described = {
        name: words
        for one in reversed(classes)
        for name, words in _described(inspect.getdoc(one) or "", "Attributes").items()
        if one.__doc__
    }
    if described:
        yield "**Attributes**\n"
        yield from (f"- `{name}`: {words}" for name, words in described.items())
        yield ""


def _methods(construct: type) -> Iterator[str]:
    """The public methods of a construct, each with its arguments."""
    classes = [one for one in construct.__mro__ if one.__module__.startswith("epochal.") and one is not Store]
    names = [name for one in (*reversed(classes), Store) if issubclass(construct, one) for name in vars(one)]
    for name in dict.fromkeys(names):
        method = getattr(construct, name)
        plain = getattr(method, "__func__", method)
        if name.startswith("_") or not isinstance(plain, FunctionType):
            continue
        signature = inspect.signature(method)
        given = [one for one in signature.parameters if one != "self"]
        yield f"### {construct.__name__}.{name}\n\n`{name}({', '.join(given)})`: {_words(method)}\n"
        yield from (f"- `{one}`: {words}" for one, words in arguments_of(method).items())
        yield ""


def _code(annotation: str) -> str:
    """A type as code."""
    return f"`{annotation}`"


def _value(value: object) -> str:
    """A default as Python writes it."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return "none" if not value else f"`{dict(value)}`"
    return "none" if value in ("", ()) else f"`{value!r}`"


def _cell(text: str) -> str:
    """Text as a table holds it."""
    return text.replace("|", "\\|")


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
