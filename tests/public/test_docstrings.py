"""Every argument of a public function, method or constructor is described where the reader looks: in its docstring."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.public import docstrings
from tests.public.library_names import Module


def test_every_argument_is_described_in_a_docstring() -> None:
    lacking = docstrings.all_undescribed()
    assert not lacking, "list these arguments below `Args:` or `Attributes:`, by name"


def test_no_docstring_describes_an_argument_that_is_gone() -> None:
    excess = {
        place: names
        for module, name in docstrings.places()
        for place, names in docstrings.invented(module, name).items()
    }
    assert not excess, "remove these from `Args:`, or call them what the argument is called"


def undescribed_in(folder: Path, source: str, name: str) -> dict[str, list[str]]:
    path = folder / "module.py"
    path.write_text(source, "utf-8")
    return docstrings.undescribed(Module("shop", path), name)


@pytest.mark.parametrize(
    ("docstring", "names"),
    [
        ("Sell an item.", []),
        ("Sell an item.\n\nArgs:\n    item: name.\n        price: of a line that goes on.", ["item"]),
        (
            "Sell an item.\n\nArgs:\n    item, price: as for `buy`.\n    *more: others.",
            ["item", "more", "price"],
        ),
        ("Sell.\n\nArgs:\n    item, price,\n        tax: as for `buy`.", ["item", "price", "tax"]),
        ("A sale.\n\nAttributes:\n    item: name.\n\nRaises:\n    KeyError: there is none.", ["item"]),
        ("Sell an item.\n\nReturns:\n    price: what it costs.", []),
    ],
)
def test_names_are_read_from_the_sections_of_arguments_alone(docstring: str, names: list[str]) -> None:
    assert sorted(docstrings.described_names(docstring)) == names


def test_arguments_of_functions_count_but_private_ones_and_typed_keywords(tmp_path: Path) -> None:
    source = "def sell(item, /, price=0, *more, tax, _now, **others: Unpack[Options]):\n    'Sell.'\n"
    assert undescribed_in(tmp_path, source, "sell") == {"shop.sell": ["item", "price", "more", "tax"]}


def test_a_class_may_describe_its_constructor_itself_and_methods_are_asked_too(tmp_path: Path) -> None:
    source = (
        "class Shop:\n"
        '    """A shop.\n\n    Args:\n        name: its name.\n    """\n'
        "    def __init__(self, name, size): ...\n"
        "    def sell(self, item):\n        'Sell.'\n"
        "    @staticmethod\n    def of(text):\n        'Parse.'\n"
        "    def _count(self, item): ...\n"
    )
    assert undescribed_in(tmp_path, source, "Shop") == {
        "shop.Shop": ["size"],
        "shop.Shop.sell": ["item"],
        "shop.Shop.of": ["text"],
    }


def test_fields_of_dataclasses_are_described_in_the_class_or_below_the_field(tmp_path: Path) -> None:
    source = (
        "@dataclass(frozen=True)\n"
        "class Sale:\n"
        '    """A sale.\n\n    Attributes:\n        item: its name.\n    """\n'
        "    item: str\n"
        "    price: int\n"
        "    'What it costs.'\n"
        "    tax: int\n"
        "    kind: ClassVar[str] = 'sale'\n"
        "    total: int = field(init=False)\n"
        "    paid: bool = setting(False, 'Whether it was paid')\n"
    )
    assert undescribed_in(tmp_path, source, "Sale") == {"shop.Sale": ["tax"]}


def test_an_argument_that_has_been_renamed_is_missing_under_both_names(tmp_path: Path) -> None:
    source = 'def sell(item):\n    """Sell.\n\n    Args:\n        goods: the item.\n    """\n'
    assert undescribed_in(tmp_path, source, "sell") == {"shop.sell": ["item"]}
    module = Module("shop", tmp_path / "module.py")
    assert docstrings.invented(module, "sell") == {"shop.sell": ["goods"]}
