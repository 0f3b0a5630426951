"""The function that keeps the departures board."""

from __future__ import annotations

import os

from boards import departures_board

from epochal import lambda_handler
from epochal.dynamo.stores import open_read_models

models = open_read_models(os.environ["EPOCHAL_READ_MODELS_TABLE"])
handler = lambda_handler(departures_board(models.open("departures", 1)))
