"""The resources that CloudFormation refused, with the reason of each, as `cdk deploy` writes them.

    Shop | 5 | 8:22:36 AM | CREATE_FAILED | AWS::SQS::Queue | Waiting (Waiting1A) its first line of a reason
    and further lines of it

A reason ends with the next event, or with the summary of the stack. What follows of the output is no use to a reader:
all that is rolled back, and the same reasons again, wrapped.
"""

from __future__ import annotations

import re
from typing import Final

EVENT: Final = re.compile(
    r"^(?P<stack>\S+) \|[^|]*\|[^|]*\| (?P<status>\w+)\s*\| (?P<type>[\w:]+)\s*\| (?P<what>.*)$"
)
"""A line of the output with an event of a resource."""

_DEPLOYED: Final = "✅"
_SUMMARY: Final = ("Failed resources:", "❌")

_CANCELLED: Final = re.compile(r"Resource (creation|update) cancelled$")
"""The reason of resources that CloudFormation cancelled because another one failed."""


def line_of_failure(event: re.Match[str]) -> str:
    """Format an event of failure for people: stack, status, resource, first line of the reason."""
    return f"{event['stack']}: {event['status']} {event['type']} {event['what'].strip()}"


class FailedResources:
    """Reader of CDK's output that collects the failed resources of the stack being deployed."""

    def __init__(self) -> None:
        self._failures: list[list[str]] = []
        self._in_reason = False

    def read(self, line: str) -> None:
        """Take the next line of CDK's output: collect a failure or its reason; forget all at a deployed stack."""
        event = EVENT.match(line)
        if event is not None:
            self._in_reason = event["status"].endswith("_FAILED")
            if self._in_reason:
                self._failures.append([line_of_failure(event)])
        elif line.strip().startswith(_DEPLOYED):
            self._failures.clear()
            self._in_reason = False
        elif line.strip().startswith(_SUMMARY):
            self._in_reason = False
        elif self._in_reason:
            self._failures[-1].append(line)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Failed resources with their reasons; cancelled ones only where there are no others."""
        texts = ["\n".join(lines).rstrip() for lines in self._failures]
        return tuple([text for text in texts if not _CANCELLED.search(text)] or texts)
