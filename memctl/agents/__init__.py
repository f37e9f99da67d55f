"""The configurations of agents' clients: what `memctl agents` writes into them, and takes away again."""
