"""`python -m examples.flights`, or `make demo`."""

from __future__ import annotations

import os
import sys

from epochal.errors import EpochalError
from examples.flights.demo import run
from examples.flights.display import Display
from examples.flights.following import FeedStalled
from examples.flights.options import BadOption, Options
from examples.flights.over_http import UnexpectedAnswer
from examples.flights.reacting import ReactionStalled
from examples.flights.staying import AlreadyRuns

USAGE_STATUS = 2
INTERRUPTED_STATUS = 130


def main() -> int:
    """Run the demo; what can go wrong on the way is said in one line."""
    display = Display()
    try:
        return run(Options.from_environment(os.environ), display)
    except BadOption as error:
        display.fail(str(error))
        return USAGE_STATUS
    except (EpochalError, AlreadyRuns, FeedStalled, ReactionStalled, UnexpectedAnswer) as error:
        display.fail(str(error))
        return 1
    except KeyboardInterrupt:
        display.fail("stopped")
        return INTERRUPTED_STATUS
    except SystemExit:  # a SIGTERM, made into this so that what runs is stopped first
        display.fail("stopped")
        raise


if __name__ == "__main__":
    sys.exit(main())
