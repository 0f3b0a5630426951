"""Arguments of constructs, checked before anything is made.

A wrong argument would fail inside CDK or jsii, whose errors name neither the construct nor the rule. So each construct
declares a rule for each argument, and an argument that breaks its rule, is unknown or is missing raises `BadSetting`
with the names of the construct and the argument. Values that pass stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from inspect import Parameter, signature
from typing import Any, Final, TypeVar, cast

from constructs import Construct

from epochal.cdk.rules import BadSetting, Rule, a_text, bad_setting, list_alternatives, or_null, wrong
from epochal.cdk.uncaught import print_refusals

F = TypeVar("F", bound=Callable[..., Any])


def an_instance(class_: type | tuple[type, ...], words: str) -> Rule:
    """Make a rule that admits instances of the given class or classes.

    Args:
        words: the class in words, for errors.
    """

    def rule(value: object) -> object:
        if not isinstance(value, class_):
            raise wrong(words, value)
        return value

    return rule


def an_object_with(attribute: str, words: str) -> Rule:
    """Make a rule that admits objects with `attribute`, such as constructs behind an interface of CDK.

    Args:
        words: the interface in words, for errors.
    """

    def rule(value: object) -> object:
        if not hasattr(value, attribute):
            raise wrong(words, value)
        return value

    return rule


def a_sequence(element_rule: Rule, words: str) -> Rule:
    """Make a rule that admits sequences, but not text, whose elements obey `element_rule`.

    Args:
        words: the elements in words, for errors.
    """

    def rule(value: object) -> object:
        """Return the value if it is a sequence whose elements obey the other rule, or raise `ValueError`."""
        expected = f"a list of {words}"
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            raise wrong(expected, value)
        for element in value:
            try:
                element_rule(element)
            except ValueError:
                raise wrong(expected, element) from None
        return value

    return rule


def _an_environment(value: object) -> object:
    """Return a mapping of text to text, or raise `ValueError`."""
    if not isinstance(value, Mapping):
        raise wrong("an object", value)
    for element in (*value, *value.values()):
        TEXT(element)
    return value


TEXT: Final = a_text(r"(?s).+", "text")
ENVIRONMENT: Final = or_null(_an_environment)
NAMES: Final = or_null(a_sequence(TEXT, "names"))

_OF_ALL: Final[Mapping[str, Rule]] = {
    "scope": an_instance(Construct, "a stack, or a construct in it"),
    "id_": TEXT,
}
"""Rules of the arguments that every construct has."""


RULES_OF: Final[dict[str, Mapping[str, Rule]]] = {}
"""Rules of the arguments of each construct that is imported, by the construct's name; the reference shows them."""


def checked_arguments(
    construct: str, rules: Mapping[str, Rule], *, options: Collection[str] = ()
) -> Callable[[F], F]:
    """Record a construct's rules; return a decorator that checks the arguments of its method by them.

    Args:
        construct: name of the construct, for errors.
        rules: rules of arguments by name, besides those of `scope` and `id_`.
        options: names of further arguments, which the construct checks itself.
    """
    every_rule = RULES_OF[construct] = {**_OF_ALL, **rules}

    def decorate(function: F) -> F:
        """Return the function with a check of its arguments before each call."""
        parameters = dict([*signature(function).parameters.items()][1:])  # without self, or cls

        @wraps(function)
        def checked(this: Any, *positional: Any, **keywords: Any) -> Any:
            """Raise `BadSetting` for an unknown, missing or wrong argument; otherwise call the function."""
            print_refusals()
            values = {**_by_name(construct, parameters, positional), **keywords}
            _check_names(construct, parameters, values, options)
            for name, rule in every_rule.items():
                if name in values:
                    _check_value(f"{construct}.{name}", rule, values[name])
            return function(this, *positional, **keywords)

        return cast("F", checked)

    return decorate


def _by_name(
    construct: str, parameters: Mapping[str, Parameter], positional: Sequence[Any]
) -> dict[str, Any]:
    """Return the positional arguments by parameter name; raise `BadSetting` if there are too many."""
    names = [name for name, one in parameters.items() if one.kind is Parameter.POSITIONAL_OR_KEYWORD]
    if len(positional) > len(names):
        by_position = f"{' and '.join(names)} by position, and all others" if names else "all arguments"
        raise BadSetting(construct, f"takes {by_position} by name")
    return dict(zip(names, positional, strict=False))


def _check_names(
    construct: str, parameters: Mapping[str, Parameter], values: Collection[str], options: Collection[str]
) -> None:
    """Raise `BadSetting` if an argument is unknown, or missing."""
    own = [name for name, one in parameters.items() if one.kind is not Parameter.VAR_KEYWORD]
    for name in values:
        if name not in own and name not in options:
            alternatives = list_alternatives(name, [*own, *options])
            raise BadSetting(f"{construct}.{name}", f"is not an argument; {alternatives}")
    for name in own:
        if name not in values and parameters[name].default is Parameter.empty:
            raise BadSetting(f"{construct}.{name}", "must be given")


def _check_value(where: str, rule: Rule, value: object) -> None:
    """Raise `BadSetting` if a value breaks a rule."""
    try:
        rule(value)
    except ValueError as error:
        raise bad_setting(where, error) from None
