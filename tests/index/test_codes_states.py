"""Searches by meaning say what a scan says, whatever happens to matrix and codes in whatever order."""

import random
import shutil
import tempfile
from pathlib import Path

import pytest
from codes_support import answers, loaded, made
from derived_life import DerivedFileLife
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from tests_support import LONG, OtherHashEmbedder, WordHashEmbedder

from memd.index import codes
from memd.search import vector

pytest.importorskip("faiss")

EXAMPLES = 10 if LONG else 3  # lives
PATHS = st.sampled_from([f"n{number}.md" for number in range(60)])
WORDS = st.sampled_from(
    [
        "heron", "weir", "badger", "sett", "otter", "river", "lamp", "oil", "bread", "rye", "salt", "kiln",
        "clay",
    ]
)  # fmt: skip
TEXTS = st.lists(WORDS, min_size=1, max_size=5).map(" ".join)
SMALL = {(codes, "MIN_ROWS"): 20, (codes, "SLICE_ROWS"): 32, (vector, "GATHERED"): 2}


class Life(DerivedFileLife):
    """One index through saves, deletions, compactions, models, restarts, crashes; codes at any moment.

    There are more candidates than rows: a code that is a little wrong is not the point here.
    """

    MOST_SLICES = 8

    @initialize()
    def begin(self):
        self.kept = {(module, name): getattr(module, name) for module, name in SMALL}
        for (module, name), value in SMALL.items():
            setattr(module, name, value)
        self.live(Path(tempfile.mkdtemp(prefix="memd-codes-")))
        self.notes.save({f"n{number}.md": f"word{number} heron weir\n" for number in range(60)})

    @property
    def keeper(self):
        return self.notes.index.codes

    def can_make(self):
        return self.notes.index.snapshot.rows.count >= 20

    def opened(self):
        loaded(self.notes)

    @rule(several=st.dictionaries(PATHS, TEXTS, min_size=1, max_size=20), embed=st.booleans())
    def save(self, several, embed):
        self.notes.save(several, embed=embed)

    @rule(paths=st.sets(PATHS, max_size=30))
    def delete(self, paths):
        self.clock += 1
        for path in paths:
            (self.notes.root / path).unlink(missing_ok=True)
        self.notes.indexer.apply(sorted(paths), at_s=self.clock)

    @rule()
    def compact(self):
        self.notes.index.purge(None, 60)
        self.notes.compact()

    @rule()
    def take_the_other_model(self):
        embedder = (
            OtherHashEmbedder() if self.notes.embedder.dim == WordHashEmbedder.dim else WordHashEmbedder()
        )
        self.notes.switch(embedder)
        self.notes.embed()
        self.notes.index.finish_building(frozenset())

    @precondition(can_make)
    @rule()
    def make_a_file(self):
        assert made(self.notes)
        self.building = None

    @rule(chance=st.randoms(use_true_random=False))
    def flip_a_bit(self, chance: random.Random):
        """Of a file that nobody has read yet."""
        self.let_go()
        self._reopen(load=False)
        for path in self.notes.state.glob("codes.*"):
            block = bytearray(path.read_bytes())
            block[chance.randrange(len(block))] ^= 1 << chance.randrange(8)
            path.write_bytes(block)
        loaded(self.notes)

    @rule(load=st.booleans())
    def restart(self, load):
        self._reopen(load=load)

    @invariant()
    def the_nearest_are_those_of_the_scan(self):
        for text in ("heron weir", "bread rye salt", "word7"):
            found, exact = (answers(self.notes, text, exact=exact) for exact in (False, True))
            assert [cosine for _, cosine in found[:10]] == [cosine for _, cosine in exact[:10]]
            assert {number for number, _ in found} <= {number for number, _ in exact}

    @invariant()
    def nothing_is_wrong(self):
        assert self.notes.findings() == []

    def teardown(self):
        self.let_go()
        self.notes.index.close()
        for (module, name), value in self.kept.items():
            setattr(module, name, value)
        shutil.rmtree(self.folder)

    def _reopen(self, *, load: bool) -> None:
        self.let_go()
        self.notes.reopen()
        self.building = None
        if load:
            loaded(self.notes)


TestCodesLife = Life.TestCase
TestCodesLife.settings = settings(max_examples=EXAMPLES, stateful_step_count=20)
