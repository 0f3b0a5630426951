"""Names by which parts of a deployment find each other without exports."""

from __future__ import annotations

from epochal.cdk.stages import Stage


def topic_of(stage: Stage) -> str:
    """The topic of notices."""
    return f"{stage.named('notices')}.fifo"


def stream_of(stage: Stage, kind: str) -> str:
    """The parameter, in Parameter Store, that holds the ARN of a table's stream, which nobody can tell by its name."""
    return f"/epochal/{stage.named('')}/streams/{kind}"


def changes_of(stage: Stage) -> str:
    """The Kinesis stream that tables of heads send their changes to."""
    return stage.named("changes")


def function_of(reaction: str) -> str:
    """The kind of a reaction's function, which `stage.named` makes a name of."""
    return f"reaction-{reaction}"


def queue_of(stage: Stage, reaction: str, *, failed: bool = False) -> str:
    """The queue of a reaction's wake-ups, or of those that failed too often."""
    return f"{stage.named(function_of(reaction))}{'-failed' if failed else ''}.fifo"
