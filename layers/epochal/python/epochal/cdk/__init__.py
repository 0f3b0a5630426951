"""Constructs for AWS CDK: a store of events, and what it feeds (reactions, processes, lakes), in stacks of one's own.

from epochal.cdk import EventStore, Process, Reaction
"""

from __future__ import annotations

from epochal.errors import brought_by

with brought_by("cdk", "constructs", "aws_cdk", "constructs"):
    from epochal.cdk.store import EventStore, Store, SubjectKeys
from epochal.cdk.lake import Lake
from epochal.cdk.parts.functions import Network
from epochal.cdk.publish import Publish, Webhook
from epochal.cdk.reaction import Process, Reaction

__all__ = [
    "EventStore",
    "Lake",
    "Network",
    "Process",
    "Publish",
    "Reaction",
    "Store",
    "SubjectKeys",
    "Webhook",
]
