"""Developer programs, run from the root of a checkout: python tools/NAME.py. Not in the wheel."""
