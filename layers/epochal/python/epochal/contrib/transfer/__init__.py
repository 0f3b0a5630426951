"""Moving events: imports, copies and exports."""
