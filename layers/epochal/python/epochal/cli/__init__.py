"""The command line `epochal`: look into a store and write to it, on AWS or on the embedded one.

main          the command itself: options that choose the store, and errors; completion, console
target        finds the store: named tables, a stack's outputs, or what `epochal local up` deployed
inputs        reads JSON from arguments, files and standard input; expected versions; refusals
output        prints events, states and pages, as JSON and as lines
appends       append, append-all, append-each
streams       read, state
removals      prune, delete
versions      versions
tagged        tagged append, query, event, read, tags, tag, count, import
feed          feed, newest, tail, wait
lookups       streams, search, trace
watch         watch
react         react
groups        groups list, show, pause, resume, reset, begin, delete
parked        parked list, show, replay, discard
reactions     finds the reactions that arguments name
models        models list, get, find, count, drop
index         index status, verify, repair
doctor        doctor
index_output  prints states and findings of the index
rebuild       index rebuild
poison        index poison list, retry, discard
stats         stats, keep; tables create, torn
later         reads a timer written as `reminder=14d`

Optional packages bring further commands: `epochal.extensions` lists them.
"""

from __future__ import annotations

import sys

EXTRA = ("click", "rich")


def run() -> None:
    """Import the command and run it; exit with a message if what the extra `cli` brings is missing.

    Importing it takes a second, and needs the extra `cli`. The library alone installs the script, too, which then says
    what is missing; Ctrl-C meanwhile shows no trace.
    """
    try:
        from epochal.cli.main import main  # noqa: PLC0415  takes a second, and needs the extra
    except ModuleNotFoundError as error:
        if error.name not in EXTRA:
            raise
        sys.exit(
            f"epochal: the command line needs {error.name}, which an extra installs: pip install 'epochal[cli]'"
        )
    except KeyboardInterrupt:
        sys.exit(130)
    main()
