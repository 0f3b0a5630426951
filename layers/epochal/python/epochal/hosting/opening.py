"""What a process that runs a reaction needs of a deployment: its feed, and the stores that events are read from."""

from __future__ import annotations

from epochal.dynamo.stores import HERE, Place
from epochal.reactions.group_member import Member
from epochal.reactions.reaction import Reaction
from epochal.reactions.reactor import Reactor
from epochal.settings import Settings


def open_reactor(reaction: Reaction, settings: Settings, place: Place = HERE) -> Reactor:
    """A reactor on the tables of a deployment."""
    return Reactor(member=Member(reaction=reaction, reader=place.deployment(settings).feed))
