"""The fixtures' servers, as every other test relies on them."""

from __future__ import annotations

import pytest

from epochal.contrib.equinox.port import TIPS
from tests.support.tables import Tables


@pytest.mark.parametrize(
    "where",
    [
        pytest.param("ddbl_tables", marks=pytest.mark.ddbl),
        pytest.param("embedded_tables", marks=pytest.mark.embedded),
    ],
)
def test_a_fresh_table_has_the_keys_of_its_specification_and_is_gone_after_its_block(
    where: str, request: pytest.FixtureRequest
) -> None:
    tables: Tables = request.getfixturevalue(where)
    with Tables(tables.endpoint) as inner:
        name = inner.create(TIPS)
        described = tables.client.describe_table(TableName=name)["Table"]
        assert [key["AttributeName"] for key in described["KeySchema"]] == ["p", "i"]
    assert name not in tables.client.list_tables()["TableNames"]


def test_two_fresh_tables_of_one_specification_do_not_meet(ddbl_tables: Tables) -> None:
    first, second = ddbl_tables.create(TIPS), ddbl_tables.create(TIPS)
    ddbl_tables.client.put_item(TableName=first, Item={"p": {"S": "A-1"}, "i": {"N": "0"}})
    assert ddbl_tables.client.scan(TableName=second)["Count"] == 0
