"""`make contract`: it asks before it goes to an account, and deletes what it has made, also when it is interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from epochal.care.table_creation import Provisioned, create_table
from epochal.contrib.equinox.port import TIPS
from epochal.contrib.local.endpoint import Endpoint
from epochal.contrib.sekiban.items import TAGS
from tests.contract import __main__ as contract

MAKEFILE = Path(__file__).resolve().parents[2] / "Makefile"


@pytest.mark.parametrize(
    "asked", [{"PLACE": "aws"}, {"PLACE": "aws", "REGION": "somewhere"}, {"PLACE": "azure"}, {"PLACE": ""}]
)
def test_a_place_that_is_none_is_refused(asked: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert contract.main(asked) == 2
    assert "PLACE must be local, or aws with a REGION such as eu-west-1" in capsys.readouterr().out


@pytest.mark.parametrize("answer", ["n", "", EOFError()])
def test_an_account_is_used_only_by_whoever_has_read_the_price(
    answer: str | EOFError, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def say(_: str) -> str:
        if isinstance(answer, EOFError):
            raise answer
        return answer

    monkeypatch.setattr("builtins.input", say)
    monkeypatch.setattr(contract, "on_aws", lambda _: pytest.fail("it went to AWS"))
    assert contract.main({"PLACE": "aws", "REGION": "eu-west-1"}) == 1
    said = capsys.readouterr().out
    assert f"some {contract.TABLES} tables on demand" in said
    assert f"{contract.CENTS} cents at most" in said


@pytest.mark.parametrize("interrupted", [False, True])
def test_tables_of_the_run_are_deleted_whatever_ends_it_and_no_others(
    ddbl: Endpoint, interrupted: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    client = ddbl.client("dynamodb")
    create_table(client, "epochal-contract-of-another-run", TIPS)

    def on_aws(region: str) -> Iterator[tuple[Any, dict[str, str]]]:
        yield client, {"EPOCHAL_CONTRACT_REGION": region}

    def tested(place: str, prefix: str, told: dict[str, str], environment: dict[str, str]) -> int:
        assert (place, told, environment["YES"]) == ("aws", {"EPOCHAL_CONTRACT_REGION": "eu-west-1"}, "1")
        for number in range(3):
            create_table(client, f"{prefix}{number}", TIPS)
        if interrupted:
            raise KeyboardInterrupt
        return 7

    monkeypatch.setattr(contract, "on_aws", on_aws)
    monkeypatch.setattr(contract, "tested", tested)
    ended = contract.main({"PLACE": "aws", "REGION": "eu-west-1", "YES": "1"})
    assert ended == (130 if interrupted else 7)
    assert "3 tables deleted" in capsys.readouterr().out
    left = [name for name in client.list_tables()["TableNames"] if name.startswith(contract.NAMED)]
    client.delete_table(TableName="epochal-contract-of-another-run")
    assert left == ["epochal-contract-of-another-run"]


@pytest.mark.slow
def test_a_run_on_dynamodb_local_goes_the_same_way(capfd: pytest.CaptureFixture[str]) -> None:
    """Of both carriers and of asyncio, one test each."""
    ended = contract.main({"PLACE": "local", "ONLY": "test_every_field_of_an_event_comes_back"})
    said = capfd.readouterr().out
    assert ended == 0, said
    assert " passed" in said
    assert "tables deleted" in said


def test_a_table_of_a_run_has_a_ceiling_and_so_have_its_indexes() -> None:
    class Client:
        def create_table(self, **request: Any) -> dict[str, Any]:
            self.request = request
            return {"TableDescription": {"TableStatus": "ACTIVE"}}

        def update_time_to_live(self, **_: Any) -> None:
            pass

    client: Any = Client()
    create_table(client, "tags", TAGS, units=Provisioned(read=4_000, write=4_000))
    ceiling = {"MaxReadRequestUnits": 4_000, "MaxWriteRequestUnits": 4_000}
    assert client.request["OnDemandThroughput"] == ceiling
    assert [each["OnDemandThroughput"] for each in client.request["GlobalSecondaryIndexes"]] == [ceiling]
    create_table(client, "tags", TAGS)
    assert "OnDemandThroughput" not in client.request


def test_make_hands_on_what_is_said_of_the_run() -> None:
    text = MAKEFILE.read_text()
    assert "export PLACE REGION YES ONLY" in text
    assert "-m tests.contract" in text
