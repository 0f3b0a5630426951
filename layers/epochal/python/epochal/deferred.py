"""Imports that wait until what they name is used, so that a function does not pay for what it does not use.

An import stands at the top of its module. There are three exceptions, and mypy checks what each of them names:

1. A function that is rarely called, or needs an optional dependency, imports what it needs by a statement in its body.
   The comment says why:

       from epochal.dynamo.clients import s3_client  # noqa: PLC0415  most programs never have a body that large

2. A record that holds a function of a module that must not be loaded yet holds it through `DeferredModule`. Type
   checkers see the module itself:

       if TYPE_CHECKING:
           from epochal.http import streams
       else:
           streams = DeferredModule("epochal.http.streams")

       UPLOAD = Operation("POST", "/bodies", streams.upload_body, opened=streams.opened, …)

   It is never in the `__init__` of a package, where it would hide a module of the package.

3. A package resolves the names that it offers when they are first used. Type checkers see imports:

       if TYPE_CHECKING:
           from epochal.store.streams import Streams as Streams

       __getattr__ = deferred_names(__name__, {"store.streams": ("Streams",)})

A test compares what type checkers see in 2 and 3 with what runs (`tests/project/test_deferred.py`). Text that
names an object, such as a user's setting, is no deferred import: see `named_objects`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


class DeferredFunction:
    """A function of a module that is imported at the first call.

    Its `__module__` and `__name__` are those of the function.
    """

    def __init__(self, module: str, name: str) -> None:
        self.__module__ = module
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Import the module and call the function."""
        return self.load()(*args, **kwargs)

    def load(self) -> Callable[..., Any]:
        """Import the module and return the function itself."""
        function: Callable[..., Any] = getattr(import_module(self.__module__), self.__name__)
        return function


class DeferredModule:
    """A module whose attributes are its functions, and which is imported when one of them is called."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> DeferredFunction:
        """Return the function of that name, the same object each time, so that records that hold it are equal."""
        if name.startswith("__"):
            raise AttributeError(name)
        function = vars(self)[name] = DeferredFunction(self._name, name)
        return function


def loaded_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function itself, where it may be deferred."""
    return function.load() if isinstance(function, DeferredFunction) else function


def deferred_names(package: str, names: Mapping[str, Iterable[str]]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package whose names are imported when they are first used.

    Args:
        package: name of the package.
        names: names that the package offers, by the module below it that defines them.
    """
    modules = {name: module for module, defined in names.items() for name in defined}

    def resolve(name: str) -> Any:
        """Import a name of the package from the module that defines it."""
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{modules[name]}"), name)

    return resolve
