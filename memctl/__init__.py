"""memctl: the client of memd for people, scripts, editors and agents.

It imports nothing from the daemon, and nothing that is slow to import.
"""

__version__ = "0.2.0"  # of memctl and memd, which are always installed together
