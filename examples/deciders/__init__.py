"""Deciders, one idea a file. Each runs by itself, in memory: `python -m examples.deciders.seats`."""
