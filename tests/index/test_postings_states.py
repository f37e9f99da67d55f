"""The postings of a query stay those of FTS5, whatever happens to index and file in whatever order."""

import os
import random
import shutil
import tempfile
from pathlib import Path

from derived_life import DerivedFileLife
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule
from postings_support import made, untruths

from memd.index import postings_file
from memd.index.check import Finding, repair

EXAMPLES = int(os.environ.get("MEMD_EXAMPLES", "12"))  # lives; more at night
PATHS = st.sampled_from([f"n{number}.md" for number in range(8)])
WORDS = st.sampled_from(["zebra", "lion", "浅草", "草", "草" * 600, "# H\n\n"])
TEXTS = st.lists(WORDS, max_size=6).map(" ".join)


class Life(DerivedFileLife):
    """One index through saves, deletions, purges, restarts and crashes, and files at any moment of it."""

    MOST_SLICES = 30

    @initialize()
    def begin(self):
        self.kept = {name: getattr(postings_file, name) for name in ("MIN_DOCUMENTS", "TERMS_AT_ONCE")}
        postings_file.MIN_DOCUMENTS, postings_file.TERMS_AT_ONCE = 2, 3
        self.live(Path(tempfile.mkdtemp(prefix="memd-postings-")))

    @property
    def keeper(self):
        return self.notes.index.postings

    @rule(several=st.dictionaries(PATHS, TEXTS, min_size=1))
    def save(self, several):
        self.notes.save(several, embed=False)

    @rule(path=PATHS)
    def delete(self, path):
        self.clock += 1
        (self.notes.root / path).unlink(missing_ok=True)
        self.notes.indexer.apply([path], at_s=self.clock)

    @rule()
    def purge(self):
        self.notes.index.purge(None, 3)

    @rule()
    def compact(self):
        self.notes.compact()

    @rule()
    def make_the_words_anew(self):
        repair(self.notes.index, [Finding("words", "as if")])

    @rule()
    def make_a_file(self):
        assert made(self.notes)
        self.building = None

    @rule(chance=st.randoms(use_true_random=False))
    def flip_a_bit(self, chance: random.Random):
        """Under a running index, so that it is one that nobody looked at yet."""
        self.let_go()
        if self.notes.index.postings.current is None:
            return
        self._reopen()
        for path in self.notes.state.glob("postings.*"):
            with path.open("r+b") as stream:
                place = chance.randrange(128, max(path.stat().st_size, 129))
                stream.seek(place)
                found = stream.read(1)
                stream.seek(place)
                stream.write(bytes([found[0] ^ 1])) if found else None
        if chance.random() < 0.5:
            self._reopen()

    @rule()
    def restart(self):
        self._reopen()

    @invariant()
    def postings_are_those_of_fts5(self):
        with self.notes.index.view() as view:
            assert untruths(view) == []
        if self.held:
            assert untruths(self.held[1]) == [], "of a view of before"

    @invariant()
    def at_most_two_files_are_there(self):
        assert len(list(self.notes.state.glob("postings.*"))) <= 2, "the one that counts, one in the making"

    def _reopen(self):
        self.let_go()
        self.notes.reopen()
        self.building = None
        assert len(list(self.notes.state.glob("postings.*"))) <= 1

    def teardown(self):
        if hasattr(self, "notes"):
            for name, value in self.kept.items():
                setattr(postings_file, name, value)
            self.let_go()
            self.notes.index.close()
            shutil.rmtree(self.folder)


TestPostingsLife = Life.TestCase
TestPostingsLife.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
