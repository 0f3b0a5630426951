"""The demo, from an empty machine to a verified feed.

    read the flights                         from the package that ships them
    start the embedded AWS on a free port    everything it holds is gone when it stops
    deploy Epochal to it                     the real CDK command line, the stacks that go to AWS, and two reactions
    send the flights                         by several writers, over HTTP
    wait for the index                       which DynamoDB Streams drive in the deployed indexer
    verify the whole feed                    from $AppendsEpoch-<partition>_0 on, against what was sent
    compare the reactions' read models       a departures board and a table of delays, one of which fails at first

Through the library two tables are made instead of a deployment, and this process is the indexer (`in_process`).

Whatever it started is stopped at the end, also after an error, a Ctrl-C or a SIGTERM; with `keep` it stays up if all
went well (`staying`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from epochal.codec import json
from epochal.contrib.local import deploy, ministack, processes
from epochal.contrib.local.deploy import LocalDeployment
from epochal.contrib.local.endpoint import KEY, SECRET
from epochal.contrib.local.programs import Places, here
from examples.flights import dataset, staying
from examples.flights.dataset import Day
from examples.flights.display import Display
from examples.flights.happenings import Batch, by_day, by_moment, events_of, in_order
from examples.flights.in_process import INDEX_TABLE, STREAMS_TABLE, in_process, make_tables
from examples.flights.options import Options
from examples.flights.over_http import HttpStore
from examples.flights.reacting import Reacted, Reactions, busiest, declared
from examples.flights.steps import Sending, Verdict, send, verify
from examples.flights.stores import Store


def run(options: Options, display: Display) -> int:
    """All of it; the exit status says whether the feed is what was sent."""
    started = time.monotonic()
    places = here()
    days = read(options, display)
    with embedded_aws(places, display, keep=options.keep) as server:
        with opened(places, server, days, options, display) as (store, deployment):
            sending = sent(store, days, options, display)
            verdict = verified(store, sending, display)
            reacted = reacted_to(deployment, days, options, display)
        status = concluded(sending, verdict, reacted, display)
        display.say(f"{time.monotonic() - started:.0f} s in all")
        display.next_steps(staying.console(server, places.root) if options.keep else None, *example(days))
    return status


@contextmanager
def embedded_aws(places: Places, display: Display, *, keep: bool = False) -> Iterator[processes.Server]:
    """The embedded AWS, for as long as the block runs, or if it is to be kept, until the block fails."""
    display.title("Setting up")
    with display.step("starting the embedded AWS", "the embedded AWS runs"):
        server = staying.up(places) if keep else ministack.start(places)
    display.say(f"{server.url}, IAM enforced")
    try:
        yield server
    except BaseException:
        if keep:
            ministack.down(places)
        raise
    finally:
        if not keep:
            processes.stop(server)


def deployed(places: Places, server: processes.Server, days: list[Day], display: Display) -> LocalDeployment:
    """Epochal on it, and two reactions, one of which is broken for the busiest aircraft."""
    stages = json.loads((places.root / "cdk.json").read_text())["context"]["stages"]
    broken, _ = example(days)
    with display.step("cdk deploy --all", "cdk deploy --all") as bars:
        deployment = deploy.deploy(
            places, server, context={"stages": json.dumps(declared(stages, broken)).decode()}, tell=bars.say
        )
    display.say(
        f"tables {deployment.settings.table('streams')} and {deployment.settings.index_table}, API {deployment.api_url}"
    )
    return deployment


@contextmanager
def opened(
    places: Places, server: processes.Server, days: list[Day], options: Options, display: Display
) -> Iterator[tuple[Store, LocalDeployment | None]]:
    """A store on it, the way that was chosen, and what is deployed, if anything is."""
    if options.via == "http":
        deployment = deployed(places, server, days, display)
        yield over_http(deployment), deployment
        return
    endpoint = ministack.endpoint(server)
    with display.step(
        "making two tables", f"tables {STREAMS_TABLE} and {INDEX_TABLE}; the indexer is in this process"
    ):
        make_tables(endpoint)
    with in_process(endpoint) as store:
        yield store, None


def example(days: list[Day]) -> tuple[str, str]:
    """The first day's busiest aircraft, and one of its flights."""
    batches = list(by_moment(in_order(days[:1], dataset.zones())))
    stream = busiest(batches)
    return stream, next(str(each.events[0].correlation_id) for each in batches if each.stream == stream)


def over_http(deployment: LocalDeployment) -> HttpStore:
    """The HTTP API of a deployment."""
    return HttpStore(deployment.api_url, key=KEY, secret=SECRET, region=deployment.endpoint.region)


def read(options: Options, display: Display) -> list[Day]:
    """The flights of the days that were chosen."""
    display.title("Real flights")
    with display.step("reading flights", "flights are read") as bars:
        days = dataset.days(options.days, bars.bar("flights", None))
    display.say(f"{sum(map(len, days)):,} flights, {days[0].date} to {days[-1].date}")
    return days


def sent(store: Store, days: list[Day], options: Options, display: Display) -> Sending:
    """Everything written, and everything indexed."""
    display.title(f"Writing, {'over HTTP' if options.via == 'http' else 'through the library'}")
    total = sum(map(events_of, days))
    with display.step("writing", "every event is written and indexed") as bars:
        return send(
            store,
            grouping(options)(days),
            sent=bars.bar("written", total),
            arrived=bars.bar("indexed", total),
        )


def grouping(options: Options) -> Callable[[list[Day]], Iterator[Batch]]:
    """How events become appends: as they happen, or a day at a time where a year is to be loaded."""
    group = by_moment if options.via == "http" else by_day
    return lambda days: group(in_order(days, dataset.zones()))


def verified(store: Store, sending: Sending, display: Display) -> Verdict:
    """The whole feed against what was sent."""
    display.title("Verifying the feed, from the first epoch on")
    with display.step("reading the feed with data", "the feed is read to its end") as bars:
        return verify(store, sending.ledger, seen=bars.bar("events", sending.tally.events))


def reacted_to(
    deployment: LocalDeployment | None, days: list[Day], options: Options, display: Display
) -> Reacted | None:
    """The two reactions, which have followed meanwhile; long runs, which are not deployed, go without."""
    if deployment is None:
        return None
    display.title("Reacting, in two functions")
    reactions = Reactions(deployment)
    behind = reactions.behind()
    with display.step("two reactions catch up", "two reactions have caught up, read models compared") as bars:
        reacted = reactions.run(grouping(options)(days), [bars.bar(name, behind[name]) for name in behind])
    for each in reacted.parked:
        display.say(
            f"parked meanwhile, and replayed: {each.stream} from event {each.index} on ({each.cause})"
        )
    return reacted


def concluded(sending: Sending, verdict: Verdict, reacted: Reacted | None, display: Display) -> int:
    """The figures and the verdict on the screen; the exit status."""
    display.summary(sending, verdict, reacted)
    display.verdict(verdict)
    if reacted is not None:
        display.boards(reacted)
    return 1 if verdict.differences or (reacted is not None and reacted.wrong) else 0
