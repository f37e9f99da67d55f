"""Open workspaces, whose indexes are kept in step with their folders."""
