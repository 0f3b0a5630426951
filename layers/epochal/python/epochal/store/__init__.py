"""Stores: they run layouts' plans on an interpreter, retry what may be retried, and answer in the model's terms."""
