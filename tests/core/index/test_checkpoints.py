from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochal.errors import InvalidInput
from epochal.index.checkpoints import (
    BEGINNING,
    MAX_EPOCH,
    MAX_OFFSET,
    Checkpoint,
    parse_checkpoint,
    parse_place,
)

epochs, offsets = st.integers(0, MAX_EPOCH), st.integers(0, MAX_OFFSET)


@pytest.mark.parametrize(
    ("epoch", "offset", "value"),
    [
        (0, 0, 0),
        (0, 1, 1),
        (0, 1_048_575, 1_048_575),
        (1, 0, 1_048_576),
        (3, 7, 3_145_735),
        (MAX_EPOCH, MAX_OFFSET, 9_223_372_036_854_775_807),
    ],
)
def test_a_checkpoint_is_the_epoch_above_20_bits_of_offset(epoch: int, offset: int, value: int) -> None:
    checkpoint = Checkpoint.of(epoch, offset)
    assert checkpoint == value
    assert (checkpoint.epoch, checkpoint.offset) == (epoch, offset)


def test_the_beginning_is_the_first_entry_of_the_first_epoch() -> None:
    assert Checkpoint.of(0, 0) == BEGINNING


@given(epochs, offsets)
def test_a_checkpoint_keeps_its_epoch_and_offset_and_fits_an_int64(epoch: int, offset: int) -> None:
    checkpoint = Checkpoint.of(epoch, offset)
    assert (checkpoint.epoch, checkpoint.offset) == (epoch, offset)
    assert 0 <= checkpoint < 1 << 63


@pytest.mark.slow
@given(epochs, offsets, epochs, offsets)
def test_checkpoints_are_ordered_by_epoch_then_offset(e1: int, o1: int, e2: int, o2: int) -> None:
    assert (Checkpoint.of(e1, o1) < Checkpoint.of(e2, o2)) == ((e1, o1) < (e2, o2))


@given(epochs, offsets)
def test_both_text_forms_are_read_back(epoch: int, offset: int) -> None:
    checkpoint = Checkpoint.of(epoch, offset)
    assert parse_checkpoint(str(checkpoint)) == checkpoint
    assert parse_checkpoint(str(int(checkpoint))) == checkpoint


def test_a_checkpoint_is_shown_as_epoch_at_offset() -> None:
    assert str(Checkpoint.of(12, 345)) == "12@345"
    assert f"{Checkpoint(3_145_735)}" == "3@7"
    assert repr(Checkpoint.of(12, 345)) == "Checkpoint(12@345)"


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "@",
        "1@",
        "@1",
        "-1",
        "-1@0",
        "1@-1",
        "+1",
        "1.0",
        "1e3",
        "0x1",
        " 1",
        "1 ",
        "1\n",
        "1@2@3",
        "1_000",
        "١",  # a digit, but not an ASCII one
        "1@1048576",  # one more than 20 bits hold
        "8796093022208@0",  # an epoch that would set the sign bit
        "9223372036854775808",
        "99999999999999999999",
        "tail",
    ],
)
def test_anything_else_is_refused_naming_the_field(text: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        parse_checkpoint(text, "from")
    assert refusal.value.field == "from"
    assert refusal.value.rule


def test_what_is_no_place_is_told_all_that_is_one() -> None:
    with pytest.raises(InvalidInput, match="^from: must be a checkpoint .*, a moment, beginning or tail$"):
        parse_place("abc")


@pytest.mark.parametrize(("epoch", "offset"), [(0, MAX_OFFSET + 1), (0, -1), (-1, 0), (MAX_EPOCH + 1, 0)])
def test_an_offset_that_would_run_into_the_epoch_is_never_encoded(epoch: int, offset: int) -> None:
    with pytest.raises(ValueError, match="checkpoint"):
        Checkpoint.of(epoch, offset)
