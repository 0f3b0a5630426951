"""Checks of optional packages, and of an update: each passes where all is well, and fails where its claim is broken."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from epochal.contrib.lake.proofs import lake
from epochal.contrib.proving import store as checks
from epochal.contrib.proving import updating
from epochal.contrib.proving.deployed_stacks import DeployedStack
from epochal.contrib.proving.proof import CATEGORY, Broken, ProofRun, Unproven, prove
from epochal.contrib.proving.updating import SETTING, changed_setting
from epochal.contrib.publish.proofs import publications_of, publish
from epochal.contrib.publish.publication import PUBLISH, Publication
from epochal.contrib.sql.proofs import sql_swap
from epochal.reactions.definition import Delivery, Reaction
from epochal.reactions.group_member import Member
from epochal.reactions.reactor import Reactor
from tests.contrib.proving.stage import Stage, deployed_as, function


@pytest.fixture(autouse=True)
def _waits_a_sixth_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "FEED_SECONDS", checks.FEED_SECONDS / 6)


@dataclass
class Account:
    """A stage with functions and clients for them, where `run` is called whenever the proof sleeps."""

    resources: dict[str, dict[str, Any]]
    stage: Stage = field(default_factory=Stage)
    run: Callable[[float], object] = lambda _: None
    clients: dict[str, Any] = field(default_factory=dict)

    def get_function_configuration(self, FunctionName: str) -> dict[str, Any]:  # noqa: N803  Lambda's name
        return deployed_as(FunctionName, self.resources[FunctionName]["Properties"])

    def proof(self, **more: Any) -> ProofRun:
        stack = DeployedStack(
            name="shop",
            resources=self.resources,
            physical={name: name for name in self.resources},
            parameters={"BootstrapVersion": "/cdk/version"},
        )
        proof = self.stage.proof((stack,), lambda service: self.clients.get(service, self))
        return replace(proof, sleep=self.sleep, **more)

    def sleep(self, seconds: float) -> None:
        self.stage.sleep(seconds)
        self.run(seconds)


def publisher(**changed: Any) -> dict[str, Any]:
    publication = Publication(
        **{"name": "publish-orders", "to": "queue", "place": "https://queue", "source": "shop", **changed}
    )
    return function("publisher", EPOCHAL_REACTION=publication.name, **{PUBLISH: publication.text()})


class TestPublishing:
    def account(self, handle: Callable[[Delivery], None], **changed: Any) -> Account:
        account = Account({"publisher": publisher(**changed)})
        feed = account.stage.api.deployment.feed
        reaction = Reaction(name="publish-orders", handler=handle)
        reactor = Reactor(member=Member(reaction=reaction, reader=feed))

        def run(_: float) -> None:
            for each in feed.partitions():
                reactor.run(each.partition, seconds=10)

        account.run = run
        return account

    def test_a_recipient_that_takes_events_is_seen_to(self) -> None:
        sent = list[str]()
        account = self.account(lambda delivery: sent.extend(each.stream for each in delivery.each()))
        proof = account.proof()
        assert publish(proof).startswith("1 recipients (queue), in ")
        assert sent == [proof.name("publish")]

    def test_one_that_takes_none_is_noticed(self) -> None:
        def refuse(_: Delivery) -> None:
            raise ConnectionError("nobody is there")

        with pytest.raises(Broken, match="publish-orders has (1 parked streams|not sent the event)"):
            publish(self.account(refuse).proof())

    def test_a_function_that_does_not_run_is_noticed(self) -> None:
        account = Account({"publisher": publisher()})
        with pytest.raises(Broken, match="has not sent the event to https://queue"):
            publish(account.proof())

    @pytest.mark.parametrize("changed", [{"categories": ("Order",)}, {"types": ("Placed",)}])
    def test_publications_of_other_events_prove_nothing(self, changed: dict[str, Any]) -> None:
        proof = Account({"publisher": publisher(**changed)}).proof()
        assert publications_of(proof) == []
        with pytest.raises(Unproven, match="publishes no events of EpochalProof"):
            publish(proof)
        named = {"categories": ("Order", CATEGORY), "types": ("Proved",)}
        assert len(publications_of(Account({"publisher": publisher(**named)}).proof())) == 1


class Athena:
    """Counts what a test says it counts; has a view only on AWS."""

    def __init__(self, table: list[int], view: int, state: str = "SUCCEEDED") -> None:
        self.table, self.view, self.state = table, view, state
        self.asked = list[str]()
        self.meta = SimpleNamespace(endpoint_url="https://athena.eu-west-1.amazonaws.com")

    def start_query_execution(self, QueryString: str, WorkGroup: str) -> dict[str, str]:  # noqa: N803
        assert WorkGroup == "shop-lake"
        self.asked.append(QueryString)
        return {"QueryExecutionId": "1"}

    def get_query_execution(self, QueryExecutionId: str) -> Any:  # noqa: N803, ARG002
        return {"QueryExecution": {"Status": {"State": self.state, "StateChangeReason": "no such table"}}}

    def get_query_results(self, QueryExecutionId: str) -> Any:  # noqa: N803, ARG002
        count = self.view if '"events"' in self.asked[-1] else self.table.pop(0)
        return {"ResultSet": {"Rows": [{"Data": []}, {"Data": [{"VarCharValue": str(count)}]}]}}


class TestALake:
    def proof(self, athena: Athena, **changed: Any) -> ProofRun:
        settings = {"name": "lake", "to": "firehose", "place": "shop-lake", "as_rows": True, **changed}
        hints = {"ExtendedS3DestinationConfiguration": {"BufferingHints": {"IntervalInSeconds": 60}}}
        resources = {
            "publisher": publisher(**settings),
            "shop-lake": {"Type": "AWS::Athena::WorkGroup", "Properties": {}},
        }
        delivery = {"Type": "AWS::KinesisFirehose::DeliveryStream", "Properties": hints}
        account = Account(resources, clients={"athena": athena})
        proof = account.proof()
        stack = DeployedStack(name="buffers", resources={"D": delivery}, physical={"D": "shop-lake"})
        return replace(
            proof,
            stacks=[*proof.stacks, stack],
            written={"EpochalProof-m1-a": [3, 4, 5], f"{CATEGORY}:m1-tag": [6]},
        )

    def test_one_that_has_all_events_once_is_proven(self) -> None:
        athena = Athena(table=[0, 2, 3], view=3)
        assert lake(self.proof(athena)) == "3 events in shop-lake, after 60 s"
        first, *_, last = athena.asked
        assert '"shop_lake"."deliveries"' in first
        assert "day >= current_date - interval '1' day" in first
        assert '"shop_lake"."events"' in last

    def test_one_that_lacks_an_event_is_noticed(self) -> None:
        with pytest.raises(Broken, match="after 180 s, the lake has 2 of 3 events of EpochalProof-m1-a"):
            lake(self.proof(Athena(table=[2] * 9, view=3)))

    def test_a_view_that_has_an_event_twice_is_noticed(self) -> None:
        with pytest.raises(Broken, match="the view of the lake has 4 rows"):
            lake(self.proof(Athena(table=[3], view=4)))

    def test_a_query_that_athena_refuses_is_noticed(self) -> None:
        with pytest.raises(Broken, match="FAILED, no such table"):
            lake(self.proof(Athena(table=[3], view=3, state="FAILED")))

    def test_without_one_nothing_is_proven(self) -> None:
        with pytest.raises(Unproven, match="has no lake"):
            lake(Account({}).proof())
        with pytest.raises(Unproven, match="no lake receives events"):
            lake(self.proof(Athena([3], 3), categories=("Order",)))


class TestASwap:
    def test_a_model_is_swapped_and_nothing_stays_but_a_row(self, tmp_path: Path) -> None:
        proof = replace(Account({}).proof(), sql=f"sqlite:///{tmp_path / 'models.db'}")
        assert sql_swap(proof) == "3 generations on sqlite"
        proof.remove()
        assert proof.left == ["the row of epochal_proof_m1 in epochal_live of the database"]
        with pytest.raises(Broken, match="after a swap"):
            self.swapped_wrongly(proof)

    @staticmethod
    def swapped_wrongly(proof: ProofRun) -> None:
        with pytest.MonkeyPatch.context() as patch:
            from epochal.contrib.sql.read_models import SqlReadModels  # noqa: PLC0415  as the check does

            patch.setattr(SqlReadModels, "live", lambda models, name: models.open(name, 7))
            sql_swap(replace(proof, marker="m2"))

    def test_without_a_database_it_is_not_proven(self) -> None:
        with pytest.raises(Unproven, match="name one with --sql"):
            sql_swap(Account({}).proof())


class CloudFormation:
    """Updates functions of a template, unless a test says how an update ends."""

    def __init__(self, account: Account, ends: str = "UPDATE_COMPLETE", looks: int = 3) -> None:
        self.account, self.ends, self.looks = account, ends, looks
        self.template = {"Resources": account.resources}
        self.updates, self.waited = list[str](), 0

    def get_template(self, StackName: str) -> Any:  # noqa: N803
        assert StackName == "shop"
        return {"TemplateBody": json.dumps(self.template)}

    def update_stack(self, **asked: Any) -> None:
        assert asked["Parameters"] == [{"ParameterKey": "BootstrapVersion", "UsePreviousValue": True}]
        self.waited = 0
        resources = json.loads(asked["TemplateBody"])["Resources"]
        self.updates.append(resources["epochal-indexer"]["Properties"]["Environment"]["Variables"][SETTING])
        if self.ends == "UPDATE_COMPLETE":
            self.account.resources.update(resources)

    def describe_stacks(self, StackName: str) -> Any:  # noqa: N803, ARG002
        self.waited += 1
        status = self.ends if self.waited >= self.looks else "UPDATE_IN_PROGRESS"
        return {"Stacks": [{"StackStatus": status}]}


class TestAnUpdate:
    def account(self, **ends: Any) -> tuple[Account, CloudFormation]:
        account = Account({"epochal-indexer": function("epochal-indexer", **{SETTING: "INFO"})})
        account.clients["cloudformation"] = CloudFormation(account, **ends)
        return account, account.clients["cloudformation"]

    def test_a_setting_is_changed_and_changed_back_and_no_append_is_lost(self) -> None:
        account, cloudformation = self.account()
        proof = account.proof(updates=True)
        assert changed_setting(proof).startswith(f"{SETTING} of epochal-indexer to DEBUG and back, in ")
        assert cloudformation.updates == ["DEBUG", "INFO"]
        assert len([*proof.store.streams.read(proof.name("update"))]) == 6
        proof.remove()
        assert cloudformation.updates == ["DEBUG", "INFO"]

    def test_an_update_that_is_rolled_back_is_noticed_and_not_repeated(self) -> None:
        account, cloudformation = self.account(ends="UPDATE_ROLLBACK_COMPLETE")
        proof = account.proof(updates=True)
        (result,) = prove(proof, [changed_setting], lambda _: None)
        assert (result.verdict, "ended in UPDATE_ROLLBACK_COMPLETE" in result.detail) == ("failed", True)
        assert cloudformation.updates == ["DEBUG"]
        assert proof.left[0] == "updates of the stack shop"

    def test_a_proof_that_is_interrupted_changes_the_setting_back(self) -> None:
        account, cloudformation = self.account()

        def interrupt(_: float) -> None:
            raise KeyboardInterrupt

        account.run = interrupt
        proof = account.proof(updates=True)
        with pytest.raises(KeyboardInterrupt):
            changed_setting(proof)
        account.run = lambda _: None
        proof.remove()
        assert cloudformation.updates == ["DEBUG", "INFO"]

    def test_a_function_that_does_not_get_the_setting_is_noticed(self) -> None:
        account, cloudformation = self.account()
        cloudformation.account = Account({})
        with pytest.raises(Broken, match=f"has {SETTING} 'INFO' after the update, not 'DEBUG'"):
            changed_setting(account.proof(updates=True))

    def test_without_leave_or_with_a_large_template_nothing_is_updated(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        account, cloudformation = self.account()
        with pytest.raises(Unproven, match="allow it with --update"):
            changed_setting(account.proof())
        monkeypatch.setattr(updating, "TEMPLATE_BYTES", 100)
        with pytest.raises(Unproven, match="the templates of shop have more than 100 bytes"):
            changed_setting(account.proof(updates=True))
        assert cloudformation.updates == []
