"""docs/guide/moving.md: its commands print what it says, and a reaction is moved as it says."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from epochal import Delivery, Event, reaction
from epochal.cli.main import epochal
from epochal.contrib.transfer.copying.sources import StreamSource
from epochal.contrib.transfer.copying.stream_copy import StreamCopier
from epochal.testing.feeds import MemoryStore
from tests.docs.console import examples
from tests.support.terminal import Terminal

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "moving.md"


def test_the_guides_commands_print_what_it_says() -> None:
    terminal = Terminal(named="tips", layouts=("tips",))
    store = terminal.store
    for stream, count in (("Cart-1", 3), ("Order-1", 2)):
        terminal.streams.append(stream, [Event(type="Opened")] * count)
    for example in (listed := list(examples(GUIDE))):
        terminal.index()
        printed = CliRunner().invoke(epochal, example.arguments, obj=lambda: store).output
        assert example.printed(printed), f"{example.command} prints\n{printed}"
    assert len(listed) == 6


def test_a_reaction_that_changes_its_source_as_the_guide_says_gets_no_copy() -> None:
    told: list[str] = []

    def note(delivery: Delivery) -> None:
        told.extend(event.type for event in delivery.events)

    feed = MemoryStore()
    feed.tips.append("Cart-1", [Event(type="Opened")])
    feed.react(reaction(name="notes", sources=["tips"])(note))
    StreamCopier(source=StreamSource(feed.tips), target=feed.streams).copy("Cart-1")
    moved = reaction(name="notes", sources=["pages"], start="tail")(note)
    feed.react(moved)
    feed.streams.append("Cart-1", [Event(type="Paid")])
    feed.react(moved)
    assert told == ["Opened", "Paid"]
