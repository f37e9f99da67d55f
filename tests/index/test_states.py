"""The index and its postings are what the folder says, whatever happens in whatever order."""

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from postings_support import untruths
from tests_support import LatinEmbedder, Notes, OtherHashEmbedder, WordHashEmbedder, many

from memd.index import check, index, indexer, matrices, postings_table, source_rows, transaction

EXAMPLES = many(48)  # lives
GONE = "SELECT path FROM sources WHERE gone_at IS NOT NULL AND path NOT GLOB '/*'"
PATHS = st.sampled_from([f"{folder}n{number}.md" for folder in ("", "d/") for number in range(4)])
# Few texts, so that the same one comes back: in another note, after its vector is garbage.
FOREIGN = "发动机要在星期四修理好\n"  # one of the models does not read it
LARGE = [
    "".join(f"# part{number}\n\n{word} {'filler ' * 60}\n\n" for number in range(5))
    for word in ("zebra", "one")
]
TEXTS = st.sampled_from(
    [
        *(f"word{number} zebra lion\n" for number in range(5)), "", "# H\n\none\n\n# I\n\ntwo\n", FOREIGN,
        *LARGE,
    ]
)  # fmt: skip
# Large is what has four chunks, of which three are embedded, and a slice has one or two.
SMALL = {
    (indexer, "STAGED_CHUNKS"): 3, (transaction, "STAGED_CHUNKS"): 3, (transaction, "CHUNKS_AT_ONCE"): 1,
    (index, "WASTE_CHUNKS"): 2, (matrices, "COPIED_ROWS"): 2, (postings_table, "MIN_DOCUMENTS"): 2,
    (postings_table, "TERMS_AT_ONCE"): 3, (postings_table, "TAIL_SHARE"): 0,
    (source_rows, "EMBEDDED_CHUNKS"): 3,
}  # fmt: skip


class OtherLatinEmbedder(OtherHashEmbedder):
    """Another model, that reads Latin letters."""

    scripts = frozenset({"Latin"})


