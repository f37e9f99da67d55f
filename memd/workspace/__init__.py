"""One open workspace, kept in step with its folder."""
