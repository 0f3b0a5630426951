"""Two revisions that differ by moves and renamings have the same code; any other change is shown."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.same_code import differences, main, names_in, sources_at

BASE = '''"""Where streams are kept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT = 3
"""Events."""

OPENED = "shop.streams:told"


class Store:
    """All of them."""

    limit: int = LIMIT

    def told(self, given, *, at=0):
        """Tell."""
        from shop import other  # late

        return other.told(given, at=at)


def told(given):
    return json.dumps(given)
'''
MOVED = {
    "shop/core/store.py": """from json import dumps
import json

from shop.core import other

class Store:
    limit: int = LIMIT
    def notify(self, given, *, at=0):
        "Notify all."
        return other.notify(given, at=at)
""",
    "shop/core/notices.py": """LIMIT = 3
OPENED = "shop.core.notices:notify"
def notify(given):
    # as JSON
    return json.dumps(given)
""",
}
NAMES = {
    "told": "notify",
    "shop.streams": "shop.core.notices",
    "shop.streams:told": "shop.core.notices:notify",
}


def test_code_that_moves_and_is_renamed_by_a_table_is_the_same() -> None:
    assert [*differences({"shop/streams.py": BASE}, MOVED, NAMES)] == []


def test_a_renaming_that_the_table_does_not_have_is_shown_by_function() -> None:
    found = "\n".join(differences({"shop/streams.py": BASE}, MOVED, NAMES | {"told": "told"}))
    assert "gone     shop/streams.py:29 told" in found
    assert "new      shop/core/notices.py:3 notify" in found
    assert "Store.notify" in found


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [
        ("LIMIT = 3", "LIMIT = 4", "LIMIT"),
        ("limit: int = LIMIT", "limit: int = 3", "Store.limit"),
        ("at=0):", "at=1):", "Store.told"),
        ("given, at=at", "given, at=None", "Store.told"),
        ("class Store:", "class Store(dict):", "Store"),
        ("json.dumps(given)", "json.dumps(given, indent=1)", "told"),
        ("def told(given):", "@cache\ndef told(given):", "told"),
        ("shop.streams:told", "shop.streams:tell", "OPENED"),
        ("    return json", "    given = 1\n    return json", "told"),
    ],
)
def test_a_change_of_code_is_shown_with_its_function(before: str, after: str, name: str) -> None:
    assert before in BASE
    (found,) = differences({"a.py": BASE}, {"b.py": BASE.replace(before, after)})
    assert found.startswith("changed  a.py:")
    assert f" {name} -> b.py:" in found
    assert "\n    +" in found


def test_what_is_there_once_more_or_less_is_shown() -> None:
    twice = {"a.py": "def f():\n    return 1\n", "b.py": "def f():\n    return 1\n"}
    once = {"a.py": twice["a.py"]}
    assert [each.split("\n")[0] for each in differences(twice, once)] == ["gone     a.py:1 f"]
    assert [each.split("\n")[0] for each in differences(once, twice)] == ["new      a.py:1 f"]
    assert [*differences(twice, dict(reversed(twice.items())))] == []


def test_a_method_that_moves_to_another_class_is_a_change() -> None:
    one = {"a.py": "class A:\n    def f(self): return 1\n\n\nclass B: pass\n"}
    other = {"a.py": "class A: pass\n\n\nclass B:\n    def f(self): return 1\n"}
    assert len([*differences(one, other)]) == 2


def test_a_table_has_two_names_in_a_line_and_comments() -> None:
    assert names_in("# public\n\ntold notify  # a verb\na.b c.d\n") == {"told": "notify", "a.b": "c.d"}


@pytest.mark.parametrize("line", ["told", "told notify tell", "a b\na c"])
def test_a_line_that_is_no_renaming_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"line \d: must be an old name and its one new name"):
        names_in(line)


@pytest.mark.slow
def test_revisions_of_a_repository_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def git(*arguments: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@shop.example"]
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    (tmp_path / "streams.py").write_text(BASE)
    (tmp_path / "notes.txt").write_text("told")
    git("add", "-A")
    git("commit", "-qm", "One")
    (tmp_path / "kept").mkdir()
    git("mv", "streams.py", "kept/streams.py")
    git("commit", "-qam", "Two")
    (tmp_path / "kept" / "streams.py").write_text(BASE.replace("LIMIT = 3", "LIMIT = 4"))
    git("commit", "-qam", "Three")

    assert sources_at("HEAD~2", ["."], tmp_path) == {"streams.py": BASE}
    assert main(["HEAD~2", "HEAD~1", "."], tmp_path) == 0
    assert capsys.readouterr().out == "the same code\n"
    names = tmp_path / "names.txt"
    names.write_text("LIMIT MOST\n")
    assert main(["HEAD~1", "HEAD", "."], tmp_path) == 1
    assert "changed  kept/streams.py:11 LIMIT -> kept/streams.py:11 LIMIT" in capsys.readouterr().out
    assert main(["HEAD~2", "HEAD~1", "--names", str(names), "."], tmp_path) == 1
    with pytest.raises(ValueError, match="has no Python files in layers"):
        main(["HEAD~2", "HEAD", "layers"], tmp_path)
