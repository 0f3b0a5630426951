"""What users type is offered by the package where they would guess it, and such a package lists nothing else."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from tests.public import library_names

PACKAGES = sorted(
    module.name for module in library_names.modules().values() if module.is_package and module.exported
)
IMPORTED = [name for name in PACKAGES if name != "epochal.cdk"]  # the constructs need Node

GUESSED = {
    "epochal": "Event ANY NO_STREAM Token parse_token Place InvalidInput Contended Unavailable open_streams",
    "epochal.aio": "AsyncPlace AsyncStreams AsyncDeciders AsyncDecisions AsyncFeed AsyncReadModels cancelled_write",
    "epochal.deciders": "Decider Deciders Cache snapshot AllowStale REQUIRE_LOAD json_codec Projection Decisions",
    "epochal.read_models": "ReadModel ReadModels Documents SecondaryKey Page",
    "epochal.reactions": "reaction Reaction Delivery Selector Groups Parking",
    "epochal.feed": "FeedReader FeedEvent FeedPage",
    "epochal.store": "Streams Bulk JoinedAppends listings_of Patience StreamState",
    "epochal.testing": "given given_tagged memory_streams MemoryStore MemoryTables",
    "epochal.errors": "EpochalError KeyAhead SubjectForgotten",
    "epochal.cdk": "EventStore Reaction Store Network",
    "epochal.contrib.processes": "process Process Send Append Done",
    "epochal.contrib.timers": "timers_of",
    "epochal.contrib.subjects": "sealed_codec open_subjects memory_subjects",
    "epochal.contrib.sql": "SqlReadModels",
}


@pytest.mark.parametrize("package", GUESSED)
def test_names_can_be_imported_from_where_one_would_guess(package: str) -> None:
    assert set(GUESSED[package].split()) <= set(dir(import_module(package)))
    if package != "epochal.cdk":
        for name in GUESSED[package].split():
            getattr(import_module(package), name)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_lists_the_names_that_it_offers_and_no_others(package: str) -> None:
    module = import_module(package)
    assert dir(module) == sorted(module.__all__)


def test_the_module_of_errors_lists_errors_alone() -> None:
    errors = import_module("epochal.errors")
    assert dir(errors) == sorted(name for name in dir(errors) if issubclass(getattr(errors, name), Exception))


@pytest.mark.parametrize("package", IMPORTED)
def test_no_name_is_hidden_by_a_module_of_its_package(package: str) -> None:
    """Importing a module sets the package's attribute of that name, which would hide a name that is resolved late."""
    module = import_module(package)
    for path in Path(str(module.__file__)).parent.iterdir():
        if path.stem in module.__all__:
            import_module(f"{package}.{path.stem}")
            assert not isinstance(getattr(module, path.stem), ModuleType), path


@pytest.mark.parametrize("package", ["epochal", "epochal.deciders", "epochal.reactions", "epochal.testing"])
def test_a_package_imports_none_of_its_modules_before_they_are_used(package: str) -> None:
    code = f"import sys, {package}; print(*(name for name in sys.modules if name.startswith('{package}.')))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(found.stdout.split()) <= {"epochal.deferred", "epochal.errors", "epochal.lazy_dataclasses"}
