"""Names of other stores, encoded as names of streams."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochal.contrib.transfer.importing.encoded_names import decode_name, encode_name
from epochal.contrib.transfer.importing.kinds import source_of
from epochal.errors import InvalidInput
from epochal.model.stream_names import MAX_NAME_BYTES, stream_name
from tests.support.terminal import Terminal

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.text("~-7Ea/ %#é$.", max_size=20)
MAP = "stream=Order-{order},type=what,time=at,data=*"
STRANGE = "Straße 7/a#b%~"
ENCODED = "Order-Stra~C3~9Fe~207~2Fa~23b~25~7E"


@given(TEXTS)
def test_a_name_is_decoded_to_the_text_it_was_encoded_from(text: str) -> None:
    assert decode_name(encode_name(text)) == text


@given(TEXTS, TEXTS)
def test_two_texts_have_two_names(one: str, other: str) -> None:
    assert (encode_name(one) == encode_name(other)) == (one == other)


@given(TEXTS.filter(bool))
def test_every_encoded_name_is_the_name_of_a_stream_in_its_category(text: str) -> None:
    name = encode_name(text)
    assert stream_name(name) == name
    assert name.partition("-")[0] == encode_name(text.partition("-")[0])


@given(st.text("~ABCDEF0123789abcf-é ", max_size=12))
def test_a_name_that_decodes_is_encoded_to_itself_again(name: str) -> None:
    try:
        text = decode_name(name)
    except InvalidInput:
        return
    assert encode_name(text) == name


def test_names_are_encoded_as_documented() -> None:
    assert encode_name("Order-" + STRANGE) == ENCODED
    assert encode_name("Order-7_.:@+=") == "Order-7_.:@+="
    assert encode_name("$all") == "~24all"


@pytest.mark.parametrize(
    "name", ["a~2f", "a~41", "a~2D", "a~", "a~2", "a~FF", "a~C3", "a~ED~A0~80", "a b", "é", "a~G0", "\ud800"]
)
def test_what_is_no_encoded_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="name: must be a name that encode_name returned"):
        decode_name(name)


def test_half_a_surrogate_pair_has_no_encoded_name() -> None:
    with pytest.raises(InvalidInput, match="must be text that UTF-8 can encode"):
        encode_name("a\ud800")


@pytest.fixture
def orders(tmp_path: Path) -> str:
    path = tmp_path / "orders.csv"
    path.write_text(
        f"order,what,at,item\n{STRANGE},Placed,2024-05-01T09:30:00Z,x\n8,Placed,2024-05-01T09:30:00Z,y\n{STRANGE},Paid,2024-05-02T09:30:00Z,\n",
        "utf-8",
    )
    return str(path)


def test_a_csv_file_is_imported_with_encoded_names_and_resumed(orders: str) -> None:
    terminal = Terminal()
    arguments = ("import", orders, "--map", MAP, "--encode-names")
    (planned,) = terminal.documents(*arguments, "--dry-run")
    assert (planned["written"], planned["rejected"]) == (3, 0)
    assert terminal.streams.load(ENCODED) is None
    (first,) = terminal.documents(*arguments, "--verify")
    (second,) = terminal.documents(*arguments, "--verify")
    assert (first["written"], first["verified"], first["unlike"]) == (3, 3, [])
    assert (second["written"], second["there"], second["digest"]) == (0, 3, first["digest"])
    assert [each.type for each in terminal.streams.read(ENCODED)] == ["Placed", "Paid"]
    assert [each.type for each in terminal.streams.read("Order-8")] == ["Placed"]


def test_streams_of_kurrentdb_are_imported_with_encoded_names(tmp_path: Path) -> None:
    place = tmp_path / "all.ndjson"
    line = {
        "streamId": "cart-Zoë/1",
        "revision": 0,
        "type": "Opened",
        "created": "2024-05-01T09:30:00Z",
        "data": {},
    }
    causes = {"$correlationId": "Zoë/1", "$causationId": "b c"}
    place.write_text(json.dumps({**line, "metadata": causes}), "utf-8")
    terminal = Terminal()
    terminal.lines("import", str(place), "--from", "kurrentdb", "--encode-names")
    (event,) = terminal.streams.read("cart-Zo~C3~AB~2F1")
    assert (event.correlation_id, event.causation_id) == ("Zoë/1", "b c")


def rule_of(name: object, tmp_path: Path, *, encoded: bool) -> str:
    place = tmp_path / "rows.ndjson"
    place.write_text(json.dumps({"stream": name, "type": "A", "time": "2024-05-01T09:30:00Z"}))
    (row,) = source_of("", str(place)).rows(str(place), {}, encoded=encoded)
    return getattr(row, "rule", "")


def test_a_name_too_long_once_encoded_is_refused_with_its_length(tmp_path: Path) -> None:
    assert rule_of("ä" * 85, tmp_path, encoded=True) == ""
    rule = rule_of("ä" * 86, tmp_path, encoded=True)
    assert rule == f"stream: must be at most {MAX_NAME_BYTES} bytes once encoded, got 516"


def test_the_error_for_a_bad_name_names_the_option_where_it_helps(tmp_path: Path) -> None:
    assert rule_of("a b", tmp_path, encoded=False).endswith("; --encode-names encodes other characters")
    assert "--encode-names" not in rule_of("$a", tmp_path, encoded=False)
    assert "--encode-names" not in rule_of("ä" * 300, tmp_path, encoded=False)
    assert "--encode-names" not in rule_of("..", tmp_path, encoded=True)
