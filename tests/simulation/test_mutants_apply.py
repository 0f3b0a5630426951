"""Every deliberate bug still has the step that it breaks: a rename that leaves one behind is told by `make check`.

A mutant breaks a rule where the rule is, so it names steps that nothing else names. Played are only some of them in
`make check`, and all in `make proof`; here each is put in, and taken out again.
"""

from __future__ import annotations

import pytest

from tests.simulation.mutant_table import mutants
from tests.simulation.mutants import Mutant

MUTANTS = mutants()


def test_there_are_as_many_as_the_page_of_the_proof_says_at_least() -> None:
    assert len(MUTANTS) > 120


@pytest.mark.slice
@pytest.mark.parametrize(
    "mutant", MUTANTS, ids=lambda each: f"{each.__module__.rpartition('.')[2]}-{each.__name__}"
)
def test_what_it_breaks_is_there(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
