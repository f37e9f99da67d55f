"""How good is search on these notes? Loaded by `memctl eval` alone; standard library and the client.

Questions come from a golden file or from the notes' own headings, which are then held out of what is
searched; four arms answer them, and scores says how well. Knows of memd only what travels over the wire.
"""
