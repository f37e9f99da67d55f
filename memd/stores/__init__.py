"""The team's memory: stores that many daemons share, and the local index behind the same interface."""
