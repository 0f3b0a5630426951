"""Commands for the embedded AWS: start it with a project deployed, stop it, see it, point a shell at it; and
what goes on while a developer works: which files change, and what functions log.
"""

from __future__ import annotations

import heapq
import os
import re
import shlex
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import click

from epochal.care.auditor import auditor_of
from epochal.care.repair import Repairer
from epochal.care.verify import Verifier
from epochal.cli import index, output
from epochal.cli.index import sources_of
from epochal.cli.target import tables_of
from epochal.codec import json
from epochal.contrib.local import cdk, deploy, ministack
from epochal.contrib.local.deploy import API_URL, LocalDeployment, LocalStore
from epochal.contrib.local.endpoint import SECRET, Endpoint
from epochal.contrib.local.errors import TooManyFiles
from epochal.contrib.local.installed_from import WHEELS, Requirement, requirement_of_project
from epochal.contrib.local.opened import open_local
from epochal.contrib.local.processes import Server, Tell
from epochal.contrib.local.programs import Places, here
from epochal.errors import EpochalError, InvalidInput
from epochal.layout.registry import declared
from epochal.lazy_dataclasses import dataclass, field

HIDDEN: Final = ("AWS_PROFILE", "AWS_SESSION_TOKEN")
"""Variables of a real account in a shell, which would be used beside made-up keys, or instead of them."""


@click.group()
def local() -> None:
    """A project's stacks on this machine, on an embedded AWS."""


