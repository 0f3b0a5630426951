"""A process that delivers all of some histories to a database, from the beginning, and may be killed meanwhile.

python -m tests.sql.worker URL HISTORIES
"""

from __future__ import annotations

import random
import sys

from sqlalchemy import create_engine

from epochal.contrib.sql.read_models import SqlReadModel, SqlReadModels
from epochal.errors import Contended
from tests.sql.histories import Folds, deliveries, described


def opened(url: str) -> SqlReadModel:
    """The model that they fold into."""
    return SqlReadModels(engine=create_engine(url), tables={"all": described}).open("all", 1)


def main(url: str, histories: int) -> None:
    """Deliver them, one history after another."""
    model = opened(url)
    for seed in range(histories):
        folds = Folds(f"h{seed}", model)
        for each in (each for of in deliveries(f"h{seed}", random.Random(seed)).values() for each in of):
            while True:
                try:
                    model.apply(each, folds.event) if each.events else model.remove(each, folds.removal)
                except Contended:
                    continue
                break


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
