"""Dataclasses whose methods are written when they are first called.

`dataclasses` compiles up to six methods of each class, which takes more than half of the time that importing this
library would take; a process makes objects of a third of its classes. So a class gets its `__init__` with its first
object, and the rest without a compiler. `replace` is compiled, too: it takes a tenth of the time of the one of
`dataclasses`. All else is as there, and done by it, as is all of a class that is ordered. `InitVar`,
`unsafe_hash` and a field's `hash` are not served.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, asdict, field, fields
from operator import attrgetter
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, Final

__all__ = ["asdict", "dataclass", "field", "fields", "replace"]

_OURS: Final[set[type]] = set()
"""Classes whose `__init__` is compiled by this module."""

_COPYING: Final[dict[type, Callable[..., Any]]] = {}
_DEFAULT: Final = object()

_SPECIAL: Final = ("ClassVar", "InitVar", "KW_ONLY")
"""Annotations of names that are no fields."""


def _dataclass(
    cls: type | None = None,
    /,
    *,
    eq: bool = True,
    order: bool = False,
    frozen: bool = False,
    slots: bool = False,
    kw_only: bool = False,
) -> Any:
    """Make a class a dataclass like `dataclasses.dataclass`, but compile its `__init__` at the first use."""

    def decorate(cls: type) -> type:
        """Make a class a dataclass whose `__init__` is compiled when it is first needed."""
        if order:
            return dataclasses.dataclass(eq=eq, order=True, frozen=frozen, slots=slots, kw_only=kw_only)(cls)
        own = {name: value for name, value in vars(cls).items() if value is not None}
        inherits = hasattr(cls, "__dataclass_fields__")
        cls.__doc__ = cls.__doc__ or cls.__name__  # or `dataclasses` asks for the signature
        decorate = dataclasses.dataclass(
            init=False, repr=False, eq=False, frozen=frozen and inherits, slots=slots, kw_only=kw_only
        )
        decorated = _with_fields(cls, decorate)
        about = decorated.__dataclass_params__
        about.init, about.repr, about.eq, about.frozen = True, True, eq, frozen
        methods: dict[str, Any] = {"__init__": _Init(decorated, frozen=frozen), "__repr__": _repr}
        if eq:
            methods |= _by_values(decorated)
        if frozen and not inherits:
            methods |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
            if slots:
                methods |= {"__getstate__": _state, "__setstate__": _set_state}
        for name, method in methods.items():
            if name not in own:
                setattr(decorated, name, method)
        if eq and not frozen and "__hash__" not in own:
            decorated.__hash__ = None
        if "__init__" not in own:
            _OURS.add(decorated)
        return decorated  # type: ignore[no-any-return]

    return decorate if cls is None else decorate(cls)


def _with_fields(cls: type, decorate: Callable[[type], type]) -> Any:
    """Return what a decorator of `dataclasses` makes of a class, its annotations and fields typed as declared.

    The decorator compares every annotation that is text with `ClassVar`, `InitVar` and `KW_ONLY`, which takes a third
    of its time. So while it runs, each annotation that contains none of these names is replaced by `object`.
    """
    annotations = cls.__annotations__
    types = {name: type_ for name, type_ in annotations.items() if not _may_be_special(type_)}
    annotations.update(dict.fromkeys(types, object))
    try:
        decorated: Any = decorate(cls)
    finally:
        annotations.update(types)
    for name, type_ in types.items():
        decorated.__dataclass_fields__[name].type = type_
    return decorated


def _may_be_special(annotation: object) -> bool:
    """Return whether an annotation may say that a name is no field."""
    return not isinstance(annotation, str) or any(name in annotation for name in _SPECIAL)


class _Init:
    """A stand-in for the `__init__` of a class, which compiles the method when it is first looked up."""

    def __init__(self, cls: type, *, frozen: bool) -> None:
        self._of = cls
        self._frozen = frozen

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        init = _init(self._of, frozen=self._frozen)
        self._of.__init__ = init  # type: ignore[misc]
        return init.__get__(instance, owner)


def _init(cls: type, *, frozen: bool) -> Any:
    """Compile and return the `__init__` of a dataclass, from its fields and their defaults.

    Args:
        frozen: whether fields are set past the class's own `__setattr__`.
    """
    names: dict[str, Any] = {"_default": _DEFAULT, "_set": object.__setattr__}
    positional, keyword_only, body = list[str](), ["*"], list[str]()
    for field_ in fields(cls):
        name = value = field_.name
        default = ""
        if field_.default_factory is not MISSING:
            names[f"_new_{name}"], default = field_.default_factory, "=_default"
            value = f"_new_{name}() if {name} is _default else {name}" if field_.init else f"_new_{name}()"
        elif field_.default is not MISSING:
            names[f"_default_{name}"], default = field_.default, f"=_default_{name}"
            value = name if field_.init else f"_default_{name}"
        if field_.init:
            (keyword_only if field_.kw_only else positional).append(f"{name}{default}")
        if field_.init or default:
            body.append(_assigned(cls, name, value, names) if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = ", ".join(["self", *positional, *(keyword_only if len(keyword_only) > 1 else ())])
    init = _compiled(cls, parameters, body or ["pass"], names)
    init.__annotations__ = {field_.name: field_.type for field_ in fields(cls) if field_.init} | {
        "return": None
    }
    return init


def _assigned(cls: type, name: str, value: str, names: dict[str, Any]) -> str:
    """Return the statement that sets a field of a frozen class, by the setter of its slot if possible.

    The setter of a slot is the fastest way.
    """
    if _is_slot(cls, name):
        names[f"_set_{name}"] = getattr(cls, name).__set__
        return f"_set_{name}(self, {value})"
    return f"_set(self, {name!r}, {value})"


def _is_slot(cls: type, name: str) -> bool:
    return isinstance(getattr(cls, name, None), MemberDescriptorType)


def _compiled(cls: type, parameters: str, body: list[str], names: dict[str, Any]) -> Callable[..., Any]:
    """Compile and return a function in a class's module; `names` are those that its body may use.

    The function's name is `__init__`, so that errors of calls name `__init__`.
    """
    statements = "".join(f"\n  {statement}" for statement in body)
    text = f"def _made({', '.join(names)}):\n def __init__({parameters}):{statements}\n return __init__"
    module, namespace = sys.modules.get(cls.__module__), dict[str, Any]()
    exec(text, vars(module) if module else {}, namespace)  # noqa: S102  names of fields, as `dataclasses` does
    function = namespace["_made"](**names)
    function.__qualname__ = f"{cls.__qualname__}.__init__"
    return function  # type: ignore[no-any-return]


def _by_values(cls: type) -> dict[str, Any]:
    """Return `__eq__` and `__hash__` for a class, by name, made from its fields that are compared."""
    names = [field_.name for field_ in fields(cls) if field_.compare]
    values: Callable[[Any], Any] = attrgetter(*names) if len(names) > 1 else _few(names)

    def __eq__(self: Any, other: object) -> Any:  # noqa: N807
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: Any) -> int:  # noqa: N807
        return hash(values(self))

    return {"__eq__": __eq__, "__hash__": __hash__}


def _few(names: list[str]) -> Callable[[Any], Any]:
    """Make a function that returns a tuple of no or one attribute, where `attrgetter` gives no tuple."""
    return lambda instance: tuple(getattr(instance, name) for name in names)


@recursive_repr()
def _repr(self: Any) -> str:
    """Return the representation of a dataclass object."""
    shown = ", ".join(
        f"{field_.name}={getattr(self, field_.name)!r}" for field_ in fields(self) if field_.repr
    )
    return f"{self.__class__.__qualname__}({shown})"


def _refuse_to_set(self: Any, name: str, value: object) -> None:
    _refuse(self, name, "assign to")
    object.__setattr__(self, name, value)


def _refuse_to_delete(self: Any, name: str) -> None:
    _refuse(self, name, "delete")
    object.__delattr__(self, name)


def _refuse(self: Any, name: str, to: str) -> None:
    """Raise `FrozenInstanceError` for a field of a frozen class.

    A class derived from a frozen one may set attributes that are not fields.
    """
    if name in self.__dataclass_fields__ or "__dataclass_fields__" in vars(self.__class__):
        raise FrozenInstanceError(f"cannot {to} field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, field_.name) for field_ in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field_, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, field_.name, value)


def _replace(instance: Any, /, **changes: Any) -> Any:
    """Return a copy of a dataclass object with some fields changed, as `dataclasses.replace`."""
    cls = instance.__class__
    copy = _COPYING.get(cls) or _COPYING.setdefault(cls, _copying(cls))
    return copy(instance, **changes)


def _copying(cls: type) -> Callable[..., Any]:
    """Return a function that copies a class's objects with changes: compiled, or `dataclasses.replace`.

    If the class has no slots but its fields, and no base, the fields are set on an object of a class with the same
    slots in which nothing is frozen, and then the object's class is changed: a field takes a quarter of the time so.
    """
    if cls not in _OURS:
        return dataclasses.replace
    parts = [field_.name for field_ in fields(cls) if field_.init]
    values = {name: f"_of.{name} if {name} is _default else {name}" for name in parts}
    namespace: dict[str, Any] = {"_default": _DEFAULT, "_cls": cls}
    if cls.__bases__ != (object,) or vars(cls).get("__slots__") != tuple(parts):
        body = [f"return _cls({', '.join(f'{name}={value}' for name, value in values.items())})"]
    else:
        namespace |= {"_open": type(cls.__name__, (), {"__slots__": parts})}
        sets = (f"_made.{name} = {value}" for name, value in values.items())
        checks = ["_made.__post_init__()"] if hasattr(cls, "__post_init__") else []
        body = ["_made = _open()", *sets, "_made.__class__ = _cls", *checks, "return _made"]
    parameters = ["_of", "/", *(["*"] if parts else []), *(f"{name}=_default" for name in parts)]
    return _compiled(cls, ", ".join(parameters), body, namespace)


if TYPE_CHECKING:
    from dataclasses import dataclass, replace
else:
    dataclass, replace = _dataclass, _replace
