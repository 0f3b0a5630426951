"""Bringing in histories from elsewhere: files, other stores' tables and exports, read row by row into named streams."""
