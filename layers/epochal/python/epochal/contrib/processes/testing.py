"""Rules of processes as examples: given these inputs, when this one comes, then these outputs.

    given_process(checkout, Placed(total=10)).when(Paid()).then(Append("Order", [Confirmed()]), Done())
    given_process(checkout, Placed(total=10)).after(minutes=30).then(Append("Order", [Abandoned()]), Done())

No store, no stream, no waiting: time goes by where `after` says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from epochal.contrib.processes import outputs
from epochal.contrib.processes.process import Process, ProcessLike, process_of
from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.events import Event
from epochal.model.moments import Ticks, read_moment
from epochal.model.plain_functions import must_be_events, must_be_state
from epochal.model.timers import Later
from epochal.scheduling import after, due_at
from epochal.testing.scenarios import MILLENNIUM, must_equal


def given_process(
    process: ProcessLike, *inputs: Any, key: str = "1", now: datetime | str = MILLENNIUM
) -> GivenProcess:
    """Return a process's instance, for a test, that has taken these inputs, one by one, at one moment.

    Args:
        process: the process, or the class that it was made of.
        inputs: inputs that the instance has taken, as the codec decodes them.
        key: key of the instance.
        now: the moment, as for `given`.

    Raises:
        InvalidInput: this is not a process.
    """
    process_ = process_of(process)
    if process_ is None:
        raise InvalidInput("process", "must be a class decorated with @process(name=…)")
    scenario = GivenProcess(process=process_, key=key, now=read_moment(now, "now"))
    for input_ in inputs:
        scenario = scenario.when(input_)
    return replace(scenario, answered=())


@dataclass(frozen=True, kw_only=True)
class GivenProcess:
    """An instance of a process in a test, with the outputs of its last step, which are not performed.

    Attributes:
        process: process that is tested.
        key: key of the instance.
        now: current moment in the test.
        state: the instance's state; None before it has begun.
        timers: due time and event of each timer, by its name.
        done: whether the instance takes no more inputs.
        answered: outputs that the process returned in the last step.
    """

    process: Process
    key: str
    now: Ticks
    state: Any = None
    timers: Mapping[str, tuple[Ticks, Any]] = field(default_factory=dict)
    done: bool = False
    answered: tuple[outputs.Output, ...] = ()

    def when(self, message: Any) -> GivenProcess:
        """Return the instance after one more input, with its outputs.

        There are none if the instance is done, or has not begun and this input begins none.

        Args:
            message: input of the process, as its codec decodes it.
        """
        rules = self.process
        begins = self.state is not None or rules.begins is None or type(message) in rules.begins
        if self.done or not begins:
            return replace(self, answered=())
        before = rules.state() if self.state is None else self.state
        state = must_be_state(rules.evolve(before, message), before, rules.state, message)
        answered = tuple(must_be_events(rules.react(state, message), "react"))
        timers = dict(self.timers)
        for output in answered:
            # This raises for outputs that a store would refuse.
            outputs.stored(output, f"{rules.name}-{self.key}", rules.codec, rules.targets)
            match output:
                case Later(name=name, events=[event], at=due):
                    timers[name] = due_at(due, self.now), event
                case Event():
                    timers.pop(str(outputs.timer_of(output)), None)
                case outputs.Done():
                    timers.clear()
                case _:
                    pass
        done = outputs.Done() in answered
        return replace(self, state=state, timers=timers, done=done, answered=answered)

    def after(
        self, *, weeks: float = 0, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
    ) -> GivenProcess:
        """Return the instance after some time, with all outputs of the timers that fired in that time.

        Args:
            weeks, days, hours, minutes, seconds: parts of the time that passes, which are added up.
        """
        until = due_at(after(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds), self.now)
        given, answered = self, list[outputs.Output]()
        while due := [(due_at, name) for name, (due_at, _) in given.timers.items() if due_at <= until]:
            moment, name = min(due)
            event = given.timers[name][1]
            timers = {setting: timer for setting, timer in given.timers.items() if setting != name}
            given = replace(given, now=moment, timers=timers).when(event)
            answered += given.answered
        return replace(given, now=until, answered=tuple(answered))

    def then(self, *expected: outputs.Output) -> None:
        """Assert that the outputs of the last step are exactly those expected, in the same order.

        Args:
            expected: outputs that must be equal to those of the last step.
        """
        must_equal(expected, self.answered, "outputs")

    def then_state(self, expected: Any) -> None:
        """Assert that the instance's state equals the expected one.

        Args:
            expected: state that must be equal to that of the instance.
        """
        must_equal(expected, self.state, "state")
