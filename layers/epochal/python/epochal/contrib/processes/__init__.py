"""Processes: what happens next, and what is done about it, over days: state, outputs and timers of many instances.

process       a process's rules, and its instances: what an input makes of one
outputs       what a process answers an input with, and how that is stored
handlers      the handlers of the two reactions that run a process: one takes inputs, one performs outputs
sealed_state  an instance's state, sealed for every person whose sealed data its inputs have
testing       rules of processes as examples
cdk           a process as it is deployed
"""

from epochal.contrib.processes.outputs import (
    Append,
    Call,
    CommandRefused,
    Done,
    Output,
    Publish,
    Send,
    Target,
)
from epochal.contrib.processes.process import Process, process, process_of

__all__ = [
    "Append",
    "Call",
    "CommandRefused",
    "Done",
    "Output",
    "Process",
    "Publish",
    "Send",
    "Target",
    "process",
    "process_of",
]


def __dir__() -> list[str]:
    return sorted(__all__)
