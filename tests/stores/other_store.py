"""A store in a program of its own, as a daemon starts one for a library that it does not load itself."""

import time
from pathlib import Path

from memd.config import TeamConfig
from memd.errors import StoreError
from memd.stores.serve import serve_child
from stores.reference_store import Body, ReferenceStore


def make(config: TeamConfig) -> ReferenceStore:
    """Return the store of a configuration."""
    if config.collection == "unusable":
        raise StoreError("this collection belongs to somebody else")
    if config.collection == "slow":
        time.sleep(3600)
    return ReferenceStore(Body(Path(config.database) / "store.db"), config.collection, ["team"])


if __name__ == "__main__":
    serve_child(make)
