"""The examples of dcb.events say what they should."""

from __future__ import annotations

import threading
from types import ModuleType

import pytest

from examples.dcb import courses, invoices, opt_in, orders, prices, usernames
from examples.dcb.store import memory_decisions

SAYS = {
    courses: "ann: subscribed\nben: subscribed\nann: ann takes physics already\ncas: physics is full\n",
    usernames: "ann is taken\nann is registered again\n",
    invoices: "[1, 2, 3]\n",
    orders: "1 1 2\n",
    opt_in: "111: welcome, ann\n111: used\n222: too old\n333: unknown\n",
    prices: "1300: coffee at 450: ordered\n1300: coffee at 480: ordered\n"
    "1700: coffee at 450 does not hold\n1700: coffee at 400 does not hold\n",
}


@pytest.mark.parametrize("example", SAYS, ids=lambda example: example.__name__.rpartition(".")[2])
def test_an_example_prints_what_its_text_promises(
    example: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    example.main()
    assert capsys.readouterr().out == SAYS[example]


def test_a_full_course_stays_full_however_many_rush_for_it() -> None:
    decide = memory_decisions()
    courses.define(decide, "physics", 7)
    admitted: list[str] = []

    def rush(student: str) -> None:
        try:
            courses.subscribe(decide, "physics", student)
        except courses.Refused:
            return
        admitted.append(student)

    threads = [threading.Thread(target=rush, args=(f"student{number}",)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(admitted) == 7


def test_invoice_numbers_have_no_holes_with_many_clerks() -> None:
    decide = memory_decisions()
    numbers: list[int] = []
    threads = [
        threading.Thread(target=lambda: numbers.append(invoices.create(decide, "1.00"))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == list(range(1, 9))


def test_of_many_who_send_one_form_all_get_the_order_that_was_placed() -> None:
    decide = memory_decisions()
    orders_placed: list[str] = []
    threads = [
        threading.Thread(target=lambda name=str(nth): orders_placed.append(orders.place(decide, name, "t")))
        for nth in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(orders_placed) == 8
    assert len(set(orders_placed)) == 1
