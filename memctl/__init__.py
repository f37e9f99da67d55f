"""How does a person, a script or an editor talk to memd?

The client. It imports nothing of the daemon, and nothing that is slow to import.
"""
