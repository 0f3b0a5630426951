"""The function that keeps the table of delays; its scale is broken for one aircraft, which its environment names."""

from __future__ import annotations

import os

from boards import delay_table

from epochal import lambda_handler
from epochal.dynamo.stores import open_read_models

models = open_read_models(os.environ["EPOCHAL_READ_MODELS_TABLE"])
handler = lambda_handler(delay_table(models.open("delays", 1), {os.environ.get("BROKEN_FOR", "")}))
