"""Where no end is told of, nobody is asked: a test of these opens no sockets."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from epochal.hosting.process_end import RUNTIME, at_end


def test_outside_of_lambda_no_end_is_told() -> None:
    assert not at_end(print, {})


def test_a_thread_that_can_take_no_signal_is_told_of_no_end() -> None:
    with ThreadPoolExecutor(1) as other:
        assert not other.submit(at_end, print, {RUNTIME: "127.0.0.1:9"}).result()