def _pairs(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    """Parse the NAME=VALUE texts of an option into a dictionary.

    Raises:
        BadParameter: a text has no `=`.
    """
    pairs = [text.partition("=") for text in texts]
    if any(not separator for _name, separator, _value in pairs):
        raise click.BadParameter("must be NAME=VALUE")
    return {name: value for name, _separator, value in pairs}


@local.command()
@click.option("--app", help="Command of the CDK application, run here.  [default: that of cdk.json]")
@click.option(
    "-c", "--context", multiple=True, callback=_pairs, metavar="NAME=VALUE", help="Context value for it."
)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    help=f"Where it listens.  [default: {ministack.DEFAULT_PORT} or a free one, or that of what was kept]",
)
@click.option("--authorise/--no-authorise", default=True, show_default=True, help="Enforce IAM, as AWS does.")
@click.option("--watch", is_flag=True, help="Go on, and deploy again whenever files of the project change.")
@output.with_json
def up(*, app: str | None, context: dict[str, str], port: int | None, authorise: bool, watch: bool) -> None:
    """Start the embedded AWS and deploy this project to it.

    Run it again to deploy what has changed. What `down --keep` kept goes on.
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
    """Deploy again after each change of files, until interrupted.

    A deployment that fails is reported, and tried again with the next change.
    """
    click.echo("watching; Ctrl-C ends this, and the embedded AWS runs on", err=True)
    try:
        for names in changed:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            click.echo(f"{names[0]}{more} changed", err=True)
            began = time.monotonic()
            try:
                with output.progress("deploying") as tell:
                    deploy_again(tell)
            except EpochalError as error:
                click.echo("\n".join(output.harmless(f"not deployed: {error}")), err=True)
            else:
                click.echo(f"deployed in {time.monotonic() - began:.1f} s", err=True)
    except KeyboardInterrupt:
        click.echo("no longer watching; `epochal local down` stops the embedded AWS", err=True)


@local.command()
@click.argument("name", default="")
@click.option("-f", "--follow", is_flag=True, help="Go on with what comes, until interrupted.")
@click.option(
    "--last",
    type=click.IntRange(0),
    default=200,
    show_default=True,
    help="Begin with so many of the latest lines.",
)
@output.with_json
def logs(name: str, follow: bool, last: int) -> None:
    """Print what functions have logged, or those with NAME in their names.

    That is what they print, what they log, and the trace of what a handler raises.
    """
    places = here()
    server = ministack.require(places)
    deployed = cdk.remembered(server) or cdk.RememberedDeployment()
    environments = cdk.environments_of(deployed)
    logs_found = logs_of([ministack.endpoint(server, environment) for environment in environments], name)
    latest = [line for line in logs_found.more() if line.lines()]
    _print_logs(latest[max(0, len(latest) - last) :])
    while follow:
        time.sleep(POLL_SECONDS)
        ministack.require(places)
        _print_logs(logs_found.more())


def _print_logs(lines: Iterable[LogLine]) -> None:
    """Print log lines with time and function, as text or JSON."""
    for line in lines:
        time = datetime.fromtimestamp(line.at / 1000).astimezone()
        view = {"time": time.isoformat(timespec="milliseconds"), "function": line.function, "line": line.text}
        shown = output.harmless("\n".join(line.lines()))
        if shown or output.as_json():
            head = f"{time:%H:%M:%S} {line.function}  "
            output.document(view, [head + shown[0], *shown[1:]] if shown else [])


@local.command()
@click.option("--store", help="Which store, where there are several.")
@click.option("--unset", is_flag=True, help="Print what takes it back, whether anything is deployed or not.")
@output.with_json
def env(store: str | None, unset: bool) -> None:
    """Print what points a shell at what is deployed.

    To use it: eval "$(epochal local env)"

    To take it back: eval "$(epochal local env --unset)"
    """
    if unset:
        names = _pointing()
        output.document({"unset": names}, [f"unset {name}" for name in names])
        return
    variables = deploy.current(here()).store(store).variables
    lines = [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
    output.document(variables, [*(f"unset {name}" for name in HIDDEN), *lines])


def _pointing() -> list[str]:
    """Return the names of this shell's variables that `env` has set.

    Empty in a shell whose credentials are others.
    """
    if os.environ.get("AWS_SECRET_ACCESS_KEY") != SECRET:
        return []
    of_stores = {setting.variable for setting in declared().values()}
    return sorted(os.environ.keys() & {*Endpoint(url="").environment({}), API_URL, *of_stores})


@local.command()
@click.option("--keep", is_flag=True, help="Keep what is in it: the next `up` goes on with it.")
@output.with_json
def down(keep: bool) -> None:
    """Stop the embedded AWS. Everything in it is gone, unless it is told to keep it."""
    places = here()
    with output.progress("stopping") as tell:
        if keep and (deployment := deploy.current_if_any(places)):
            _repair(deployment, tell)
        ran = ministack.down(places, keep=keep)
    was_kept = ministack.found(places) is not None
    line = f"{'stopped' if ran else 'was not running'}{'; kept for the next `up`' if was_kept else ''}"
    output.document({"stopped": ran, "kept": was_kept}, [line])


@local.command()
@output.with_json
def status() -> None:
    """Print where the embedded AWS is and what is deployed to it."""
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
            tell(index.repaired_line(repaired))


def _print(server: Server | None, deployment: LocalDeployment | None) -> None:
    """Print the address of the embedded AWS, and the tables, buckets and APIs that are deployed."""
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


# `epochal new`: a small, complete project to start from.
#
# The files of each kind of project are in a folder beside this one. Each ends in `.tmpl`, so that no tool takes it for
# a module of the library.


@dataclass(frozen=True, slots=True)
class ProjectKind:
    """A kind of project that `epochal new` writes.

    Attributes:
        folder: folder of the templates.
        extras: extras of the library that the work on the project needs, separated by commas.
    """

    folder: Path
    extras: str


KINDS: Final = {
    "service": ProjectKind(Path(__file__).with_name("project"), "cdk,cli,console,lambda,local,pytest"),
    "web": ProjectKind(Path(__file__).with_name("web_project"), "async,cli,console,pytest"),
}
SUFFIX: Final = ".tmpl"
DOTTED: Final = "dot-"
"""Prefix of template names in the place of a leading dot in the project."""

NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
LENGTH: Final = 40
"""Characters of a project's name, at most: names of stacks and functions contain it."""


