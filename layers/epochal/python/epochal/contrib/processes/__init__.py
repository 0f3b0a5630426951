"""Processes: what happens next, and what is done about it, over days: state, outputs and timers of many instances.

outputs     what a process answers an input with, how that is stored, and the two reactions that run a process: one
            takes inputs, one performs outputs
process     a process's rules, and its instances: what an input makes of one
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