class Life(RuleBasedStateMachine):
    """One index through saves, deletions, purges, compactions, changes of model, restarts and crashes."""

    @initialize()
    def begin(self):
        self.kept = {(module, name): getattr(module, name) for module, name in SMALL}
        for (module, name), value in SMALL.items():
            setattr(module, name, value)
        self.folder = Path(tempfile.mkdtemp(prefix="memd-states-"))
        self.notes = Notes(self.folder)
        self.files: dict[str, str] = {}  # what the disk holds
        self.gone: dict[str, int] = {}  # path → since when
        self.clock = 0
        self.held: list[tuple] = []
        self.crashes = 0
        self.building = None  # a pass over the postings
        self.repairing = None

    @rule(path=PATHS, text=TEXTS, embed=st.booleans())
    def save(self, path, text, embed):
        self.notes.save({path: text}, embed=embed)
        self.files[path] = text
        self.gone.pop(path, None)

    @rule(several=st.dictionaries(PATHS, TEXTS, min_size=2))
    def save_in_one_commit(self, several):
        self.notes.save(several, embed=False)
        self.files |= several
        for path in several:
            self.gone.pop(path, None)

    @rule(
        path=PATHS, text=st.sampled_from(LARGE), slices=st.integers(1, 4),
        then=st.sampled_from(["newer", "crash", "waste", "purge", "postings", "repair"]),
    )  # fmt: skip
    def save_in_slices(self, path, text, slices, then):
        """Nothing of them is seen, whatever happens between them, until the last is committed."""
        indexing, notes = self.notes.indexer, self.notes
        notes.write(path, text)
        readings = indexing.read([path])
        indexing.sift(readings)
        indexing.prepare(readings)
        for _ in range(slices):
            indexing.stage(readings, budget_s=0)
        if (staged := readings[0].staged) is not None:  # else it is stored already
            assert staged.stored <= slices * transaction.CHUNKS_AT_ONCE
        assert notes.findings() == []
        self.what_is_known_is_what_the_disk_holds()
        if then == "crash":
            self.crash()
            self.save(path, text, embed=False)
            return
        if then in {"postings", "repair"}:  # of chunks behind those that are not stored yet
            self.clock += 1
            self.save("between.md", f"word1 one {self.clock}\n", embed=True)
            self.building = self.repairing = None
        if then == "postings":
            self.make_postings(1_000)
        elif then == "repair":
            self.repair_a_little(slices, "words")
        elif then == "waste":
            notes.index.drop_some_waste()
        elif then == "purge":
            notes.index.purge(None, 100)
            self.gone.clear()
        elif then == "newer":
            self.save(path, "word2 zebra\n", embed=False)
        self.what_is_known_is_what_the_disk_holds()
        while not indexing.stage(readings, budget_s=0):
            pass
        indexing.commit(readings)
        if then != "newer":
            self.files[path] = text
            self.gone.pop(path, None)
        if then == "repair":
            self.repair_a_little(1_000, "words")

    @rule()
    def drop_waste(self):
        while self.notes.index.drop_some_waste():
            pass
        assert self.notes.index.writer.run("SELECT count(*) FROM sources WHERE path GLOB '/*'") == [(0,)]

    @rule(path=PATHS)
    def delete(self, path):
        self.clock += 1
        (self.notes.root / path).unlink(missing_ok=True)
        self.notes.indexer.apply([path], at_s=self.clock)
        if self.files.pop(path, None) is not None:
            self.gone[path] = self.clock

    @rule(old=PATHS, new=PATHS)
    def rename(self, old, new):
        if old not in self.files or old == new:
            return
        self.clock += 1
        (self.notes.root / new).parent.mkdir(exist_ok=True)
        (self.notes.root / old).rename(self.notes.root / new)
        self.notes.indexer.apply([new, old], at_s=self.clock, budget_s=60)
        self.files[new] = self.files.pop(old)
        self.gone.pop(new, None)
        self.gone[old] = self.clock

    @rule(ago=st.integers(0, 5), limit=st.integers(1, 3))
    def purge(self, ago, limit):
        self.drop_waste()  # which a purge would take along, and count
        before = self.clock - ago
        due = {path for path, since in self.gone.items() if since <= before}
        assert self.notes.index.purge(before, limit) == min(len(due), limit)
        with self.notes.index.view_apart() as view:
            left = {row[0] for row in view.reader.each(GONE)}
        assert left <= self.gone.keys()
        assert len(self.gone) - len(left) == min(len(due), limit)
        self.gone = {path: since for path, since in self.gone.items() if path in left}

    @rule(slices=st.integers(1, 6))
    def compact_a_little(self, slices):
        for _ in range(slices):
            if self.notes.index.compact(0.0):
                break

    @rule()
    def compact(self):
        self.notes.compact()  # one that ran may have copied what was needed then
        self.notes.compact()
        assert self.notes.index.garbage()[0] == 0

    @rule()
    def embed(self):
        self.notes.embed()
        assert self.notes.index.unembedded_count() == 0

    @rule(limit=st.integers(1, 3))
    def embed_some(self, limit):
        batch = self.notes.index.pending(limit)
        if batch:
            self.notes.embed_some(batch)

    @rule(embedder=st.sampled_from([WordHashEmbedder, LatinEmbedder, OtherHashEmbedder, OtherLatinEmbedder]))
    def choose_a_model(self, embedder):
        self.notes.switch(embedder())

    @rule()
    def finish_building(self):
        building, pending = self.notes.index.building, self.notes.index.unembedded_count()
        assert self.notes.index.finish_building(frozenset()) == bool(building and not pending)

    @rule(slices=st.integers(1, 30))
    def make_postings(self, slices):
        """A part of a pass, which goes on after whatever comes between."""
        table = self.notes.index.postings
        self.building = self.building or table.begin()
        for _ in range(slices):
            if not table.put(self.building, self.building.step(0.0)) or self.building.is_done:
                self.building = None
                break

    @rule(steps=st.integers(1, 4), table=st.sampled_from([*check.TABLES]))
    def repair_a_little(self, steps, table):
        """A part of a repair of a full-text table, which answers meanwhile."""
        damaged = [check.Finding(table, "as if it was damaged")]
        self.repairing = self.repairing or check.Repair(self.notes.index, damaged)
        for _ in range(steps):
            if self.repairing.step(0.0):
                self.repairing = None
                break

    @rule()
    def restart(self):
        self._let_go()
        self.building = self.repairing = None
        waiting = self.notes.index.unembedded_count()
        self.notes.reopen()
        assert self.notes.index.unembedded_count() == waiting

    @rule()
    def crash(self):
        self._let_go()
        self.crashes += 1
        folder = self.folder / f"crash{self.crashes}"
        folder.mkdir()
        after = self.notes.crashed(folder)
        assert after.index.unembedded_count() == self.notes.index.unembedded_count()
        self.notes.index.close()
        self.notes, self.building, self.repairing = after, None, None

    @rule()
    def checkpoint(self):
        self.notes.index.writer.checkpoint()

    @precondition(lambda self: not self.held)
    @rule()
    def begin_a_query(self):
        context = self.notes.index.view()
        view = context.__enter__()
        self.held.append((context, view, self._seen(view)))

    @precondition(lambda self: self.held)
    @rule()
    def end_a_query(self):
        self._let_go()

    @invariant()
    def what_is_known_is_what_the_disk_holds(self):
        index = self.notes.index
        assert {source.path for source in index.snapshot.sources.values()} == self.files.keys()
        assert index.writer.gone_count() == len(self.gone)
        for word in ("zebra", "word1", "one"):
            expected = {path for path, text in self.files.items() if word in text.split()}
            with index.view() as view:
                having = {int(view.snapshot.columns.source[chunk]) for chunk in view.matching("words", word)}
                assert {view.snapshot.sources[source].path for source in having} == expected
            assert set(self.notes.found(word, limit=100)) <= expected, "equal notes are folded into one"
        with index.view() as view:
            assert untruths(view) == []
        near = self.notes.found("zebra", mode="vector", limit=100, min_score=0.0)
        assert set(near) <= self.files.keys(), "a gone note is near"
        foreign = [path for path, text in self.files.items() if text == FOREIGN]
        assert index.unembedded_count("script") == (len(foreign) if self.notes.embedder.scripts else 0)
        assert index.unembedded_count("long") == 2 * sum(text in LARGE for text in self.files.values())

    @invariant()
    def each_vector_is_that_of_its_text(self):
        with self.notes.index.view() as view:
            columns, rows = view.snapshot.columns, view.snapshot.rows
            model = {e.model_id: e for e in (WordHashEmbedder(), OtherHashEmbedder())}
            embedder = model.get(view.snapshot.model_id)
            for number, row in enumerate(columns.row):
                if columns.source[number] and row >= 0:
                    chunk = view.chunks([number])[number]
                    size = rows.dim * 4
                    stored = rows.buffer[row * size : (row + 1) * size]
                    assert embedder.embed_query(chunk.context + chunk.text) == stored

    @invariant()
    def the_check_finds_nothing(self):
        assert self.notes.findings(root=self.notes.root, rules=self.notes.rules()) == []

    def _seen(self, view):
        """Everything that one moment shows."""
        columns, rows = view.snapshot.columns, view.snapshot.rows
        live = [number for number, source in enumerate(columns.source) if source]
        size = rows.dim * 4
        return (
            {number: (chunk.text, chunk.source) for number, chunk in view.reader.chunks(live).items()},
            sorted(source.path for source in view.snapshot.sources.values()),
            [bytes(rows.buffer[columns.row[n] * size : (columns.row[n] + 1) * size]) for n in live],
            [int(n) for n in view.matching("words", "zebra")],
        )

    def _let_go(self):
        for context, view, before in self.held:
            assert self._seen(view) == before, "a query saw two moments"
            assert untruths(view) == [], "of a view of before"
            context.__exit__(None, None, None)
        self.held = []

    def teardown(self):
        if hasattr(self, "notes"):
            for (module, name), value in self.kept.items():
                setattr(module, name, value)
            self._let_go()
            self.notes.index.close()
            shutil.rmtree(self.folder)


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=EXAMPLES, stateful_step_count=25)
