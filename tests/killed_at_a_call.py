"""Code that a test puts into a program: it kills itself before the call of the system number `left`."""

DEADLY = """
import os, signal, sys
def deadly(call):
    def wrapped(*args, **kwargs):
        global left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*args, **kwargs)
    return wrapped
"""
