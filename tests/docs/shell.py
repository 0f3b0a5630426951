"""The shell examples of a document, as far as they are loops over words, exported names and commands.

A command of the AWS command line becomes the request that it makes: its options are held to the service's own model, so
one that is misspelt, missing or of another form is an error.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from botocore import xform_name
from botocore.model import ListShape, ServiceModel, Shape, StructureShape
from botocore.session import Session
from botocore.validate import ParamValidator

_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_EVALUATED = re.compile(r'^eval "\$\((.*)\)"', re.MULTILINE)
_LOOP = re.compile(r"^for (\w+) in ([^;\n]*); do\n(.*?)^done$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a command asks a service for."""

    service: str
    operation: str
    parameters: dict[str, Any]


def commands(document: Path) -> Iterator[list[str]]:
    """Every command of the document's shell examples, in their order, loops unrolled; of `eval`, what it evaluates."""
    for block in _BLOCK.findall(document.read_text("utf-8")):
        text = _EVALUATED.sub(r"\1", _LOOP.sub(_unrolled, block.replace("\\\n", " ")))
        yield from filter(None, (shlex.split(line, comments=True) for line in text.splitlines()))


def exported(document: Path) -> dict[str, str]:
    """The names that the document exports."""
    return dict(
        name.split("=", 1) for words in commands(document) if words[0] == "export" for name in words[1:]
    )


def request_of(command: list[str]) -> Request:
    """What `aws SERVICE OPERATION --option value …` asks for.

    Raises:
        AssertionError: the service has no such operation, or takes no such parameters.
    """
    _, service, name, *rest = command
    model = _model(service)
    operation = model.operation_model(next(each for each in model.operation_names if _dashed(each) == name))
    shapes = {_dashed(each): (each, shape) for each, shape in operation.input_shape.members.items()}
    parameters: dict[str, Any] = {}
    for option, values in _options(rest):
        assert option in shapes, f"{name} has no option --{option}"
        member, shape = shapes[option]
        parameters[member] = _value(shape, values)
    assert operation.input_shape is not None
    report = ParamValidator().validate(parameters, operation.input_shape)
    assert not report.has_errors(), report.generate_report()
    return Request(service=service, operation=xform_name(operation.name), parameters=parameters)


def _unrolled(loop: re.Match[str]) -> str:
    name, words, body = loop.groups()
    return "".join(re.sub(rf"\${name}\b", word, body) for word in words.split())


@cache
def _model(service: str) -> ServiceModel:
    return Session().get_service_model(service)


def _dashed(name: str) -> str:
    return xform_name(name, "-")


def _options(words: list[str]) -> Iterator[tuple[str, list[str]]]:
    starts = [at for at, word in enumerate(words) if word.startswith("--")]
    for at, following in zip(starts, [*starts[1:], len(words)], strict=True):
        yield words[at].removeprefix("--"), words[at + 1 : following]


def _value(shape: Shape, words: list[str]) -> Any:
    """A value in JSON, or in the command line's shorthand."""
    if words[0].startswith(("[", "{")):
        return json.loads(words[0])
    if isinstance(shape, ListShape):
        return [_value(shape.member, [word]) for word in words]
    (word,) = words
    if isinstance(shape, StructureShape):
        pairs = (pair.split("=", 1) for pair in word.split(","))
        return {name: _value(shape.members[name], [value]) for name, value in pairs}
    if shape.type_name == "boolean":
        return {"true": True, "false": False}[word]
    return int(word) if shape.type_name in ("integer", "long") else word
