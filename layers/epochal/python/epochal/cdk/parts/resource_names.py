"""Names by which parts of a deployment find each other without exports."""

from __future__ import annotations

from epochal.cdk.stages import Stage


def topic_of(stage: Stage) -> str:
    """Return the name of the topic of notices."""
    return f"{stage.named('notices')}.fifo"


def stream_of(stage: Stage, kind: str) -> str:
    """Return the name of the parameter in Parameter Store that holds the ARN of a table's stream.

    A stream's ARN cannot be derived from the table's name.
    """
    return f"/epochal/{stage.named('')}/streams/{kind}"


def changes_of(stage: Stage) -> str:
    """Return the name of the Kinesis stream to which tables of heads send their changes."""
    return stage.named("changes")


def function_of(reaction: str) -> str:
    """Return the kind of a reaction's function, from which `stage.named` makes its name."""
    return f"reaction-{reaction}"


def queue_of(stage: Stage, reaction: str, *, failed: bool = False) -> str:
    """Return the name of a reaction's queue of wake-ups, or of its dead-letter queue."""
    return f"{stage.named(function_of(reaction))}{'-failed' if failed else ''}.fifo"
