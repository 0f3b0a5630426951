"""Objects that text names, written `module:name` or `module`.

Text names an object where no import statement can. A user's setting or option names code of the user, and the lists
`plugins.LAYOUTS` and `extensions.EXTENSIONS` name packages that may have been deleted. mypy does not check such text;
`tests/project/test_named_modules.py` resolves all of ours. Imports that only wait are statements (`deferred`).
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any


def load_object(place: str) -> Any:
    """Import the object at `module:name`, or a module."""
    module, _, name = place.partition(":")
    value = import_module(module)
    return getattr(value, name) if name else value


@cache
def is_installed(package: str) -> bool:
    """Return whether an optional package is there; it, or a package around it, may have been deleted."""
    from importlib.util import find_spec  # noqa: PLC0415  a function with no optional package starts without it

    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False
