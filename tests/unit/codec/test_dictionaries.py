"""Dictionaries: what one packed comes back by its id, and whatever is wrong with one is named."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from epochal.codec import dictionaries
from epochal.codec.bodies import encode
from epochal.codec.dictionaries import Dictionary, id_of, is_known, learn, unpack
from epochal.errors import CorruptData, UnknownDictionary
from tests.support.dictionaries import TRAINED, forget

ZSTD = vars(dictionaries)["zstd"]
"""As this version of Python has it."""

BODY = b'\x00\x07Delayed\x21{"flight":"AA2279","minutes":104}'


@given(body=st.one_of(st.binary(max_size=300), st.text("AEINSTflightminutes0123456789{}:,").map(str.encode)))
@example(body=BODY)
def test_what_a_dictionary_packs_comes_back(body: bytes) -> None:
    packed = learn(TRAINED).pack(body)
    assert unpack(packed, 10_000) == body if packed else body != BODY


@pytest.mark.parametrize("size", [1_000, 1_024, 1_025, 60_000, 100_000])
def test_a_block_is_packed_and_comes_back(size: int) -> None:
    body = (BODY * (size // len(BODY) + 1))[:size]
    packed = learn(TRAINED).pack(body)
    assert len(packed) < size / 4
    assert unpack(packed, size) == body


@pytest.mark.parametrize(
    "body", [b"", bytes(range(256)), bytes(128 * 1024 + 1)], ids=["none", "noise", "two blocks"]
)
def test_what_is_no_compressed_block_is_not_packed(body: bytes) -> None:
    assert learn(TRAINED).pack(body) is None


def test_a_body_like_those_that_it_was_trained_on_is_shorter_though_it_has_nothing_twice() -> None:
    assert len(encode(BODY).data) == len(BODY)
    assert len(learn(TRAINED).pack(BODY)) < 0.75 * len(BODY)


def test_what_is_packed_begins_with_the_hash_of_its_dictionary_and_goes_on_with_the_block() -> None:
    packed = learn(TRAINED).pack(BODY)
    assert packed[:4] == id_of(TRAINED) == bytes.fromhex("6bbebbe1")
    frame = ZSTD.compress(BODY, zstd_dict=ZSTD.ZstdDict(TRAINED), options=dictionaries._OPTIONS)  # noqa: SLF001
    assert frame.endswith(packed[4:])
    assert len(frame) == len(packed[4:]) + 9


def test_a_process_that_has_not_met_a_dictionary_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = Dictionary(TRAINED).pack(BODY)
    forget(monkeypatch)

    assert not is_known(packed[:4])
    with pytest.raises(UnknownDictionary, match="6bbebbe1 is missing") as raised:
        unpack(packed, 1000)
    assert raised.value.id == "6bbebbe1"

    learn(TRAINED)
    assert unpack(packed, 1000) == BODY


def test_a_dictionary_is_made_ready_once_however_often_it_is_met() -> None:
    assert learn(TRAINED) is learn(bytes(bytearray(TRAINED)))


@pytest.mark.parametrize("content", [b"", b"short", b"no dictionary of zstd's, though it is long enough"])
def test_what_is_no_dictionary_is_refused_by_its_id(content: bytes) -> None:
    with pytest.raises(CorruptData, match=id_of(content).hex()):
        Dictionary(content)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda packed: packed[:-1],
        lambda packed: packed + b"\0",
        lambda packed: packed[:4],
        lambda packed: packed[:4] + b"\xff" * 9,
        lambda packed: packed[:4] + bytes(3 * 1024 * 1024),
    ],
    ids=["cut off", "followed by something", "nothing", "something else", "longer than any block"],
)
def test_what_it_did_not_pack_is_corrupt(spoil) -> None:
    with pytest.raises(CorruptData):
        unpack(spoil(learn(TRAINED).pack(BODY)), 1000)


def test_a_second_dictionary_under_the_same_id_is_never_taken_for_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dictionaries, "id_of", lambda _: b"same")
    forget(monkeypatch)
    learn(TRAINED)
    with pytest.raises(CorruptData, match="two dictionaries"):
        learn(TRAINED + b"other")


def test_what_would_inflate_beyond_the_limit_is_corrupt_and_is_not_inflated() -> None:
    packed = learn(TRAINED).pack(bytes(100_000))
    assert len(packed) < 100
    with pytest.raises(CorruptData, match="too large"):
        unpack(packed, 1_000)


def test_threads_share_a_dictionary() -> None:
    dictionary, wrong = learn(TRAINED), []

    def work(number: int) -> None:
        for k in range(200):
            body = BODY + str(number * k).encode()
            wrong.extend([] if unpack(dictionary.pack(body), 1000) == body else [k])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []


def test_a_process_that_meets_none_does_not_load_zstd() -> None:
    code = (
        "import sys, epochal.pages.streams, epochal.pages.port, epochal.store.streams\n"
        "print([each for each in sys.modules if 'zstd' in each or each == 'epochal.codec.dictionaries'])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
    assert vars(dictionaries)["zstd"]
