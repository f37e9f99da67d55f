"""Load: memd under many clients, and what badly behaved ones can do to the others."""
