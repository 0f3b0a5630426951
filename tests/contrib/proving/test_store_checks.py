"""Checks of appends, the feed, uploads, catch-ups and quarantine: each passes where all is well, and fails where the
thing that it claims is broken.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ClientError

from epochal.care.status import standings
from epochal.contrib.processes import Append, Call, Done, Process, process_of
from epochal.contrib.proving import store as checks
from epochal.contrib.proving.deployed_stacks import DeployedStack
from epochal.contrib.proving.proof import CATEGORY, Broken, ProofRun, Unproven, prove
from epochal.contrib.proving.signed_http import Answer
from epochal.contrib.proving.writers import Outcome, ProofWriter, StreamWriter, writers_of
from epochal.contrib.timers.engine import Engine, engine_of
from epochal.contrib.timers.protocol import Sent, Wake
from epochal.layout.tables import TIMERS
from epochal.model.events import Event
from epochal.reactions.definition import Delivery, Reaction
from epochal.reactions.group_member import Member
from epochal.reactions.reactor import Reactor
from epochal.settings import Settings
from epochal.testing.stores import memory_tables
from examples.proof.process import Answered, Asked, Proving
from tests.contrib.proving.stage import Stage, deployed_as, function
from tests.support.api import Api
from tests.support.wake_ups import WakeUps

LABELS = [each.label for each in writers_of(Stage().proof())]


@pytest.fixture(autouse=True)
def _waits_a_sixth_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "FEED_SECONDS", checks.FEED_SECONDS / 6)


@pytest.fixture
def stage() -> Stage:
    return Stage()


def writer(proof: ProofRun, label: str) -> ProofWriter:
    return next(each for each in writers_of(proof) if each.label == label)


def stream_writer(proof: ProofRun) -> StreamWriter:
    found = writer(proof, "pages by the library")
    assert isinstance(found, StreamWriter)
    return found


# ------------------------------------------------------------------------------------------------------------- appends


def test_every_layout_is_written_by_the_library_and_over_http() -> None:
    assert sorted(LABELS) == sorted(
        f"{what} {how}"
        for what in ("pages", "tips", "journal", "tags in pages", "tags in dcb")
        for how in ("by the library", "over HTTP")
    )


@pytest.mark.slow
@pytest.mark.parametrize("label", LABELS)
def test_appends_hold_in_memory_and_what_was_acknowledged_is_told(stage: Stage, label: str) -> None:
    proof = stage.proof()
    each = writer(proof, label)
    assert checks.appends(proof, writer=each) == "8 events, 3 races of 4"
    assert proof.written[each.stream] == each.read()


class Double(StreamWriter):
    """A key is forgotten: its repeat is another append."""

    def append(self, numbers: Any, *, state: Any = None, key: str | None = None) -> Outcome:  # noqa: ARG002  that is what is broken
        return super().append(numbers, state=state)


class Blind(StreamWriter):
    """Whatever a writer expects is ignored."""

    def append(self, numbers: Any, *, state: Any = None, key: str | None = None) -> Outcome:  # noqa: ARG002
        return super().append(numbers, key=key)


class Lying(StreamWriter):
    """A repeat is told as one, and is written all the same."""

    def append(self, numbers: Any, *, state: Any = None, key: str | None = None) -> Outcome:
        made = super().append(numbers, state=state)
        again = key is not None and len(self.read()) != len({*self.read()})
        return "again" if again else made


class Losing(StreamWriter):
    """The last event is acknowledged, and gone."""

    def read(self) -> list[int]:
        return super().read()[:-1]


class Reversed(StreamWriter):
    def read(self) -> list[int]:
        return super().read()[::-1]


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (Double, "an append with a repeated key was made"),
        (Blind, "4 of 4 writers at the same version won"),
        (Lying, "read back, 2 events were read more than once"),
        (Losing, "read back, 1 of 8 events are missing"),
        (Reversed, "read back, the events are out of order"),
    ],
)
def test_appends_fail_where_a_promise_is_broken(stage: Stage, broken: type[StreamWriter], words: str) -> None:
    proof = stage.proof()
    whole = stream_writer(proof)
    with pytest.raises(Broken, match=words):
        checks.appends(proof, writer=broken(whole.label, whole.stream, whole.store))


def test_bulk_appends_hold_in_memory_and_the_feed_has_them(stage: Stage) -> None:
    proof = stage.proof()
    assert checks.bulk(proof).startswith("6 appends to 2 streams")
    assert [len(each) for each in proof.written.values()] == [3, 2]
    assert checks.feed(proof, read=checks.feed_by_library).startswith("5 events of 2 streams")


@pytest.mark.parametrize(
    ("member", "words"),
    [
        ("idempotencyKey", r"the appends returned \[409, 409, 409"),
        ("expected", r"the appends returned \[201, 201, 201, 201"),
    ],
)
def test_bulk_appends_fail_where_a_member_of_each_is_ignored(stage: Stage, member: str, words: str) -> None:
    proof = stage.proof()

    def ignoring(method: str, path: str, body: Any = None, **more: Any) -> Answer:
        if path == "/appends":
            body = {"appends": [{k: v for k, v in each.items() if k != member} for each in body["appends"]]}
        return stage.http(method, path, body, **more)

    with pytest.raises(Broken, match=words):
        checks.bulk(replace(proof, http=ignoring))


def test_bulk_appends_fail_where_an_acknowledged_one_is_missing_or_a_repeat_is_not_told(stage: Stage) -> None:
    def losing(_: str, path: str, answer: Answer) -> Answer:
        if path != "/appends":
            found = answer.json
            found["events"] = found["events"][:-1]
            return replace(answer, content=json.dumps(found).encode())
        return answer

    def forgetful(_: str, path: str, answer: Answer) -> Answer:
        return replace(answer, content=answer.content.replace(b'"replayed":true', b'"replayed":false'))

    for answers, words in (
        (losing, "read back, 1 of 3 events are missing"),
        (forgetful, "were not reported as replayed"),
    ):
        stage = Stage(answers=answers)
        with pytest.raises(Broken, match=words):
            checks.bulk(stage.proof())


def test_an_api_that_does_not_serve_the_type_of_aggregates_proves_nothing_of_them() -> None:
    stage = Stage()
    stage.api.types = ("order",)
    proof = stage.proof()
    with pytest.raises(Unproven, match="add EpochalProof to aggregate_types"):
        checks.appends(proof, writer=writer(proof, "journal over HTTP"))


def test_without_an_api_nothing_is_proven_over_http(stage: Stage) -> None:
    proof = replace(stage.proof(), http=None)
    with pytest.raises(Unproven, match="--api"):
        checks.appends(proof, writer=writer(proof, "pages over HTTP"))
    with pytest.raises(Unproven, match="--api"):
        checks.uploads(proof)


# ---------------------------------------------------------------------------------------------------------------- feed

READS = [checks.feed_by_library, checks.feed_over_http]


def written(stage: Stage) -> ProofRun:
    """A proof that has written to two streams and a tag."""
    proof = stage.proof()
    for label in ("pages by the library", "tips by the library", "tags in pages by the library"):
        checks.appends(proof, writer=writer(proof, label))
    return proof


@pytest.mark.parametrize("read", READS)
def test_the_feed_has_everything_once_and_in_order(stage: Stage, read: checks.Read) -> None:
    proof = written(stage)
    assert checks.feed(proof, read=read).startswith("24 events of 3 streams")


@pytest.mark.slow
@pytest.mark.parametrize("read", READS)
def test_an_event_that_never_comes_is_missed(stage: Stage, read: checks.Read) -> None:
    proof = written(stage)
    stage.sleep(0)
    stage.indexes = False
    late = stream_writer(proof)
    proof.written[late.stream] += (numbers := proof.numbers(1))
    late.append(numbers)
    with pytest.raises(Broken, match="pages-library: 1 of 9 events are missing"):
        checks.feed(proof, read=read)
    assert stage.now >= checks.FEED_SECONDS


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda items: items[:-1], "1 of 8 events are missing"),
        (lambda items: [*items, items[-1]], "1 events were read more than once"),
        (lambda items: [items[1], items[0], *items[2:]], "out of order"),
        (lambda items: [*items, (items[0][0], 99)], "never acknowledged"),
        (
            lambda items: [*items, ("EpochalProof-m1-of-nobody", 1)],
            "of-nobody: 1 events were read that were never acknowledged",
        ),
    ],
)
def test_a_feed_that_loses_doubles_or_disorders_fails(
    stage: Stage, change: Callable[[Any], Any], words: str
) -> None:
    proof = stage.proof()
    checks.appends(proof, writer=stream_writer(proof))

    def read(of: ProofRun, partition: int, start: str) -> tuple[list[tuple[str, int]], str]:
        items, at = checks.feed_by_library(of, partition, start)
        return (change(items) if items else items), at

    with pytest.raises(Broken, match=words):
        checks.feed(proof, read=read)


def test_a_feed_of_nothing_is_not_proven(stage: Stage) -> None:
    with pytest.raises(Unproven, match="nothing was appended"):
        checks.feed(stage.proof(), read=checks.feed_by_library)


# ------------------------------------------------------------------------------------------------------------- uploads


class Bucket:
    """The API, with S3 behind it as far as an upload goes. What a test names in `lets` is not refused."""

    def __init__(self, stage: Stage, lets: str = "") -> None:
        self.stage, self.lets = stage, lets
        self.objects = stage.api.bodies.objects
        self.body = b""

    def __call__(self, method: str, path: str, body: Any = None, **more: Any) -> Answer:
        if "://" in path:
            return Answer(status=self.put(path, body, more["headers"]), headers={}, content=b"")
        if more.get("signed") is False:
            return Answer(status=200 if self.lets == "api" else 403, headers={}, content=b"{}")
        found = self.stage.http(method, path, body, **more)
        if path == "/bodies":
            signed = json.loads(found.content)
            signed["headers"]["if-none-match"] = "*"
            return replace(found, content=json.dumps(signed).encode())
        if self.lets == "missing" and 400 <= found.status < 500:
            return replace(found, status=201)
        return found

    def put(self, url: str, body: bytes, headers: dict[str, str]) -> int:
        address = urlsplit(url)
        key = address.path.removeprefix("/")
        if not address.query:
            return 200 if self.lets == "unsigned" else 403
        if "if-none-match" not in headers:
            return 200 if self.lets == "condition" else 403
        if not key.endswith(hashlib.sha256(body).hexdigest()):
            return 200 if self.lets == "digest" else 400
        if key in self.objects:
            return 200 if self.lets == "again" else 412
        self.objects[key] = body
        return 200


def test_an_upload_is_let_through_once_and_claimed(stage: Stage) -> None:
    proof = replace(stage.proof(), http=Bucket(stage))
    assert checks.uploads(proof).startswith("1,000,000 bytes")
    assert proof.left == ["an object of 1,000,000 bytes in the bucket, to which nothing refers any more"]


@pytest.mark.parametrize(
    ("lets", "words"),
    [
        ("api", "without a signature returned 200"),
        ("digest", "other bytes of the same length: returned 200"),
        ("condition", "a missing condition: returned 200"),
        ("unsigned", "no signature: returned 200"),
        ("again", "the same upload again: returned 200, not 412"),
        ("missing", "a claim of a body that was never uploaded returned 201"),
    ],
)
def test_an_upload_that_should_be_refused_and_is_not_fails(stage: Stage, lets: str, words: str) -> None:
    proof = replace(stage.proof(), http=Bucket(stage, lets))
    with pytest.raises(Broken, match=words):
        checks.uploads(proof)


def test_an_upload_that_is_read_back_as_something_else_fails(stage: Stage) -> None:
    class Spoiling(Bucket):
        def put(self, url: str, body: bytes, headers: dict[str, str]) -> int:
            status = super().put(url, body, headers)
            if status == 200:
                key = urlsplit(url).path.removeprefix("/")
                self.objects[key] = bytes(len(body))
            return status

    proof = replace(stage.proof(), http=Spoiling(stage))
    result = prove(proof, [each for each in checks.store_checks(proof) if each.name == "uploads"], print)
    assert result[0].verdict == "failed"


# ------------------------------------------------------------------------------------------------------------ catch-up


class Reacting:
    """A stage whose reaction `proof` runs whenever the proof sleeps: so many events, and then the next invocation.

    Attributes:
        hops: invocations after which Lambda takes the chain for a loop.
    """

    def __init__(self, *, hops: float = float("inf")) -> None:
        self.stage, self.hops = Stage(), hops
        self.runs, self.given = 0, 0
        template = function("epochal-dev-reaction-proof", EPOCHAL_REACTION="proof")
        physical = {"Proof": "epochal-dev-reaction-proof"}
        self.stack = DeployedStack(
            name="epochal-dev-reactions", resources={"Proof": template}, physical=physical
        )
        reaction = Reaction(
            name="proof", handler=self.handle, categories=frozenset({CATEGORY}), max_events=1, attempts=1
        )
        reader = self.stage.api.deployment.feed
        driver = replace(reader.driver, clock=lambda: float(self.given))
        self.reactor = Reactor(member=Member(reaction=reaction, reader=reader.on(driver)))

    def handle(self, delivery: Delivery) -> None:
        self.given += len(delivery.events)

    def get_function_configuration(self, FunctionName: str) -> dict[str, Any]:  # noqa: N803  Lambda's name
        return deployed_as(FunctionName, self.stack.resources["Proof"]["Properties"], Timeout=10)

    def proof(self) -> ProofRun:
        proof = self.stage.proof((self.stack,), lambda _: self)
        return replace(proof, sleep=self.sleep)

    def sleep(self, seconds: float) -> None:
        self.stage.sleep(seconds)
        if self.runs < self.hops:
            self.runs += 1
            for each in self.reactor.member.reader.partitions():
                self.reactor.run(each.partition, seconds=checks.EVENTS_A_HOP)


def test_a_reaction_is_seen_to_catch_up_over_twenty_invocations() -> None:
    reacting = Reacting()
    assert checks.catch_up(reacting.proof()).startswith("352 events, 20 invocations or more")
    assert (reacting.given, reacting.runs >= 20) == (352, True)


def test_a_stage_that_nobody_has_used_yet_proves_its_catch_up() -> None:
    reacting = Reacting()
    proof = replace(reacting.proof(), store=(fresh := Api(types=(CATEGORY,))).deployment)
    reacting.stage.api = fresh
    reacting.reactor = Reactor(
        member=Member(
            reaction=reacting.reactor.member.reaction,
            reader=fresh.deployment.feed.on(
                replace(fresh.deployment.feed.driver, clock=lambda: float(reacting.given))
            ),
        )
    )
    assert not proof.store.feed.partitions()
    assert checks.catch_up(proof).startswith("352 events")


@pytest.mark.slow
def test_a_chain_that_lambda_ends_after_sixteen_calls_is_noticed() -> None:
    with pytest.raises(Broken, match="Lambda stops chains of about 16 calls as a loop"):
        checks.catch_up(Reacting(hops=16).proof())


def test_a_stage_without_the_reaction_proves_no_catch_up(stage: Stage) -> None:
    with pytest.raises(Unproven, match="no reaction called proof"):
        checks.catch_up(stage.proof())


# ------------------------------------------------------------------------------------------------------------- process


class Processing:
    """A stage whose process runs whenever the proof sleeps."""

    def __init__(self, rules: Process | None = None) -> None:
        self.stage, self.rules = Stage(), rules or process_of(Proving)
        template = function("epochal-dev-reaction-proof", EPOCHAL_REACTION=f"{checks.PROCESS}-outbox")
        self.stack = DeployedStack(
            name="epochal-dev-reactions", resources={"Proof": template}, physical={"Proof": "proof"}
        )

    def get_function_configuration(self, FunctionName: str) -> dict[str, Any]:  # noqa: N803  Lambda's name
        return deployed_as(FunctionName, self.stack.resources["Proof"]["Properties"])

    def proof(self) -> ProofRun:
        return replace(self.stage.proof((self.stack,), lambda _: self), sleep=self.sleep)

    def sleep(self, seconds: float) -> None:
        self.stage.sleep(seconds)
        deployment = self.stage.api.deployment
        assert self.rules is not None
        for each in self.rules.reactions(deployment.streams):
            reactor = Reactor(member=Member(reaction=each, reader=deployment.feed))
            for partition in deployment.feed.partitions():
                reactor.run(partition.partition, seconds=10)


def test_a_process_is_seen_to_take_each_step_once_and_to_leave_nobody_waiting() -> None:
    processing = Processing()
    proof = processing.proof()
    assert checks.process(proof).startswith("took an input and ended in ")
    proof.remove()
    processing.sleep(1)
    found = standings(
        proof.store.driver,
        proof.store.settings.index_table,
        [f"{checks.PROCESS}-inbox", f"{checks.PROCESS}-outbox"],
    )
    assert not any(group.parked for each in found for group in each.groups)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("react", "words"),
    [
        (lambda _, __: [], "the process has not ended"),
        (
            lambda _, event: [Call("echo", event)] * 2 if isinstance(event, Asked) else [Done()],
            "the process has not ended",
        ),
        (
            lambda _, __: [Append("EpochalProof", [Answered(1)]), Done()],
            r"of the process has \$input, \$append, \$done, \$performed, and that of its input has Asked, Answered",
        ),
    ],
    ids=["nothing", "twice", "another way"],
)
def test_a_process_that_does_not_what_it_says_fails(react: Any, words: str) -> None:
    rules = process_of(Proving)
    assert rules is not None
    with pytest.raises(Broken, match=words):
        checks.process(Processing(replace(rules, react=react)).proof())


def test_a_stage_without_the_process_proves_none(stage: Stage) -> None:
    with pytest.raises(Unproven, match="no process called EpochalProcess"):
        checks.process(stage.proof())


# ---------------------------------------------------------------------------------------------------------- quarantine


def test_a_bad_head_is_set_aside_and_taken_out_again(stage: Stage) -> None:
    proof = stage.proof()
    assert checks.quarantine(proof).startswith("pages 0: CorruptData")
    assert list(stage.api.tables.items("streams")) == []
    assert proof.left == ["record 0 of pages in quarantine, discarded"]


def test_an_indexer_that_sets_nothing_aside_fails_and_the_bad_head_is_taken_out(stage: Stage) -> None:
    proof = stage.proof()
    stage.indexes = False
    with pytest.raises(Broken, match="not among the records set aside"):
        checks.quarantine(proof)
    assert list(stage.api.tables.items("streams")) == []


# -------------------------------------------------------------------------------------------------------------- timers


@dataclass
class Timed(Stage):
    """A stage that fires timers whenever the proof sleeps; a test breaks `work`."""

    work: Callable[[Engine, list[Wake]], object] = Engine.work
    scheduled: set[str] = field(default_factory=set)
    schedules: bool = True

    def __post_init__(self) -> None:
        self.api = Api(
            types=(CATEGORY,), tables=memory_tables(timers=TIMERS), chosen={"timers_table": TIMERS.kind}
        )
        self.wakes = WakeUps()
        self.engine = engine_of(self.api.deployment, TIMERS.kind, self.send)

    def send(self, sent: Sent) -> None:
        self.scheduled |= {each.name for each in sent.far}
        self.wakes.send(sent)

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        for partition in self.api.deployment.feed.partitions():
            member = Member(reaction=self.engine.reaction(), reader=self.api.deployment.feed)
            Reactor(member=member).run(partition.partition, seconds=10)
        self.work(self.engine, self.wakes.take())

    def get_schedule(self, *, Name: str, GroupName: str) -> None:  # noqa: N803
        assert GroupName == "group"
        if Name not in self.scheduled or not self.schedules:
            raise ClientError({"Error": {"Code": "ResourceNotFoundException"}}, "GetSchedule")

    def get_function_configuration(self, **_: Any) -> dict[str, Any]:
        return deployed_as("epochal-prod-reaction-timers", self.function["Properties"])

    @property
    def function(self) -> dict[str, Any]:
        told = Settings.of(timers_schedules=("group", "queue", "role")).environment("arming")
        return function("epochal-prod-reaction-timers", EPOCHAL_REACTION="timers", **told)

    def timed(self) -> ProofRun:
        name = "epochal-prod-reaction-timers"
        stack = DeployedStack(name="feed", resources={"Arming": self.function}, physical={"Arming": name})
        return self.proof((stack,), lambda _: self)


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> Timed:
    monkeypatch.setattr(checks, "TIMER_SECONDS", 0)
    return Timed()


def test_a_timer_that_fires_in_time_is_proven_where_the_stage_has_timers(timed: Timed, stage: Stage) -> None:
    proof = timed.timed()
    seen = checks.timers.tried(proof)
    assert re.match(r"fired \d.\d s after its due time, and \d+T\d+-\d\d is scheduled", seen)
    assert [each() for each in proof.removals]
    assert checks.timers in checks.store_checks(proof)
    assert checks.timers not in checks.store_checks(stage.proof())


@pytest.mark.slow
def test_timers_that_do_not_fire_are_found(timed: Timed) -> None:
    timed.work = lambda _engine, _wakes: None
    with pytest.raises(Broken, match="has not fired"):
        checks.timers.tried(timed.timed())


def test_a_timer_that_fires_though_it_was_called_off_is_found(timed: Timed) -> None:
    def work(engine: Engine, wakes: list[Wake]) -> None:
        engine.work(wakes)
        for each in wakes:
            if each.timer is not None and each.timer.place == 1:
                engine.streams["pages"].append(each.timer.stream, [Event.json("Proved", {"n": 0})])

    timed.work = work
    with pytest.raises(Broken, match="2 events were appended"):
        checks.timers.tried(timed.timed())


@pytest.mark.slow
def test_a_far_timer_without_a_schedule_is_found(timed: Timed) -> None:
    timed.schedules = False
    with pytest.raises(Broken, match="the timer far in the future has no schedule"):
        checks.timers.tried(timed.timed())
