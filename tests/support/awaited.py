"""Runs the tests that a module takes over from an ordinary store's as an asynchronous program runs that store.

`tests/conftest.py` has the hook for all tests.

A module that says `AWAITED = True` has each of its tests called in the bridge of an event loop, where every request to
the memory table gives other tasks their turn first.
"""

from __future__ import annotations

import asyncio
from inspect import signature

import pytest

from epochal.aio.bridge import run, wait
from epochal.plan.ops import Op, Reply
from epochal.testing.memory import MemoryTables


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Call an awaited module's test."""
    if not getattr(pyfuncitem.module, "AWAITED", False):
        return None
    given = {name: pyfuncitem.funcargs[name] for name in signature(pyfuncitem.obj).parameters}
    at_once = MemoryTables.execute

    def execute(tables: MemoryTables, op: Op) -> Reply:
        wait(asyncio.sleep(0))
        return at_once(tables, op)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryTables, "execute", execute)
        asyncio.run(run(pyfuncitem.obj, **given))
    return True
