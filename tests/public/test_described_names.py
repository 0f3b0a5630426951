"""What a docstring describes is there: attributes of classes, and parameters of functions, private ones too."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.public import described_names
from tests.public.library_names import Module


def test_all_names_that_docstrings_describe_exist() -> None:
    assert not described_names.all_misdescribed(), "call these what the attribute or parameter is called"


SHOP = '''
class Place:
    street: str

class Shop(Place):
    """A shop.

    Attributes:
        street: where it is.
        name, size: declared, and set.
        is_open: a property.
        capital: a parameter of the constructor.
    """

    name: str

    def __init__(self, capital):
        self.size = capital

    @property
    def is_open(self): ...

    def sell(self, item, *more, _now):
        """Sell items.

        Args:
            item: the first.
            more: others.
            _now: the time.
        """
'''


def misdescribed(folder: Path, source: str) -> dict[str, list[str]]:
    path = folder / "module.py"
    path.write_text(source, "utf-8")
    return described_names.misdescribed(Module("shop", path))


def test_names_that_exist_in_any_way_may_be_described(tmp_path: Path) -> None:
    assert misdescribed(tmp_path, SHOP) == {"shop.Shop": ["street"]}, (
        "bases are looked up in the library alone"
    )


@pytest.mark.parametrize(
    ("name", "place", "new"),
    [("name: str", "shop.Shop", "title: str"), ("item, *more", "shop.Shop: sell", "goods, *more")],
)
def test_a_name_that_was_changed_in_the_code_alone_is_found(
    tmp_path: Path, name: str, place: str, new: str
) -> None:
    assert place in misdescribed(tmp_path, SHOP.replace(name, new))
