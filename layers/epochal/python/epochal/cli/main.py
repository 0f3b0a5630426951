"""The command `epochal`.

Exit status: 0 done, 1 an error said in one line on standard error, 2 a command that makes no sense, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial

import click
from botocore.exceptions import BotoCoreError, ClientError

from epochal.cli.aggregates import aggregate
from epochal.cli.feed import feed, tail
from epochal.cli.local import local
from epochal.cli.stats import stats
from epochal.cli.streams import append, read, state
from epochal.cli.target import Choice, open_store, store_options
from epochal.errors import EpochalError
from epochal.settings import Settings

FAILED = 1
INTERRUPTED = 130


@click.group()
@click.version_option(package_name="epochal")
@store_options
@click.pass_context
def epochal(
    context: click.Context,
    *,
    stack: str,
    tips_table: str,
    index_table: str,
    bucket: str,
    journal_table: str,
    snapshot_table: str,
    journal_shards: int,
    endpoint: str,
    region: str,
) -> None:
    """An event store on DynamoDB: append to streams, read them, follow the feed.

    Commands are about the store that `epochal local up` deployed here, unless --stack or the tables say otherwise.
    """
    settings = Settings(
        tips_table=tips_table,
        index_table=index_table,
        bucket=bucket,
        journal_table=journal_table,
        snapshot_table=snapshot_table,
        journal_shards=journal_shards,
    )
    choice = Choice(settings=settings, stack=stack, endpoint=endpoint, region=region)
    # Whoever invokes the command from Python may bring a store of its own.
    context.obj = context.obj or partial(open_store, choice)


for command in (append, read, tail, state, aggregate, feed, stats, local):
    epochal.add_command(command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit with its status."""
    try:
        epochal.main(arguments, prog_name="epochal", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has had enough, `head` for one; closing it again would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILED)
    except (EpochalError, BotoCoreError, ClientError) as error:
        click.echo(f"epochal: {' '.join(str(error).split())}", err=True)
        sys.exit(FAILED)


if __name__ == "__main__":
    main()
