"""README.md and the tour: their examples run and print what they say, the README is short, the guides are in reach."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from epochal.cli import main as command_line
from epochal.codec import json
from tests.docs.console import Example, examples
from tests.support.api import Answer, Api
from tests.support.terminal import Terminal

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
TOUR = ROOT / "docs" / "guide" / "tour.md"
TEXT = README.read_text("utf-8")


def _blocks(language: str, page: Path = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def test_it_is_read_in_three_minutes() -> None:
    assert TEXT.count("\n") <= 150


def test_the_first_screen_shows_what_it_is_how_to_start_it_code_and_a_picture() -> None:
    first_screen = TEXT.split("\n## ", maxsplit=1)[0]
    assert first_screen.count("\n") < 60
    assert re.findall(r"^```(\w+)$", first_screen, re.MULTILINE) == [
        "sh",
        "python",
        "text",
        "text",
    ]


@pytest.mark.parametrize(("page", "examples"), [(README, 1), (TOUR, 2)], ids=["README", "tour"])
def test_the_python_in_it_prints_what_it_says(page: Path, examples: int) -> None:
    text = page.read_text("utf-8")
    pairs = re.findall(r"^```python\n(.*?)^```\n```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(pairs) == len(_blocks("python", page)) == examples
    names: dict[str, object] = {"__name__": "__main__"}
    for code, said in pairs:
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            exec(compile(code, str(page), "exec"), names)  # noqa: S102  the document is ours
        printed = Example("python", tuple(said.splitlines())).printed(shown.getvalue())
        assert printed, f"{code}\nprints\n{shown.getvalue()}"


@pytest.mark.slow
def test_the_commands_of_the_tour_print_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(command_line, "open_store", lambda _: terminal.store)
    for example in examples(TOUR):
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            command_line.main(example.arguments)
        terminal.index()
        assert example.printed(shown.getvalue()), f"{example.command} prints\n{shown.getvalue()}"


def test_the_http_requests_of_the_tour_are_answered_as_it_says() -> None:
    api = Api()
    calls = [
        part for block in _blocks("sh", TOUR) for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    ]
    assert len(calls) == 2
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
