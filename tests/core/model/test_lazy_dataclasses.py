"""A dataclass of ours is one of `dataclasses`, but for when its methods are written."""

from __future__ import annotations

import ast
import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, FrozenInstanceError
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any, ClassVar, Generic, TypeVar, get_type_hints

import pytest

import epochal
from epochal.lazy_dataclasses import dataclass, field, replace

T = TypeVar("T")


def classes(dataclass: Any) -> dict[str, type]:
    """Alike, made by one decorator or the other."""

    @dataclass
    class Plain:
        a: int
        b: list[int] = field(default_factory=list)
        kind: ClassVar[str] = "k"

    @dataclass(frozen=True, slots=True)
    class Slotted:
        """Says so."""

        a: int
        b: int = 2
        _: KW_ONLY
        c: tuple[int, ...] = field(default=(), repr=False)
        d: list[int] = field(default_factory=list, compare=False)
        made: int = field(default=7, init=False)

    @dataclass(frozen=True, kw_only=True)
    class Frozen(Generic[T]):
        a: int
        b: str = "b"
        seen: list[T] = field(default_factory=list, init=False, compare=False)

        def __post_init__(self) -> None:
            self.seen.append(self.b)  # type: ignore[arg-type]
            if not self.a:
                raise ValueError("a")

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Under(Slotted):
        e: int

    @dataclass(slots=True, eq=False)
    class Alone:
        a: int

    @dataclass(frozen=True, slots=True)
    class Own:
        a: int
        b: int = 0

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 3

    @dataclass(slots=True, kw_only=True)
    class Empty: ...

    class Loose(Slotted): ...

    @dataclass(frozen=True, slots=True, order=True)
    class Ordered:
        a: int

    @dataclass(slots=True)
    class Given:
        a: int

        def __init__(self, given: int) -> None:
            self.a = given + 1

    class Calling(Alone):
        def __init__(self, a: int) -> None:
            super().__init__(a + 1)

    @dataclass(slots=True)
    class Hashed:
        a: int
        late: int = field(init=False)

        def __post_init__(self) -> None:
            self.late = self.a + 1

        def __hash__(self) -> int:
            return self.late

    found = (Plain, Slotted, Frozen, Under, Alone, Own, Empty, Loose, Ordered, Given, Calling, Hashed)
    return {each.__name__: each for each in found}


OURS, THEIRS = classes(dataclass), classes(dataclasses.dataclass)
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("Plain", (1,), {}),
    ("Plain", (1, [2]), {}),
    ("Plain", (), {"a": 1, "c": 2}),
    ("Plain", (), {}),
    ("Slotted", (1,), {}),
    ("Slotted", (1, 3), {"c": (4,), "d": [5]}),
    ("Slotted", (1, 3, 4), {}),
    ("Slotted", (1,), {"made": 3}),
    ("Frozen", (), {"a": 1}),
    ("Frozen", (), {"a": 0}),
    ("Frozen", (1,), {}),
    ("Under", (1,), {"e": 5}),
    ("Under", (1,), {}),
    ("Alone", (1,), {}),
    ("Own", (1,), {}),
    ("Empty", (), {}),
    ("Empty", (1,), {}),
    ("Loose", (1,), {}),
    ("Ordered", (1,), {}),
    ("Given", (4,), {}),
    ("Calling", (1,), {}),
    ("Hashed", (1,), {}),
]


def told(act: Callable[[], Any]) -> Any:
    """What came of it, as text: of an object all that there is, of an error its kind and words."""
    try:
        found = act()
    except Exception as error:  # noqa: BLE001
        return type(error), str(error).replace("classes.<locals>.", "")
    if not dataclasses.is_dataclass(found):
        return found
    return repr(found), {each.name: getattr(found, each.name) for each in dataclasses.fields(found)}


@pytest.mark.parametrize(("name", "args", "named"), CALLS)
def test_an_object_is_made_shown_compared_copied_and_refused_as_by_dataclasses(
    name: str, args: tuple[Any, ...], named: dict[str, Any]
) -> None:
    ours, theirs = (lambda kind=kinds[name]: kind(*args, **named) for kinds in (OURS, THEIRS))
    assert told(ours) == told(theirs)
    acts: list[Callable[[Callable[[], Any]], Any]] = [
        lambda make: make() == make(),
        lambda make: make() == 3,
        lambda make: make() <= make(),
        lambda make: len({hash(each) for each in (make(), make())}),
        lambda make: setattr(make(), "a", 9),
        lambda make: delattr(make(), "a"),
        lambda make: told(lambda: copy.deepcopy(make())),
        lambda make: make().__match_args__,
    ]
    if name in ("Plain", "Frozen", "Alone"):  # of slots, Python 3.11 stumbles over itself
        acts.append(lambda make: setattr(make(), "other", 9))
    for act in acts:
        assert told(lambda act=act: act(ours)) == told(lambda act=act: act(theirs))  # type: ignore[misc]
    for changes in ({}, {"a": 5}, {"b": []}):
        copied, expected = partial(replace, **changes), partial(dataclasses.replace, **changes)
        assert told(lambda of=copied: of(ours())) == told(lambda of=expected: of(theirs()))  # type: ignore[misc]
    assert (
        told(lambda: replace(ours(), nothing=1))[0]
        == told(lambda: dataclasses.replace(theirs(), nothing=1))[0]
    )


