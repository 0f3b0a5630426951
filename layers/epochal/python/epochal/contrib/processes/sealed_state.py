"""An instance's state, sealed for every person whose sealed data its inputs have.

The state of an instance stands beside its events, as an unfold. Where inputs are sealed it holds what was in them in
plain text, so it is sealed, too: under the key of one person, that under the key of the next, and so on. It can be
read while all of them have keys. Once one is forgotten, nobody can read it, and the state is folded again from the
inputs, in which the codec has something else for the person who is gone.

A sealed text is a third longer than what was sealed. So from `MOST_SUBJECTS` on no state is stored at all, and each
load folds the inputs of the instance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from epochal.codec import json
from epochal.deciders.codecs import Sealing
from epochal.errors import InvalidInput, SubjectForgotten
from epochal.model.body_marks import SEALED, sealed_in

MOST_SUBJECTS: Final = 3
"""Maximum number of persons for whom one state is sealed: it is then 2.4 times as long."""


def subjects_in(record: Mapping[str, Any]) -> frozenset[str]:
    """Return the persons for whom any message in the record of an instance's event is sealed."""
    subjects = (sealed.get("subject") for sealed in sealed_in(record))
    return frozenset(subject for subject in subjects if isinstance(subject, str))


def seal(sealing: Sealing, subjects: Iterable[str], value: Any) -> Any:
    """Seal a JSON value for all of these persons, one after another; return None if that is impossible.

    It is impossible if a person is forgotten or could have no key, or if there are more than `MOST_SUBJECTS`. Without
    any subject the value is returned unchanged.
    """
    ordered = sorted(subjects)
    if len(ordered) > MOST_SUBJECTS:
        return None
    for subject in ordered:
        try:
            value = json.loads(sealing.seal(subject, json.dumps(value)))
        except (SubjectForgotten, InvalidInput):
            return None
    return value


def unseal(sealing: Sealing, value: Any) -> Any:
    """Unseal a JSON value that `seal` returned; return None if a person is forgotten or the value is None."""
    for _ in range(MOST_SUBJECTS):
        if not isinstance(value, dict) or SEALED not in value:
            break
        body = sealing.unseal(json.dumps(value))
        if body is None:
            return None
        value = json.loads(body)
    return value
