"""Run the kennel where `PERSISTENCE_MODULE` says: `python -m examples.kennel`."""

from __future__ import annotations

from eventsourcing.system import SingleThreadedRunner, System

from examples.kennel.kennel import Dogs, Tricks


def main() -> None:
    """Teach two dogs, and count what they have learned."""
    with SingleThreadedRunner(System(pipes=[[Dogs, Tricks]])) as runner:
        dogs, tricks = runner.get(Dogs), runner.get(Tricks)
        rex, fido = dogs.register("Rex"), dogs.register("Fido")
        dogs.teach(rex, "roll over", "play dead", "fetch")
        dogs.teach(fido, "fetch")
        for dog in map(dogs.dog, (rex, fido)):
            print(f"{dog.name}, version {dog.version}: {', '.join(dog.tricks)}")
        told = [each.id for each in dogs.recorder.select_notifications(1, 10)]
        print(f"notifications {told[0]} to {told[-1]}, 'fetch' learned {tricks.count('fetch')} times")


if __name__ == "__main__":
    main()