@click.command()
@click.argument("name")
@click.option(
    "--kind",
    type=click.Choice(tuple(KINDS)),
    default="service",
    show_default=True,
    help="A service with a stack, or a web service with FastAPI, Flask or Lambda.",
)
@output.with_json
def new(name: str, kind: str) -> None:
    """Write a small, complete project into a new folder.

    A service has rules, a reaction with a read model, a stack and tests. A web service has rules, HTTP operations, a
    read model and tests.

    NAME is that of the folder and of the stack: lower-case letters, digits and hyphens.
    """
    folder = Path(name)
    if not NAME.fullmatch(name) or len(name) > LENGTH:
        raise InvalidInput(
            "NAME",
            f"must be at most {LENGTH} lower-case letters, digits and single hyphens, from a letter on",
        )
    if folder.exists():
        raise InvalidInput("NAME", f"{folder} is there already")
    library = requirement_of_project(KINDS[kind].extras)
    files = [str(path) for path in _write(KINDS[kind].folder, folder, name, library)]
    lines = [*files, "", f"cd {name} && pip install -r requirements.txt && pytest"]
    output.document({"folder": name, "files": files}, lines)


def _write(templates: Path, folder: Path, name: str, library: Requirement) -> Iterator[Path]:
    """Write the files of a project from their templates, and the library's wheel if it needs that; yield each path."""
    words = {"name": name, "requirement": library.line}
    for template in sorted(templates.rglob(f"*{SUFFIX}")):
        parts = template.relative_to(templates).with_suffix("").parts
        file = folder.joinpath(*(re.sub(f"^{DOTTED}", ".", part) for part in parts))
        file.parent.mkdir(parents=True, exist_ok=True)
        text = re.sub(r"\{\{ (\w+) \}\}", lambda found: words[found[1]], template.read_text("utf-8"))
        file.write_text(text, "utf-8")
        yield file
    if library.wheel is not None:
        file = folder / WHEELS / library.wheel.name
        file.parent.mkdir()
        shutil.copyfile(library.wheel, file)
        yield file


# Changed files of a project, by their times and sizes, whether an editor, `git` or a generator changes them.
#
# Folders without sources are skipped: hidden ones, virtual environments, and those that npm, CDK and Python make.

POLL_SECONDS: Final = 0.5
"""Seconds between scans of the files, at some microseconds a file; changes are reported once a scan finds no more."""

MOST_FILES: Final = 20_000
"""Files of a project, at most: scans of more would keep a processor busy."""

_MADE: Final = frozenset({"node_modules", "__pycache__", "cdk.out"})
_ENVIRONMENT: Final = "pyvenv.cfg"

Seen = Mapping[str, tuple[int, int]]


def changes(root: Path, *, sleep: Callable[[float], object] = time.sleep) -> Iterator[tuple[str, ...]]:
    """Yield, without end, the names of files that changed, appeared or vanished since the last yield.

    The first names are of files that changed since this call. Names are relative to `root`. Files that change while the
    caller handles a yield come with the next one.

    What changes while the caller does something about it comes next.

    Raises:
        TooManyFiles: the folder has too many files for a project.
    """
    return _changes(root, _seen(root), sleep)


def _changes(root: Path, before: Seen, sleep: Callable[[float], object]) -> Iterator[tuple[str, ...]]:
    """Yield the names of changed files, each time a change has settled, starting from `before`."""
    while True:
        sleep(POLL_SECONDS)
        now = _seen(root)
        if now == before:
            continue
        sleep(POLL_SECONDS)
        while (again := _seen(root)) != now:
            now = again
            sleep(POLL_SECONDS)
        changed = tuple(sorted(name for name in {*before, *now} if before.get(name) != now.get(name)))
        before = now
        if changed:  # empty where a change was undone
            yield changed


def _seen(root: Path) -> Seen:
    """Return the modification time and the size of each file of a project, by its name.

    Raises:
        TooManyFiles: there are more than `MOST_FILES`.
    """
    states: dict[str, tuple[int, int]] = {}
    for path, changed, size in _files(root):
        states[os.path.relpath(path, root)] = (changed, size)
        if len(states) > MOST_FILES:
            raise TooManyFiles(str(root), MOST_FILES)
    return states


def _files(folder: str | Path) -> Iterator[tuple[str, int, int]]:
    """Yield the path, the modification time in nanoseconds, and the size of each file in a folder.

    Hidden files, generated folders and virtual environments are skipped.
    """
    try:
        with os.scandir(folder) as listed:
            entries = [each for each in listed if not each.name.startswith(".") and each.name not in _MADE]
    except (FileNotFoundError, NotADirectoryError):
        return  # gone since it was listed
    if any(entry.name == _ENVIRONMENT for entry in entries):
        return
    for entry in entries:
        try:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(entry.path)
            else:
                stat = entry.stat()
                yield entry.path, stat.st_mtime_ns, stat.st_size
        except FileNotFoundError:
            continue


