"""Backends for libraries that Python programs use already: each a package, named as the library is."""
