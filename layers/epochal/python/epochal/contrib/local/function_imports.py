"""In the Python of functions on the embedded AWS (`serve`): the handler's module is imported as Lambda imports it.

ministack tells of an import that fails by the words of the error alone, and logs nothing. Lambda says which module
could not be imported, and its log has the trace. So here a handler whose module fails is one that raises: what a
handler raises is answered, and is in the log.

And the function's own code comes before its layers on the path, where ministack has it after them.
"""

from __future__ import annotations

import importlib
import os
import sys

TYPE_CHECKING = (
    False  # every function starts with this module: `typing` and `pathlib` would take 20 ms of that
)
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, NoReturn

_import_module = importlib.import_module


class _Module:
    """Placeholder for a handler's module, which it imports when ministack takes the handler from it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, handler: str) -> Any:
        """Import the module and return its handler; if the import fails, a handler that raises the error."""
        try:
            return getattr(_import_module(self._name), handler)
        except ImportError as error:
            failure: Exception = ImportError(f"Unable to import module {self._name!r}: {error}")
            failure.__cause__ = error
        except Exception as error:  # noqa: BLE001  # whatever a user's module raises
            failure = error

        def fail(_event: object, _context: object) -> NoReturn:
            raise failure

        return fail


def _import_for_ministack(name: str, package: str | None = None) -> ModuleType | _Module:
    """Import and return a module; for the handler's, a placeholder, and put its code first on the path.

    Imports of other modules are ordinary ones.
    """
    if sys._getframe(1).f_globals.get("__name__") != "__main__":  # noqa: SLF001  # what botocore imports, for instance
        return _import_module(name, package)
    importlib.import_module = _import_module
    if task := os.environ.get("LAMBDA_TASK_ROOT"):
        sys.path.insert(0, task)
    return _Module(name)


if os.path.basename(sys.orig_argv[-1]) == "_worker.py":  # noqa: PTH119  # ministack's, and not a program that a function starts
    importlib.import_module = _import_for_ministack  # type: ignore[assignment]
