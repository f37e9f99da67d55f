"""Publishes random notes into a team's store until it is killed; a process of `benchmarks.team`."""

import sys
from itertools import count

import numpy as np

from benchmarks.team import CALL_S, opened_store, random_source
from memd.config import TeamConfig

uri, token_file, ca, database, collection, seed = sys.argv[1:]
config = TeamConfig(uri=uri, token_file=token_file, ca=ca, database=database, collection=collection)
rng = np.random.default_rng(int(seed))
first = 1 + 10_000 * int(seed)  # revisions grow from process to process
with opened_store(config) as store:
    for revision in count(first):
        some = {int(number) for number in rng.integers(0, 100, 10)}
        sources = (random_source(rng, number, revision, workspace="faults") for number in some)
        store.replace(tuple(sources), CALL_S)
        if revision == first:
            print("publishing", flush=True)
