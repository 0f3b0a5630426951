"""On AWS's own DynamoDB: a table of keys is restored under another name, and who was forgotten stays forgotten."""

from __future__ import annotations

from dataclasses import replace

import pytest

from epochal.contrib.subjects.items import FORGET_LOG, SUBJECT_KEYS
from epochal.contrib.subjects.sealing import Shredded, Subjects
from epochal.contrib.subjects.testing import MemoryWrapping
from epochal.dynamo.interpreter import interpreter
from epochal.store.driver import Driver, Meter
from tests.support.tables import Tables

pytestmark = pytest.mark.ddbl


def test_a_restored_table_of_keys_resurrects_nobody(ddbl_tables: Tables) -> None:
    keys, restored, log = (ddbl_tables.create(spec) for spec in (SUBJECT_KEYS, SUBJECT_KEYS, FORGET_LOG))
    driver = Driver(execute=interpreter(ddbl_tables.client), meter=Meter())
    subjects = Subjects(driver=driver, table=keys, wrapping=MemoryWrapping(), log=log, keep=0.0)
    hers, his = subjects.seal("ada", b"{}"), subjects.seal("ben", b"{}")
    for item in ddbl_tables.client.scan(TableName=keys)["Items"]:
        ddbl_tables.client.put_item(TableName=restored, Item=item)
    subjects.forget("ada")
    anew = replace(subjects, table=restored)
    assert replace(anew, log="").unseal(hers) == b"{}"

    assert [anew.unseal(body) for body in (hers, his)] == [Shredded("ada"), b"{}"]
    assert list(anew.reapply()) == ["ada"]
    assert [replace(anew, log="").unseal(body) for body in (hers, his)] == [Shredded("ada"), b"{}"]
