"""How does an answer read: for people, for editors, for programs?

Pure: an answer of the daemon in, text out. Knows no socket, no terminal but what it is told of it.
"""
