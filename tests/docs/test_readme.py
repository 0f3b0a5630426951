"""README.md: its examples run and print what it says, its figures are recomputed, its links lead somewhere."""

from __future__ import annotations

import contextlib
import io
import random
import re
import shlex
from collections.abc import Callable
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from epochal.cli import main as command_line
from epochal.codec import json
from epochal.model.events import Event, Unfold
from epochal.model.outcomes import Appended
from epochal.model.versions import NO_STREAM, ExpectedVersion
from epochal.plan.units import Units
from epochal.store.streams import Streams
from epochal.testing.stores import memory_streams
from tests.docs.console import Example, examples
from tests.support.api import Answer, Api
from tests.support.terminal import Terminal

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
TEXT = README.read_text("utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_the_first_screen_shows_what_it_is_how_to_start_it_code_and_a_picture() -> None:
    first_screen = TEXT.split("\n## ", maxsplit=1)[0]
    assert first_screen.count("\n") < 60
    assert re.findall(r"^```(\w+)$", first_screen, re.MULTILINE) == [
        "sh",
        "python",
        "text",
        "text",
    ]


def test_the_python_in_it_prints_what_it_says() -> None:
    pairs = re.findall(r"^```python\n(.*?)^```\n```text\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert len(pairs) == len(_blocks("python")) >= 3
    names: dict[str, object] = {"__name__": "__main__"}
    for code, said in pairs:
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            exec(compile(code, str(README), "exec"), names)  # noqa: S102  the document is ours
        printed = Example("python", tuple(said.splitlines())).printed(shown.getvalue())
        assert printed, f"{code}\nprints\n{shown.getvalue()}"


def test_the_commands_in_it_print_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(command_line, "open_store", lambda _: terminal.store)
    for example in examples(README):
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            command_line.main(example.arguments)
        terminal.index()
        assert example.printed(shown.getvalue()), f"{example.command} prints\n{shown.getvalue()}"


def test_the_http_requests_in_it_are_answered_as_it_says() -> None:
    api = Api()
    calls = [part for block in _blocks("sh") for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    assert len(calls) == 3
    for call in calls:
        command, _, said = call.replace("\\\n", " ").partition("\n")
        answer = _sent(api, shlex.split(command))
        api.index()
        assert 200 <= answer.status < 300
        assert Example("curl", tuple(said.strip().splitlines())).printed(answer.text), answer.text


def _sent(api: Api, words: list[str]) -> Answer:
    """What curl would have sent, to the API in memory."""
    assert words[:3] == ["curl", "--aws-sigv4", "aws:amz:eu-west-1:execute-api"]
    url = next(urlsplit(word.replace("$API", "https://api")) for word in words if word.startswith("$API"))
    given = dict(pairwise(words))
    headers = {
        name: value for name, _, value in (w.partition(": ") for w in words if re.match(r"[\w-]+: ", w))
    }
    body = given.get("-d")
    content = None if body is None else json.loads(body)
    return api.call("GET" if body is None else "POST", url.path, content, query=url.query, headers=headers)


def test_the_make_targets_in_it_exist() -> None:
    wanted = set(re.findall(r"^make (\w+)", "\n".join(_blocks("sh")), re.MULTILINE))
    targets = set(re.findall(r"^(\w+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert wanted
    assert wanted <= targets


DOCUMENTS = sorted(
    str(path.relative_to(ROOT)) for path in (README, *ROOT.glob("docs/*.md"), *ROOT.glob("docs/guide/*.md"))
)


def test_every_guide_is_reached_from_here() -> None:
    reached, left = set(), [README]
    while left:
        path = left.pop()
        links = re.findall(r"\]\((?!https?:)([^)#]+\.md)", path.read_text("utf-8"))
        found = {(path.parent / link).resolve() for link in links} - reached
        reached |= found
        left += found
    assert set((ROOT / "docs" / "guide").glob("*.md")) <= reached


def test_words_that_are_explained_are_used() -> None:
    words = (ROOT / "docs" / "guide" / "words.md").read_text("utf-8")
    rest = " ".join((ROOT / each).read_text("utf-8") for each in DOCUMENTS if not each.endswith("words.md"))
    explained = re.findall(r"\*\*(.+?)\*\*", words)
    assert len(explained) > 20
    assert [word for word in explained if word.lower() not in rest.lower()] == []


# ------------------------------------------------------------------------------------------------------- what it costs

Workload = Callable[[Streams, random.Random], int]


def _event(luck: random.Random, size: int = 300) -> Event:
    return Event(type="Happened", data=luck.randbytes(size))


def _append(
    streams: Streams, stream: str, events: list[Event], expected: ExpectedVersion, **more: object
) -> Appended:
    outcome = streams.append(stream, events, expected=expected, **more)  # type: ignore[arg-type]
    assert isinstance(outcome, Appended)
    return outcome


def short_streams(streams: Streams, luck: random.Random, size: int = 300) -> int:
    """200 streams, 10 times load and append."""
    for number in range(200):
        for _ in range(10):
            found = streams.load(f"Short-{number}")
            _append(
                streams, f"Short-{number}", [_event(luck, size)], NO_STREAM if found is None else found.token
            )
    return 2_000


def one_stream(streams: Streams, luck: random.Random, *, snapshot: bool = False) -> int:
    """1,000 appends, each on the token of the one before."""
    expected: ExpectedVersion = NO_STREAM
    for _ in range(1_000):
        unfolds = [Unfold(type="Snapshot", data=luck.randbytes(1_000))] if snapshot else None
        expected = _append(streams, "One-0", [_event(luck)], expected, unfolds=unfolds).token
    return 1_000


def batches(streams: Streams, luck: random.Random) -> int:
    """100 appends of 10 events."""
    expected: ExpectedVersion = NO_STREAM
    for _ in range(100):
        expected = _append(streams, "Batch-0", [_event(luck) for _ in range(10)], expected).token
    return 1_000


@cache
def _cost(workload: Workload) -> Units:
    """Units of one event of a workload, by AWS's billing rules."""
    streams = memory_streams()
    events = workload(streams, random.Random(7))
    spent = streams.driver.meter.units
    return Units(read=spent.read / events, write=spent.write / events)


def _said(row: str) -> float:
    """Epochal's figure in a row of the table of costs."""
    line = next(line for line in TEXT.splitlines() if line.startswith(f"| {row}"))
    return float(line.split("|")[2].replace(",", ""))


@pytest.mark.parametrize(
    ("row", "workload", "kind"),
    [
        ("short streams, load and append: write units", short_streams, "write"),
        ("… read units", short_streams, "read"),
        ("one stream of 1,000 events, loaded now and then: write units", one_stream, "write"),
        ("… with a 1 KB snapshot each time", partial(one_stream, snapshot=True), "write"),
        ("batches of 10: write units", batches, "write"),
    ],
)
@pytest.mark.slow
def test_the_costs_in_it_are_what_the_library_costs(row: str, workload: Workload, kind: str) -> None:
    assert round(getattr(_cost(workload), kind), 1) == _said(row)


@pytest.mark.slow
def test_what_it_says_of_events_of_a_kilobyte_is_so() -> None:
    small, large = _cost(short_streams), _cost(partial(short_streams, size=1_000))
    (said,) = re.findall(r"([\d.]+) write units at 1 KB against ([\d.]+) at 300", " ".join(TEXT.split()))
    assert (str(round(large.write, 1)), str(round(small.write, 1))) == said


@pytest.mark.slow
def test_a_replay_returns_every_event_of_a_stream_beyond_the_size_of_a_query() -> None:
    streams, luck = memory_streams(), random.Random(7)
    expected: ExpectedVersion = NO_STREAM
    for _ in range(500):
        expected = _append(streams, "Long-0", [_event(luck, 1_000) for _ in range(10)], expected).token
    assert sum(1 for _ in streams.read("Long-0")) == _said("replay of 5,000 events of 1 KB returns") == 5_000
