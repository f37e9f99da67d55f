"""The postings of a query stay those of FTS5, whatever happens to index and table in whatever order."""

import shutil
import tempfile
from pathlib import Path

from derived_life import IndexLife
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule
from postings_support import damage, made, untruths
from tests_support import many

from memd.index import postings_table
from memd.index.check import Finding, repair

EXAMPLES = many(16)  # lives
PATHS = st.sampled_from([f"n{number}.md" for number in range(8)])
WORDS = st.sampled_from(["zebra", "lion", "浅草", "草", "草" * 600, "# H\n\n"])
TEXTS = st.lists(WORDS, max_size=6).map(" ".join)


class Life(IndexLife):
    """One index through saves, deletions, purges, restarts and crashes, and passes at any moment of it."""

    @initialize()
    def begin(self):
        self.kept = {
            name: getattr(postings_table, name) for name in ("MIN_DOCUMENTS", "TERMS_AT_ONCE", "TAIL_SHARE")
        }
        postings_table.MIN_DOCUMENTS, postings_table.TERMS_AT_ONCE, postings_table.TAIL_SHARE = 2, 3, 0
        self.live(Path(tempfile.mkdtemp(prefix="memd-postings-")))

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
    def make_a_pass(self):
        assert made(self.notes)

    @rule(slices=st.integers(1, 30))
    def make_a_part_of_a_pass(self, slices):
        table = self.notes.index.postings
        self.building = self.building or table.begin()
        for _ in range(slices):
            if not table.put(self.building, self.building.step(0.0)) or self.building.is_done:
                self.building = None
                break

    @rule()
    def give_the_pass_up(self):
        self.building = None

    @rule(times=st.integers(1, 4))
    def drop_rows(self, times):
        for _ in range(times):
            self.notes.index.postings.drop_some()

    @rule(column=st.sampled_from(["upto", "counts", "crc"]))
    def flip_bits(self, column):
        damage(self.notes, column, "length(term) % 2 = 0")

    @rule()
    def restart(self):
        self._reopen()

    @invariant()
    def postings_are_those_of_fts5(self):
        with self.notes.index.view() as view:
            assert untruths(view) == []
        if self.held:
            assert untruths(self.held[1]) == [], "of a view of before"

    def _reopen(self):
        self.let_go()
        self.notes.reopen()
        self.building = None

    def teardown(self):
        if hasattr(self, "notes"):
            for name, value in self.kept.items():
                setattr(postings_table, name, value)
            self.let_go()
            self.notes.index.close()
            shutil.rmtree(self.folder)


TestPostingsLife = Life.TestCase
TestPostingsLife.settings = settings(max_examples=EXAMPLES, stateful_step_count=30)
