"""Running a reaction: over a partition for as long as there is time, and over what it has parked."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field

from epochal.index.checkpoints import Checkpoint
from epochal.reactions.calls import Calls
from epochal.reactions.category_check import Name
from epochal.reactions.group_member import Member
from epochal.reactions.handling import Failure, OnFailed
from epochal.reactions.partition_run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """The result of a run.

    Attributes:
        checkpoint: the group's, afterwards.
        at_tail: everything that the index held then is handled or parked.
        moved: this run has got the group further.
        events: handled by this run.
        parked: streams that this run gave up.
        blocked: what the partition cannot get past for now: a stream that may not be parked, or the last of too many
            that failed one after the other.
        behind: seconds since the oldest entry of the index was written that the checkpoint has not passed; None where
            there was no time to look.
        seen: categories and types that this run came across, while one that is asked for had not come yet.
    """

    checkpoint: Checkpoint
    at_tail: bool
    moved: bool = False
    events: int = 0
    parked: tuple[Failure, ...] = ()
    blocked: Failure | None = None
    behind: float | None = None
    seen: frozenset[Name] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reactor:
    """Runs one reaction.

    Attributes:
        on_failed: called with each call of the handler that fails.
        executor: makes the threads in which so many streams are handled side by side.
        calls: to its handler. One who runs it again and again stays in this context, so that an `async def` keeps its
            event loop.
    """

    member: Member
    on_failed: OnFailed = lambda _attempt: None
    executor: Callable[[int], Executor] = ThreadPoolExecutor
    calls: Calls = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "calls", Calls(self.member.reaction))

    def run(
        self,
        partition: int,
        *,
        seconds: float,
        careful: bool = False,
        tell: Callable[[float], object] = lambda _behind: None,
    ) -> Ran:
        """Handle what there is, to the tail, or for about `seconds`.

        Args:
            careful: processes have died; find out over what.
            tell: called every few seconds of a long run with how far the group is behind, as `Ran.behind` has it.

        Raises:
            Unavailable: the store kept failing; what is handled and not saved comes again.
        """
        run = Run(
            member=self.member,
            call=self.calls,
            on_failed=self.on_failed,
            partition=partition,
            ends=self.member.driver.clock() + seconds,
            careful=careful,
            executor=self.executor,
            tell=tell,
        )
        with self.calls:
            run.begin()
            while not (run.over or run.at_tail):
                run.handle_page()
        return Ran(
            checkpoint=run.checkpoint,
            at_tail=run.at_tail,
            moved=run.moved,
            events=run.events,
            parked=tuple(run.parked),
            blocked=run.blocked,
            behind=run.behind,
            seen=frozenset(run.meeting.seen),
        )
