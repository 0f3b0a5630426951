"""SNS's `PublishBatch` without botocore, whose client takes longer to create than all else that an indexer does first.

A request is a form and its answer XML, in AWS's Query protocol: <https://docs.aws.amazon.com/sns/latest/api>. A FIFO
topic drops duplicates, so a request whose answer is lost is sent again, as botocore's client does with retries.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode
from xml.parsers import expat

from epochal.dynamo.wire.batches import BatchClient, Dialect
from epochal.dynamo.wire.environment import Service, find_client_patch, service_from_environment

MEDIA: Final = "application/x-www-form-urlencoded; charset=utf-8"
_ACTION: Final = "PublishBatch"
_LEVELS: Final = 9


def topic_client(otherwise: Callable[[], Any]) -> Any:
    """Return a light SNS client if the environment is all it needs, else the client that `otherwise` makes."""
    service = None if find_client_patch() else service_from_environment(os.environ, service="sns")
    return otherwise() if service is None else LightTopics(service)


class LightTopics:
    """Publishes batches to SNS topics with the interface of boto3's client. Safe to share between threads."""

    def __init__(
        self,
        service: Service,
        *,
        sleep: Callable[[float], object] = time.sleep,
        luck: Callable[[], float] = random.random,
    ) -> None:
        """Prepare a batch client for SNS; tests replace `sleep` and `luck`."""
        dialect = Dialect(
            name="sns", what="the topic", media=MEDIA, results=_parse_results, error=_parse_error
        )
        self._batches = BatchClient(service, dialect, sleep=sleep, luck=luck)

    def publish_batch(
        self,
        *,
        TopicArn: str,  # noqa: N803  boto3's
        PublishBatchRequestEntries: Sequence[Mapping[str, Any]],  # noqa: N803
    ) -> dict[str, list[dict[str, str]]]:
        """Publish a batch of messages; return which entries were accepted and which failed.

        Raises:
            Unavailable: throttling, an outage, or no answer of SNS's, however often it was tried.
            InvalidRequest: SNS takes the request for malformed, or denies it.
        """
        body = urlencode(list(_form_fields(TopicArn, PublishBatchRequestEntries))).encode()
        return self._batches.send(_ACTION, "", body, PublishBatchRequestEntries)


def _form_fields(topic: str, entries: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Iterate over the form fields of a PublishBatch request, in AWS's Query encoding."""
    yield from (("Action", _ACTION), ("Version", "2010-03-31"), ("TopicArn", topic))
    for number, entry in enumerate(entries, 1):
        place = f"PublishBatchRequestEntries.member.{number}"
        for name, value in entry.items():
            if name != "MessageAttributes":
                yield f"{place}.{name}", value
                continue
            for count, (attribute, parts) in enumerate(value.items(), 1):
                yield f"{place}.{name}.entry.{count}.Name", attribute
                for part, text in parts.items():
                    yield f"{place}.{name}.entry.{count}.Value.{part}", text


def _parse_error(answer: bytes) -> tuple[str, str]:
    """Return code and message of an error answer."""
    texts = {path[-1]: text for path, text in _parse_elements(answer) or () if path[-2:-1] == ("Error",)}
    return texts.get("Code", ""), texts.get("Message", "")


def _parse_results(answer: bytes) -> dict[str, list[dict[str, str]]] | None:
    """Parse which entries SNS accepted and which failed; None if something other than SNS answered."""
    elements = _parse_elements(answer)
    if elements is None:
        return None
    results: dict[str, list[dict[str, str]]] = {"Successful": [], "Failed": []}
    member: dict[str, str] = {}
    for path, text in elements:
        match path:
            case ("PublishBatchResponse", "PublishBatchResult", "Successful" | "Failed", "member", name):
                member[name] = text
            case ("PublishBatchResponse", "PublishBatchResult", "Successful" | "Failed" as kind, "member"):
                results[kind].append(member)
                member = {}
            case _:
                pass
    return results


def _parse_elements(answer: bytes) -> list[tuple[tuple[str, ...], str]] | None:
    """Parse XML into its elements in closing order, each with its path and text; None if it is invalid.

    Only XML as AWS writes it is accepted: no document type, so no entities, and few levels.
    """
    elements: list[tuple[tuple[str, ...], str]] = []
    path: list[str] = []
    texts: list[str] = []

    def start(name: str, _: object) -> None:
        if len(path) == _LEVELS:
            raise ValueError
        path.append(name)
        texts.clear()

    def end(_: str) -> None:
        elements.append((tuple(path), "".join(texts)))
        texts.clear()
        path.pop()

    def refuse(*_: object) -> None:
        raise ValueError

    parser: Any = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = texts.append, refuse
    try:
        parser.Parse(answer, True)
    except (expat.ExpatError, ValueError):
        return None
    return elements
