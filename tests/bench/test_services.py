"""A month of three services: what is counted, and that servers are beside them at what they take."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.services import SERVERS, SERVICES, bytes_an_event, ways_to_keep
from epochal.pages.items import Page, write_page
from epochal.plan.values import item_size

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "cost.md"


def row(name: str) -> list[float]:
    """Figures of a row of the page."""
    section = PAGE.read_text().partition("## Three services")[2]
    found = next(line for line in section.splitlines() if line.startswith(f"| {name} |"))
    return [float(each.strip("* ").replace(",", "")) for each in found.split("|")[2:5]]


def test_the_page_has_what_services_cost() -> None:
    months = [service.month() for service in SERVICES]
    for name in months[0]:
        assert row(name) == pytest.approx([month[name] for month in months], rel=0.03, abs=0.02)
    assert row("**a month**") == pytest.approx([sum(month.values()) for month in months], rel=0.03)
    for server in SERVERS:
        assert row(server.name) == pytest.approx(
            [server.month(n, each) for n, each in enumerate(SERVICES)], rel=0.01
        )


def test_a_shop_costs_less_than_a_database_in_two_zones_and_more_than_one_server() -> None:
    shop, fleet, archive = (sum(service.month().values()) for service in SERVICES)
    one, _, database = ([each.month(n, service) for n, service in enumerate(SERVICES)] for each in SERVERS)
    assert one[0] < shop <= 40 < database[0]
    assert one[1] < fleet <= 1_150
    assert one[2] < archive <= 140 < database[2]


def test_a_load_and_a_key_of_each_append_are_in_the_bill_of_a_shop() -> None:
    shop = SERVICES[0]
    bare = replace(shop, setup=replace(shop.setup, use=replace(shop.setup.use, keyed=False, loads=False)))
    dearer = shop.month()["appends and loads"] - bare.month()["appends and loads"]
    assert dearer / shop.millions == pytest.approx(0.625 + 1.0 + 0.33 + 0.12 + 0.16, abs=0.25)


def test_an_event_of_300_bytes_is_kept_in_fewer() -> None:
    """The index's entry is in it, and what DynamoDB bills for an item besides."""
    assert 260 <= bytes_an_event() <= 330


def test_what_is_kept_seldom_costs_less_after_months_and_s3_is_no_more_than_a_little_cheaper() -> None:
    """A stub stays of a page, so most of what S3 would save is saved by a class of storage that moves nothing."""
    ways = ways_to_keep()
    assert ways["in Standard-IA"].left == pytest.approx(0.4)
    assert 3 <= ways["in Standard-IA"].pays_after <= 5
    assert ways["in S3"].left >= 0.2
    assert ways["in S3"].pays_after >= 3


def test_a_stub_is_as_large_as_the_bill_has_it() -> None:
    emptied = Page(
        stream="Aircraft-N100AA", index=1_000, version=1_004, full=True, stamp=b"\0" * 16, low_water=1_004
    )
    assert item_size(write_page(emptied)) <= 70
