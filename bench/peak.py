"""How much memory this process has needed. It imports next to nothing, so that it can also weigh an idle interpreter.

`getrusage` would not do: its figure begins with what the parent process had before the program was executed.
"""


def peak_bytes() -> int:
    """Return the largest number of bytes that were resident at once, as Linux reports it."""
    with open("/proc/self/status", encoding="ascii") as status:  # noqa: PTH123  pathlib would be weighed too
        (peak,) = (line.split()[1] for line in status if line.startswith("VmHWM:"))
    return int(peak) * 1024
