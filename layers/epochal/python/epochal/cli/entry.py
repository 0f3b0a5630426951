"""What the console script calls: the command, for whoever has what it takes.

Importing it takes a second, and needs the extra `cli`. Whoever has installed the library alone has the script all the
same, and hears what is missing; whoever presses Ctrl-C meanwhile sees no trace of it.
"""

from __future__ import annotations

import sys
from importlib import import_module

EXTRA = ("click", "rich")


def run() -> None:
    """Import the command and run it."""
    try:
        command = import_module("epochal.cli.main")
    except ModuleNotFoundError as error:
        if error.name not in EXTRA:
            raise
        sys.exit(
            f"epochal: the command line needs {error.name}, which the extra brings: pip install 'epochal[cli]'"
        )
    except KeyboardInterrupt:
        sys.exit(130)
    command.main()
