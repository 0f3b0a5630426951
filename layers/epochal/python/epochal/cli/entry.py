"""What the console script calls: the command, where its extra is installed.

Importing the command takes a second, and needs the extra `cli`. The library alone installs the script, too, which then
says what is missing; Ctrl-C meanwhile shows no trace.
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
