"""Stores are found by the outputs of stacks, however many there are and whatever the stacks are called."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from epochal.contrib.local.assembly import Environment
from epochal.contrib.local.deploy import LocalDeployment, LocalStore, stores_in
from epochal.contrib.local.endpoint import Endpoint
from epochal.contrib.local.errors import OutputMissing, StoreUnclear
from epochal.contrib.local.remembered_deployment import Outputs

ENDPOINT = Endpoint(url="http://127.0.0.1:4566")
STORE = {"StreamsTable": "s", "IndexTable": "i", "BucketName": "b"}


def found_in(stacks: Mapping[str, Mapping[str, str]]) -> tuple[LocalStore, ...]:
    return stores_in([Outputs(stack=name, values=values) for name, values in stacks.items()], ENDPOINT.url)


def test_the_outputs_of_one_store_may_be_in_several_stacks() -> None:
    outputs = {"epochal-dev-store": STORE, "epochal-dev-api": {"ApiId": "a1"}, "shop": {"Url": "u"}}
    (store,) = found_in(outputs)
    assert (store.name, store.settings.table("streams"), store.settings.bucket) == (
        "epochal-dev-store",
        "s",
        "b",
    )
    assert store.api_url == "http://127.0.0.1:4566/_aws/execute-api/a1/$default"


def test_several_stores_are_told_apart_by_stack_and_by_what_their_outputs_begin_with() -> None:
    named = {f"Orders{name}": f"orders-{value}" for name, value in STORE.items()}
    stores = found_in({"Shop": {**named, **STORE}, "Other": STORE, "Api": {"ApiId": "a"}})
    tables = {store.name: (store.settings.index_table, store.api_url) for store in stores}
    assert tables == {"Orders": ("orders-i", ""), "Shop": ("i", ""), "Other": ("i", "")}


def test_where_there_are_several_one_has_to_be_named() -> None:
    stores = found_in({"A": STORE, "B": STORE})
    deployment = LocalDeployment(endpoint=ENDPOINT, stores=stores)
    assert deployment.store("B") is stores[1]
    with pytest.raises(
        StoreUnclear, match="choose one of A, B, for example with `epochal local env --store`"
    ):
        _ = deployment.settings
    with pytest.raises(StoreUnclear, match="no store is called C"):
        deployment.store("C")


def test_an_application_without_a_store_is_deployed_all_the_same() -> None:
    deployment = LocalDeployment(endpoint=ENDPOINT, stores=found_in({"Site": {"Url": "u"}}))
    with pytest.raises(OutputMissing, match="IndexTable"):
        deployment.store()


def test_a_store_without_a_bucket_is_refused() -> None:
    with pytest.raises(OutputMissing, match="BucketName"):
        found_in({"A": {"IndexTable": "i"}})


def test_what_points_a_shell_at_a_store_names_its_tables_and_no_real_account() -> None:
    (store,) = found_in({"A": {**STORE, "ApiId": "a1"}})
    told = store.variables
    assert {name: told[name] for name in told if name.startswith("EPOCHAL")} == {
        "EPOCHAL_STREAMS_TABLE": "s",
        "EPOCHAL_INDEX_TABLE": "i",
        "EPOCHAL_BUCKET": "b",
        "EPOCHAL_API_URL": store.api_url,
    }
    assert (told["AWS_ENDPOINT_URL"], told["AWS_ACCESS_KEY_ID"]) == (ENDPOINT.url, "test")


def test_a_store_is_met_in_the_account_and_region_of_its_stack_and_has_no_outputs_of_others() -> None:
    there = Environment("123456789012", "eu-central-1")
    stacks = [
        Outputs(stack="Shop", environment=there, values=STORE),
        Outputs(stack="Site", environment=Environment("123456789012", "us-east-1"), values={"ApiId": "a1"}),
    ]
    (store,) = stores_in(stacks, ENDPOINT.url)
    assert (store.endpoint.account, store.endpoint.region, store.api_url) == (
        "123456789012",
        "eu-central-1",
        "",
    )
    assert store.variables["AWS_ACCESS_KEY_ID"] == "123456789012"
    assert store.variables["AWS_REGION"] == "eu-central-1"