# Logs of functions on the embedded AWS: prints, lines of loggers, and the traces of errors that handlers raise.
#
# Each invocation has a log stream of its own, which exists when the invocation has ended. So a follower polls for lines
# since a time and skips the lines that it has had; only those of the last seconds are remembered for that.

LATE_MS: Final = 30_000
"""Milliseconds by which lines may appear late: an invocation's lines have the time at which it ended."""

_PLATFORM: Final = re.compile(r"(START|END|REPORT) RequestId: ")
_METRICS: Final = "_aws"
_DULL: Final = frozenset({"level", "message", "timestamp", "service", "location", "sampling_rate", "trace"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """A line in the log of a function; `at` is its time in milliseconds since 1970."""

    at: int
    function: str
    text: str

    def lines(self) -> list[str]:
        """Return the line as text for people, on one or several lines.

        JSON of a logger becomes level, message and fields, with a trace below. Lines of Lambda itself and of metrics
        become nothing.
        """
        if _PLATFORM.match(self.text):
            return []
        try:
            record = json.loads(self.text)
        except ValueError:
            return self.text.splitlines()
        if not isinstance(record, dict) or not {"level", "message"} <= record.keys():
            return [] if isinstance(record, dict) and _METRICS in record else [self.text]
        fields = "".join(f"  {name}={value}" for name, value in record.items() if name not in _DULL)
        return [f"{record['level']} {record['message']}{fields}", *str(record.get("trace", "")).splitlines()]


@dataclass(slots=True, kw_only=True)
class Logs:
    """Reader of the logs of functions, which returns the lines that are new since the last call.

    Attributes:
        groups: client of CloudWatch Logs, name of the function, and name of its log group, for each function.
    """

    groups: Sequence[tuple[Any, str, str]]
    _since: int = 0
    _had: Counter[tuple[str, str, int]] = field(default_factory=Counter)

    def more(self) -> list[LogLine]:
        """Return the lines that are new since the last call, by time; all lines at the first call."""
        lines = list(heapq.merge(*map(self._of, self.groups), key=lambda line: line.at))
        if lines:
            self._since = max(self._since, lines[-1].at - LATE_MS)
            self._had = Counter(
                {moment: had for moment, had in self._had.items() if moment[2] >= self._since}
            )
        return lines

    def _of(self, group: tuple[Any, str, str]) -> Iterator[LogLine]:
        """Yield the new lines of a log group, and note that they have been read."""
        client, function, name = group
        passed = Counter[tuple[str, str, int]]()
        try:
            pages = client.get_paginator("filter_log_events").paginate(
                logGroupName=name, startTime=self._since
            )
            events = [event for page in pages for event in page["events"]]
        except client.exceptions.ResourceNotFoundException:
            return  # it has not been invoked
        for event in events:
            moment = (name, event["logStreamName"], event["timestamp"])
            passed[moment] += 1
            if passed[moment] > self._had[moment]:
                self._had[moment] += 1
                yield LogLine(at=event["timestamp"], function=function, text=event["message"])


def logs_of(endpoints: Sequence[Endpoint], name: str = "") -> Logs:
    """Make a reader of the logs of deployed functions, or of those with `name` in their names.

    Raises:
        InvalidInput: there is no such function; lists the functions.
    """
    groups, names = [], []
    for endpoint in endpoints:
        lambdas, logs = endpoint.clients("lambda", "logs")
        for page in lambdas.get_paginator("list_functions").paginate():
            for function in page["Functions"]:
                names.append(function["FunctionName"])
                if name in names[-1]:
                    group = function.get("LoggingConfig", {}).get("LogGroup") or f"/aws/lambda/{names[-1]}"
                    groups.append((logs, names[-1], group))
    if not groups:
        raise InvalidInput(
            "NAME", f"must be in the name of a function: {', '.join(sorted(names)) or 'none is deployed'}"
        )
    return Logs(groups=groups)


COMMANDS: Final = (local, new)
