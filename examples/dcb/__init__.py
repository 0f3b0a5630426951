"""Examples from dcb.events, on a store in memory. Each runs by itself: `python -m examples.dcb.courses`."""
