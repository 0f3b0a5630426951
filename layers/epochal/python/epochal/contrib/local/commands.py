"""Commands for the embedded AWS: start it with a project deployed, stop it, see it, and point a shell at it."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import click

from epochal.care.auditor import auditor_of
from epochal.care.repair import Repairer
from epochal.care.verify import Verifier
from epochal.cli import output
from epochal.cli.index import sources_of
from epochal.cli.index_output import repair_line
from epochal.cli.target import tables_of
from epochal.contrib.local import deploy, ministack, remembered_deployment
from epochal.contrib.local.deploy import API_URL, LocalDeployment, LocalStore
from epochal.contrib.local.endpoint import SECRET, Endpoint
from epochal.contrib.local.file_changes import POLL_SECONDS, changes
from epochal.contrib.local.function_logs import LogLine, logs_of
from epochal.contrib.local.new_project import new
from epochal.contrib.local.opened import open_local
from epochal.contrib.local.processes import Server, Tell
from epochal.contrib.local.programs import Places, here
from epochal.errors import EpochalError
from epochal.layout.registry import declared

HIDDEN: Final = ("AWS_PROFILE", "AWS_SESSION_TOKEN")
"""Variables of a real account in a shell, which would be used beside made-up keys, or instead of them."""


@click.group()
def local() -> None:
    """Run the stacks of a project on an embedded AWS."""


def _pairs(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    """Parse an option's NAME=VALUE texts into a dictionary; raise `BadParameter` if one has no `=`.

    Raises:
        BadParameter: a text has no `=`.
    """
    pairs = [text.partition("=") for text in texts]
    if any(not separator for _name, separator, _value in pairs):
        raise click.BadParameter("must be NAME=VALUE")
    return {name: value for name, _separator, value in pairs}


@local.command(short_help="Start the embedded AWS and deploy this project to it.")
@click.option(
    "--app", help="Command that runs the CDK application, in this folder. The default is the one in cdk.json."
)
@click.option(
    "-c",
    "--context",
    multiple=True,
    callback=_pairs,
    metavar="NAME=VALUE",
    help="Context value for the CDK application. May be repeated.",
)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    help="Port that the embedded AWS listens on. The default is the port of the kept data, otherwise "
    f"{ministack.DEFAULT_PORT} or a free one.",
)
@click.option(
    "--authorise/--no-authorise",
    default=True,
    show_default=True,
    help="Enforce IAM permissions, as AWS does.",
)
@click.option(
    "--watch", is_flag=True, help="Keep running, and deploy again whenever a file of the project changes."
)
@output.with_json
def up(*, app: str | None, context: dict[str, str], port: int | None, authorise: bool, watch: bool) -> None:
    """Start the embedded AWS and deploy this project to it; with --watch, again after each change.

    Run the command again to deploy changes. Data that `down --keep` has kept is used again.
    """
    places = Places(Path.cwd()) if app else here()
    changed = changes(places.root) if watch else None
    with output.progress("starting") as tell:
        server = ministack.up(places, port=port, authorise=authorise, tell=tell)
        deployment = deploy.deploy(places, server, app=app, context=context, tell=tell)
        if ministack.repair_is_due(places):
            _repair(deployment, tell)
            ministack.repaired(places)
    _print(server, deployment)
    if changed is not None:
        _deploy_changes(
            changed, lambda tell: deploy.deploy(places, server, app=app, context=context, tell=tell)
        )


def _deploy_changes(changed: Iterable[tuple[str, ...]], deploy_again: Callable[[Tell], object]) -> None:
    """Deploy again after each change of files, until interrupted; report failed deployments and go on.

    A deployment that fails is reported, and tried again with the next change.
    """
    click.echo("watching for changes; Ctrl-C stops watching, and the embedded AWS keeps running", err=True)
    try:
        for names in changed:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            click.echo(f"{names[0]}{more} changed", err=True)
            began = time.monotonic()
            try:
                with output.progress("deploying") as tell:
                    deploy_again(tell)
            except EpochalError as error:
                click.echo("\n".join(output.harmless(f"deployment failed: {error}")), err=True)
            else:
                click.echo(f"deployed in {time.monotonic() - began:.1f} s", err=True)
    except KeyboardInterrupt:
        click.echo("no longer watching; `epochal local down` stops the embedded AWS", err=True)


@local.command(short_help="Print the latest log lines of deployed functions.")
@click.argument("name", default="")
@click.option("-f", "--follow", is_flag=True, help="Keep printing new lines until interrupted.")
@click.option(
    "--last",
    type=click.IntRange(0),
    default=200,
    show_default=True,
    help="Number of latest lines to print first.",
)
@output.with_json
def logs(name: str, follow: bool, last: int) -> None:
    """Print the latest log lines of deployed functions, or of those with NAME in their names.

    Logs contain what functions print and log, and the stack trace of each exception.
    """
    places = here()
    server = ministack.require(places)
    deployed = remembered_deployment.remembered(server) or remembered_deployment.RememberedDeployment()
    environments = remembered_deployment.environments_of(deployed)
    logs_found = logs_of([ministack.endpoint(server, environment) for environment in environments], name)
    latest = [line for line in logs_found.more() if line.lines()]
    _print_logs(latest[max(0, len(latest) - last) :])
    while follow:
        time.sleep(POLL_SECONDS)
        ministack.require(places)
        _print_logs(logs_found.more())


def _print_logs(lines: Iterable[LogLine]) -> None:
    """Print log lines with time and function; as text, without the lines that have nothing to show."""
    for line in lines:
        time = datetime.fromtimestamp(line.at / 1000).astimezone()
        view = {"time": time.isoformat(timespec="milliseconds"), "function": line.function, "line": line.text}
        shown = output.harmless("\n".join(line.lines()))
        if shown or output.as_json():
            head = f"{time:%H:%M:%S} {line.function}  "
            output.document(view, [head + shown[0], *shown[1:]] if shown else [])


@local.command(short_help="Print the variables that point a shell at the deployed store.")
@click.option("--store", help="Name of the store, if several are deployed.")
@click.option(
    "--unset",
    is_flag=True,
    help="Print commands that unset these variables, whether anything is deployed or not.",
)
@output.with_json
def env(store: str | None, unset: bool) -> None:
    """Print shell commands that set the variables of the deployed store, or with --unset, remove them.

    To set them: eval "$(epochal local env)"

    To unset them: eval "$(epochal local env --unset)"
    """
    if unset:
        names = _pointing()
        output.document({"unset": names}, [f"unset {name}" for name in names])
        return
    variables = deploy.current(here()).store(store).variables
    lines = [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
    output.document(variables, [*(f"unset {name}" for name in HIDDEN), *lines])


def _pointing() -> list[str]:
    """Return this shell's variables that `env` sets; none where its secret key is not the made-up one.

    Empty in a shell whose credentials are others.
    """
    if os.environ.get("AWS_SECRET_ACCESS_KEY") != SECRET:
        return []
    of_stores = {setting.variable for setting in declared().values()}
    return sorted(os.environ.keys() & {*Endpoint(url="").environment({}), API_URL, *of_stores})


@local.command()
@click.option("--keep", is_flag=True, help="Keep the data, so that the next `up` continues with it.")
@output.with_json
def down(keep: bool) -> None:
    """Stop the embedded AWS, and delete its data unless --keep is given."""
    places = here()
    with output.progress("stopping") as tell:
        if keep and (deployment := deploy.current_if_any(places)):
            _repair(deployment, tell)
        ran = ministack.down(places, keep=keep)
    was_kept = ministack.load_kept(places) is not None
    line = f"{'stopped' if ran else 'was not running'}{'; the data is kept for the next `up`' if was_kept else ''}"
    output.document({"stopped": ran, "kept": was_kept}, [line])


@local.command()
@output.with_json
def status() -> None:
    """Print the address of the embedded AWS, and its stacks."""
    places = here()
    _print(ministack.status(places), deploy.current_if_any(places))


def _repair(deployment: LocalDeployment, tell: Tell) -> None:
    """Repair the index of each store from its tables, since streams lose changes at a stop.

    A change shortly before a stop that no mapping has read until then is in no stream afterwards. A repair before a
    stop also leaves the indexer nothing to write while everything is saved.
    """
    for store in deployment.stores:
        tell(f"repairing the index of {store.name}")
        store_found = open_local(store)
        verifier = Verifier(
            mender=auditor_of(store_found.deployment.settings, store_found.deployment.driver).mender,
            sources=sources_of(store_found, ()),
            settle=0,
        )
        for repaired in Repairer(verifier).repair():
            tell(repair_line(repaired))


def _print(server: Server | None, deployment: LocalDeployment | None) -> None:
    """Print whether the embedded AWS runs, its address and keys, and each store's tables, bucket and API."""
    view: dict[str, Any] = {"running": server is not None, "deployed": deployment is not None}
    if server is not None:
        endpoint = deployment.endpoint if deployment is not None else ministack.endpoint(server)
        view |= {
            "endpoint": server.url,
            "region": endpoint.region,
            "key": endpoint.key,
            "secret": SECRET,
            "pid": server.pid,
        }
    stores = deployment.stores if deployment is not None else ()
    if len(stores) == 1:
        view |= _places_of(stores[0])
    elif stores:
        view["stores"] = {store.name: _place_of(store) | _places_of(store) for store in stores}
    output.document(view, output.table(list(_rows(view))))


def _place_of(store: LocalStore) -> dict[str, Any]:
    """Return the region and the access key of a store: the embedded AWS knows an account by its key."""
    return {"region": store.endpoint.region, "key": store.endpoint.key}


def _places_of(store: LocalStore) -> dict[str, Any]:
    """Return the API's URL, the names of the tables and the bucket of a store."""
    tables = {_key(declared()[name].output): table for name, table in tables_of(store.settings).items()}
    api = {"api": store.api_url} if store.api_id else {}
    return {**api, **tables, "bucket": store.settings.bucket}


def _rows(view: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the rows of a table from a nested view: dotted names, and values as text."""
    for name, value in view.items():
        if isinstance(value, Mapping):
            yield from _rows(value, f"{prefix}{name}." if name != "stores" else "")
        else:
            yield f"{prefix}{name}", _word(value)


def _key(output: str) -> str:
    """Return the name of an output with a lower-case first letter, as JSON has it."""
    return output[:1].lower() + output[1:]


def _word(value: object) -> str:
    """Return a value as text, with yes and no for booleans."""
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


COMMANDS: Final = (local, new)
