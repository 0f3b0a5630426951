"""docs/guide/importing.md: its commands print what it says of the files that it shows."""

from __future__ import annotations

import contextlib
import io
import random
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from epochal import Event, json_codec
from epochal.care.prices import PRICES
from epochal.cli import main as command_line
from epochal.contrib.transfer.importing.importer import HELD_BYTES, RECENT, WINDOW, StreamImporter
from epochal.contrib.transfer.importing.incoming import Incoming, Row
from epochal.contrib.transfer.importing.kinds import KINDS
from epochal.contrib.transfer.importing.writing import make_dry_run_writer
from epochal.errors import CorruptData
from tests.docs.console import examples
from tests.support.terminal import Terminal

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "importing.md"


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", GUIDE.read_text(), re.DOTALL)


def shown(kind: str) -> str:
    (found,) = blocks(kind)
    return found


def module_of(source: str, name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module as the guide shows it."""
    module = ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    exec(compile(source, name, "exec"), module.__dict__)  # noqa: S102  it is the guide's
    return module


def test_the_guides_commands_print_what_it_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    terminal = Terminal()
    monkeypatch.setattr(command_line, "open_store", lambda _: terminal.store)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders.csv").write_text(shown("csv"))
    (tmp_path / "orders.toml").write_text(shown("toml"))
    module_of(blocks("python")[0], "shop", monkeypatch)
    listed = list(examples(GUIDE))
    assert len(listed) == 5
    for example in listed:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            command_line.main(example.arguments)
        assert example.printed(printed.getvalue()), f"{example.command} prints\n{printed.getvalue()}"


def test_the_guides_upcast_reads_what_was_imported_as_text(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _, source, _ = blocks("python")
    module = module_of(source, "lending", monkeypatch)
    place = tmp_path / "history.csv"
    place.write_text("loan,book,late,at\nh0,b0,false,2024-05-01T09:30:00Z\nh0,b1,true,2024-05-02T09:30:00Z\n")
    terminal = Terminal()
    terminal.lines("import", str(place), "--map", "stream=Loan-{loan},type==Returned,time=at,data=*")
    stored = [*terminal.streams.read("Loan-h0")]
    with pytest.raises(CorruptData, match="late: must be true or false"):
        json_codec(module.Returned).read(stored[0])
    assert [module.returns.read(each) for each in stored] == [
        module.Returned("b0", False),
        module.Returned("b1", True),
    ]
    later = module.returns.encode(module.Returned("b2", True))
    terminal.streams.append("Loan-h0", [later])
    assert module.returns.read([*terminal.streams.read("Loan-h0")][2]) == module.Returned("b2", True)


def test_the_guides_encoded_names_are_those_that_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    module = module_of(blocks("python")[2], "names", monkeypatch)
    assert module.decode_name(module.encode_name("Order-7/ä")) == "Order-7/ä"


def test_the_guide_has_the_bounds_and_the_sources_that_there_are() -> None:
    text = GUIDE.read_text()
    assert f"`--window` events of the source ({WINDOW:,})" in text
    assert f"{HELD_BYTES >> 20} MB of bodies at most, and {RECENT:,} streams" in text
    assert re.findall(r"^\| [^|]+ \| `([a-z-]+)` \|", text[text.index("## Sources") :], re.MULTILINE)[1:] == [
        *KINDS
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("meeting", "row"), [(1, "1"), (5, "5"), (20, "20"), (200, "200")])
def test_what_an_import_costs_is_what_the_guide_says(meeting: int, row: str) -> None:
    found = re.search(rf"^\| {row} \| ([\d.]+) \| ([\d.]+) \|", GUIDE.read_text(), re.MULTILINE)
    assert found is not None
    events = 1_000
    units = StreamImporter(writer=make_dry_run_writer()).run(bodies(events, meeting)).units / events
    assert units <= float(found[1]) < units * 1.25
    assert round(float(found[1]) * 1_000_000 * PRICES["write units"], 2) == pytest.approx(
        float(found[2]), abs=0.011
    )


def bodies(events: int, meeting: int) -> list[Row]:
    """Events of 300 bytes, so many of each stream."""
    luck = random.Random(1)
    return [
        Incoming(
            at="",
            stream=f"Order-{number // meeting}",
            index=number % meeting,
            event=Event.json(
                "Placed",
                {
                    "order": number,
                    "customer": luck.getrandbits(48),
                    "lines": [
                        {"sku": f"SKU-{luck.randrange(99_999):05}", "price": luck.randrange(9_999) / 100}
                        for _ in range(6)
                    ],
                    "note": "to be left at the door",
                },
                timestamp=f"2024-01-02T03:04:05.{luck.randrange(999_999):06}Z",
            ),
        )
        for number in range(events)
    ]
