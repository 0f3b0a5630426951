"""examples/kennel does the same on SQLite and on Epochal's streams."""

from __future__ import annotations

from pathlib import Path

import pytest
from eventsourcing.persistence import StoredEvent

from epochal.contrib.eventsourcing import EpochalApplicationRecorder
from epochal.testing.stores import memory_streams
from examples.kennel.__main__ import main
from examples.kennel.kennel import Dogs
from examples.kennel.moved import copy_events

PRINTED = """\
Rex, version 4: roll over, play dead, fetch
Fido, version 2: fetch
notifications 1 to 6, 'fetch' learned 2 times
"""
SQLITE = {"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": ":memory:"}
EPOCHAL = {"PERSISTENCE_MODULE": "epochal.contrib.eventsourcing", "EPOCHAL_STREAMS_TABLE": ":memory:"}


@pytest.mark.parametrize("settings", [SQLITE, EPOCHAL], ids=["sqlite", "epochal"])
def test_it_prints_the_same_wherever_it_runs(
    settings: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    main()
    assert capsys.readouterr().out == PRINTED


def test_what_sqlite_has_is_copied_with_its_ids_and_the_application_goes_on(tmp_path: Path) -> None:
    old = Dogs(env={**SQLITE, "SQLITE_DBNAME": str(tmp_path / "dogs.db")})
    rex, fido = old.register("Rex"), old.register("Fido")
    old.teach(rex, "roll over", "fetch")
    old.teach(fido, "fetch")
    new = Dogs(env=EPOCHAL)
    assert copy_events(old.recorder, new.recorder) == 5
    assert copy_events(old.recorder, new.recorder) == 5
    everything = new.recorder.select_notifications(None, 10)
    assert everything == old.recorder.select_notifications(None, 10)
    new.teach(rex, "sit")
    assert new.dog(rex).tricks == ["roll over", "fetch", "sit"]
    old.close()


def test_ids_with_gaps_are_not_passed_over_in_silence() -> None:
    class Gap(EpochalApplicationRecorder):
        def select_notifications(self, *args: object, **kwargs: object) -> list:  # type: ignore[override,type-arg]
            return [each for each in super().select_notifications(*args, **kwargs) if each.id != 1]  # type: ignore[arg-type]

    old, new = Gap(memory_streams(), "Dogs"), EpochalApplicationRecorder(memory_streams(), "Dogs")
    old.insert_events([StoredEvent(dog, 1, "t", b"") for dog in ("rex", "fido")])
    with pytest.raises(ValueError, match="ids after 0 have gaps"):
        copy_events(old, new)
    assert new.max_notification_id() is None
