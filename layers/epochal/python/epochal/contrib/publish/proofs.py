"""The check of `epochal prove` that recipients take what a stage publishes to them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from epochal.contrib.proving import store as checks
from epochal.contrib.proving.catching_up import (
    FeedPlace,
    ends_of_feed,
    find_place,
    has_reached,
    standing_at,
)
from epochal.contrib.proving.deployed_stacks import functions_of
from epochal.contrib.proving.proof import CATEGORY, Broken, ProofRun, Trial, Unproven, trial
from epochal.contrib.proving.writers import KIND
from epochal.contrib.publish.publication import PUBLISH, Publication, publication_of
from epochal.model.events import Event


def trials(_: ProofRun) -> Iterator[Trial]:
    """Yield the checks of this package."""
    yield publish


def publications_of(proof: ProofRun) -> list[Publication]:
    """Return the publications of the stage that send the proof's events: others name categories or types."""
    publications = [
        publication_of(function.environment)
        for function in functions_of(proof.stacks, proof.client)
        if PUBLISH in function.environment
    ]
    return [
        publication
        for publication in publications
        if (publication.categories is None or CATEGORY in publication.categories)
        and (publication.types is None or KIND in publication.types)
    ]


@trial("each recipient accepts the events that the stage publishes to it, and the reaction parks none", 0.001)
def publish(proof: ProofRun) -> str:
    """Append an event, wait until each publishing reaction has sent it, and return a report, or raise.

    Raises:
        Broken: the event does not reach the feed, or a recipient does not take it.
        Unproven: the stage publishes no events of the proof.
    """
    publications = publications_of(proof)
    if not publications:
        rule = (
            f"the stage publishes no events of {CATEGORY}: add the stack of a Publish with --also, or the "
            "category to its categories"
        )
        raise Unproven(rule)
    writer = checks.stream_writer(proof, "publish")
    begins, began = ends_of_feed(proof), proof.clock()
    writer.store.append(writer.stream, [Event.json(KIND, {"n": 0})])
    proof.removals.append(writer.remove)
    places: list[FeedPlace] = []

    def indexed() -> bool:
        """Whether the event is in the feed; `places` gets the place after it."""
        if place := find_place(proof, writer.stream, begins):
            places.append(place)
        return bool(places)

    if not proof.until(indexed, checks.FEED_SECONDS):
        raise Broken("the appended event has not reached the feed")
    failures = list[str]()
    for publication in publications:
        if not proof.until(
            partial(has_reached, proof, publication.name, places[0]), checks.FEED_SECONDS, every=1.0
        ):
            failures.append(
                f"{publication.name} has not sent the event to {publication.place}: check its log and its "
                "alarms"
            )
        elif (standing := standing_at(proof, publication.name, places[0])) is not None and standing.parked:
            failures.append(
                f"{publication.name} has {standing.parked} parked streams (`epochal parked list {publication.name}`)"
            )
    if failures:
        raise Broken("; ".join(failures))
    kinds = ", ".join(sorted(publication.to for publication in publications))
    return f"{len(publications)} recipients ({kinds}), in {proof.clock() - began:.1f} s"