@pytest.mark.parametrize("name", OURS)
def test_a_class_says_of_itself_what_one_of_dataclasses_says(name: str) -> None:
    ours, theirs = OURS[name], THEIRS[name]
    for each in (ours, theirs):
        assert inspect.signature(each) is not None
    assert str(inspect.signature(ours)) == str(inspect.signature(theirs)).replace("<factory>", "...") or (
        list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)
    )
    assert repr(ours.__dataclass_params__) == repr(theirs.__dataclass_params__)  # type: ignore[attr-defined]
    assert getattr(ours, "__slots__", None) == getattr(theirs, "__slots__", None)
    assert (ours.__hash__ is None) == (theirs.__hash__ is None)
    mine, other = (get_type_hints(each.__init__) for each in (ours, theirs))  # type: ignore[misc]
    assert mine == other
    assert ours.__annotations__ == theirs.__annotations__
    mine, other = ({each.name: each.type for each in dataclasses.fields(of)} for of in (ours, theirs))  # type: ignore[arg-type]
    assert mine == other


def test_an_object_equals_none_of_a_class_under_its_own() -> None:
    for kinds in (OURS, THEIRS):
        assert kinds["Slotted"](1) != kinds["Loose"](1)


@dataclass(frozen=True, slots=True)
class Kept:
    a: int
    b: tuple[Any, ...] = ()


@dataclass(slots=True)
class Circle:
    inner: list[Any] = field(default_factory=list)


def test_an_object_survives_pickling_and_can_hold_itself() -> None:
    assert pickle.loads(pickle.dumps(Kept(1, (Kept(2),)))) == Kept(1, (Kept(2),))  # noqa: S301  our own
    assert {Kept(1), Kept(1)} == {Kept(1)}
    circle = Circle()
    circle.inner.append(circle)
    assert repr(circle) == "Circle(inner=[...])"


def test_a_class_of_dataclasses_can_be_under_one_of_ours_and_is_as_frozen() -> None:
    @dataclasses.dataclass(frozen=True)
    class Users(Kept):
        c: int = 3

    assert dataclasses.replace(Users(1), b=(2,)) == replace(Users(1), b=(2,)) == Users(1, (2,), 3)
    with pytest.raises(FrozenInstanceError):
        Users(1).c = 4  # type: ignore[misc]
    with pytest.raises(TypeError, match="frozen"):
        dataclasses.dataclass(type("Thawed", (Kept,), {"__annotations__": {}}))


def test_a_copy_of_a_class_that_checks_its_fields_is_checked() -> None:
    made = OURS["Frozen"](a=1)
    with pytest.raises(ValueError, match="a"):
        replace(made, a=0)


def test_a_class_of_which_no_object_is_made_gets_no_constructor() -> None:
    kind = classes(dataclass)["Slotted"]
    assert not isinstance(vars(kind)["__init__"], FunctionType)
    kind(1)
    assert isinstance(vars(kind)["__init__"], FunctionType)


def test_a_constructor_first_called_by_one_under_it_is_put_into_its_own_class() -> None:
    kind = classes(dataclass)["Calling"]
    assert [kind(1).a for _ in range(2)] == [2, 2]


def test_threads_that_make_the_first_objects_at_once_make_them_right() -> None:
    for _ in range(50):
        kind = classes(dataclass)["Slotted"]
        with ThreadPoolExecutor(4) as pool:
            assert [each.a for each in pool.map(kind, range(4))] == [0, 1, 2, 3]


@pytest.mark.slow
def test_every_dataclass_of_the_library_is_one_that_costs_little_to_import() -> None:
    library = Path(epochal.__file__).parent
    eager = {
        str(path.relative_to(library))
        for path in library.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "dataclasses"
        if "dataclass" in {each.name for each in node.names}
    }
    assert eager == {"lazy_dataclasses.py"}
