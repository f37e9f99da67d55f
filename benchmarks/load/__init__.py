"""Load: memd under many clients, and the effect of badly behaved clients on the others."""
