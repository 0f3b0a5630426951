"""Tables without a stack: made as the stacks make theirs, for stores that are opened by the names of their tables.

What there is already stays as it is, so that the command may run before every start of a program.
"""

from __future__ import annotations

from typing import Any

import click

from epochal.cli import output
from epochal.cli.target import TABLES, Choice
from epochal.dynamo.aws_errors import translated
from epochal.dynamo.clients import dynamodb_client
from epochal.dynamo.tables import Provisioned, complete, create_table, differs
from epochal.errors import InvalidInput, InvalidRequest
from epochal.plan.tables import TableSpec
from epochal.store.checking import SPECS


@click.group()
def tables() -> None:
    """Tables of a store that no stack deploys."""


@tables.command()
@click.option(
    "--billing",
    type=click.Choice(["on-demand", "provisioned"]),
    default="on-demand",
    help="How they are paid for.",
)
@click.option(
    "--read-units", type=click.IntRange(1), help="Of a second: what is provisioned, or on demand at most."
)
@click.option("--write-units", type=click.IntRange(1), help="Likewise.")
@click.option("--protect", is_flag=True, help="Refuse their deletion.")
@click.option("--recover", is_flag=True, help="Keep 35 days, to any second of which they can be restored.")
@output.json_option
@click.pass_context
def create(
    context: click.Context,
    *,
    billing: str,
    read_units: int | None,
    write_units: int | None,
    protect: bool,
    recover: bool,
    as_json: bool,
) -> None:
    """Create those of the named tables that are not there.

    Keys, indexes, streams and expiry are those that a stack gives them. They stand before the command, as
    --streams-table and --index-table.
    """
    choice: Choice = context.find_root().meta[Choice.__name__]
    named = {kind: choice.settings.value(setting) for setting, kind in TABLES.values()}
    wanted = {kind: name for kind, name in named.items() if name}
    if not wanted or choice.stack:
        raise click.UsageError("Name the tables before the command: epochal --streams-table … tables create.")
    if billing == "provisioned" and not (read_units and write_units):
        raise click.UsageError("--billing provisioned needs --read-units and --write-units.")
    client = dynamodb_client(endpoint=choice.endpoint or None, region=choice.region or None)
    found: dict[str, str] = {}
    for kind, name in wanted.items():
        units = Provisioned(read=read_units, write=write_units, fixed=billing == "provisioned")
        found[name] = _made(client, name, SPECS[kind], units, protect=protect, recover=recover)
    view = {"tables": [{"table": name, "outcome": told} for name, told in found.items()]}
    output.document(view, [f"{name}  {told}" for name, told in found.items()], as_json=as_json)


def _made(
    client: Any, name: str, spec: TableSpec, units: Provisioned, *, protect: bool, recover: bool
) -> str:
    try:
        with translated("CreateTable"):
            create_table(client, name, spec, units=units, regions=True, protect=protect, recover=recover)
    except InvalidRequest as error:
        if error.code != "ResourceInUseException":
            raise
        with translated("DescribeTable"):
            there = client.describe_table(TableName=name)["Table"]
        if (what := differs(there, spec)) is not None:
            raise InvalidInput(
                f"{name}", f"is there already, with other {what} than a table of {spec.kind}"
            ) from error
        with translated("UpdateTimeToLive"):
            complete(client, name, there, spec, recover=recover)
        return "is there already"
    return "created"
