"""Live kits: the index stays true when everything happens at once. A real daemon, a real folder.

`steps` says what is done, drawn from a seed; `hands` do it to the folder, `game` to the daemon; `disk` knows
by rules of its own what must be searchable then. `shrinking` finds the few steps that matter. Short in the
tests beside it, long in ``python -m tests.live``; `planted` has the mistakes that must be found.
"""
