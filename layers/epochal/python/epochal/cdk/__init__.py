"""Constructs for AWS CDK: a store of events, and the reactions that it feeds, in stacks of one's own.

from epochal.cdk import EventStore, Reaction
"""

from __future__ import annotations

try:
    from epochal.cdk.event_store import EventStore
except ModuleNotFoundError as error:
    if error.name not in ("aws_cdk", "constructs"):
        raise
    how = "constructs need AWS CDK, which the extra brings: pip install 'epochal[cdk]'"
    raise ModuleNotFoundError(how, name=error.name) from error

from epochal.cdk.publish import Publish, Webhook
from epochal.cdk.reaction import Reaction
from epochal.cdk.store import Store
from epochal.cdk.subject_keys import SubjectKeys

__all__ = ["EventStore", "Publish", "Reaction", "Store", "SubjectKeys", "Webhook"]
