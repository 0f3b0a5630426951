"""The command line `epochal`: look into a store and write to it, on AWS or on the embedded one.

main        the command itself: options that say which store, and errors in one line; completion, console
target      finding the store: named tables, a stack's outputs, or what `epochal local up` deployed
inputs      JSON from arguments, files and standard input; expected versions; refusals
output      events, states and pages as JSON and as lines, printed
index       index status, verify, repair, rebuild; index poison list, retry, discard
feed        feed, tail, streams, search, trace, watch
react       react; parked list, replay, discard

What else there is, is called as its commands are: streams, tagged, projections, stats, importing, prove, local, new.
"""

from __future__ import annotations

import sys

EXTRA = ("click", "rich")


def run() -> None:
    """Import the command and run it: what the console script calls.

    Importing it takes a second, and needs the extra `cli`. The library alone installs the script, too, which then says
    what is missing; Ctrl-C meanwhile shows no trace.
    """
    try:
        from epochal.cli.main import main  # noqa: PLC0415  takes a second, and needs the extra
    except ModuleNotFoundError as error:
        if error.name not in EXTRA:
            raise
        sys.exit(
            f"epochal: the command line needs {error.name}, which the extra brings: pip install 'epochal[cli]'"
        )
    except KeyboardInterrupt:
        sys.exit(130)
    main()
