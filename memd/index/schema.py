"""The tables of an index.

The full-text tables are contentless: the text lives once, in ``chunks``, as it stands in the file, and
what they index is derived from it (``memd.text``). They can be dropped and filled again at any time.

A chunk does not name its row of the matrix: `vectors` says it by the hash of the text, for each matrix
there is. So one text is embedded once, a second matrix is built without touching a chunk, and the switch
from one to the other is one value in `meta`: "active", "building".
"""

VERSION = 5  # of these tables; another one means that the index is built anew

# unicode61 keeps letters and digits; with Mn and Mc the vowel signs of Indic scripts stay in their words.
# remove_diacritics 2 also sees the ones that are stored as one code point with their letter.
WORDS_TOKENIZER = ("unicode61", "remove_diacritics", "2", "categories", "L* N* Co Mn Mc")

SCHEMA = """
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE sources (
    id INTEGER PRIMARY KEY AUTOINCREMENT,  -- from 1: 0 stands for "no source"
    path TEXT NOT NULL UNIQUE,             -- relative to the workspace, "/" on every platform
    mtime_ns INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    hash BLOB NOT NULL,                    -- of the file's bytes
    title TEXT NOT NULL,
    tags TEXT NOT NULL,                    -- JSON list
    day TEXT NOT NULL,                     -- ISO date
    day_of TEXT NOT NULL,                  -- "name", "updated", "created" or "changed": where it is from
    origin TEXT NOT NULL,
    front_matter TEXT NOT NULL,            -- JSON object
    warnings TEXT NOT NULL,                -- JSON list
    private INTEGER NOT NULL,              -- 1: it says that no agent may have it
    gone_at INTEGER                        -- unix seconds: not on the disk since; NULL while it is live
) STRICT;
CREATE INDEX sources_gone ON sources (gone_at) WHERE gone_at IS NOT NULL;
CREATE INDEX sources_private ON sources (id) WHERE private;

CREATE TABLE names (                       -- what links call a source: memd.index.links
    source INTEGER NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,                    -- "file", "alias" or "id"
    name TEXT NOT NULL,                    -- as it is looked for
    PRIMARY KEY (source, kind, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX names_by_name ON names (name);

CREATE TABLE links (                       -- of a source to others; resolved when they are asked for
    source INTEGER NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,                    -- "text", or the key of the front matter
    target TEXT NOT NULL,                  -- as it is written
    name TEXT NOT NULL,                    -- that the target is looked for by
    line INTEGER,                          -- NULL: in the front matter
    PRIMARY KEY (source, kind, target)
) STRICT, WITHOUT ROWID;
CREATE INDEX links_by_name ON links (name);
CREATE INDEX links_superseding ON links (source) WHERE kind = 'supersedes';

CREATE TABLE chunks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used twice: what is dead stays dead in a snapshot
    source INTEGER NOT NULL REFERENCES sources (id),
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    start_byte INTEGER NOT NULL,           -- of the first line, that the text begins at
    signature BLOB NOT NULL,               -- memd.index.signature; in front of what may fill pages
    heading TEXT NOT NULL,
    text TEXT NOT NULL,                    -- as in the file
    context TEXT NOT NULL,                 -- what the model reads in front of it
    hash BLOB NOT NULL,                    -- of what the model reads
    length INTEGER NOT NULL,               -- in terms
    beyond INTEGER NOT NULL,               -- 1: beyond the first chunks of a long source, it gets no vector
    scripts TEXT NOT NULL,                 -- of what the model reads, parted by spaces; "" without letters
    entry TEXT NOT NULL,                   -- id of the daily entry that it is from; "" of none
    origin TEXT NOT NULL                   -- who wrote that entry; "": the source says so
) STRICT;
CREATE INDEX chunks_by_source ON chunks (source);
CREATE INDEX chunks_by_hash ON chunks (hash);
CREATE INDEX chunks_by_entry ON chunks (entry) WHERE entry != '';

CREATE TABLE matrices (
    number INTEGER PRIMARY KEY,            -- of its file; one that is neither active nor building is waste
    model_id TEXT NOT NULL,
    dim INTEGER NOT NULL,
    next_row INTEGER NOT NULL,             -- only grows: a row is never used twice inside a file
    scripts TEXT                           -- JSON list of those that the model reads; NULL: all
) STRICT;

CREATE TABLE vectors (
    matrix INTEGER NOT NULL REFERENCES matrices (number),
    hash BLOB NOT NULL,                    -- of what the model read
    row INTEGER NOT NULL,
    crc INTEGER NOT NULL,                  -- CRC-32 of the row's bytes
    PRIMARY KEY (matrix, hash)
) STRICT, WITHOUT ROWID;

CREATE TABLE columns (                     -- memd.index.column_table
    slice INTEGER PRIMARY KEY,             -- of the ids of chunks
    stored BLOB NOT NULL,                  -- source, row of the active matrix and length of each
    crc INTEGER NOT NULL                   -- CRC-32 of the slice and what is stored
) STRICT;

-- Chunks of live sources without a vector of the model we want: those that will have one, ...
CREATE TABLE waiting (
    chunk INTEGER PRIMARY KEY REFERENCES chunks (id) ON DELETE CASCADE
) STRICT;

CREATE TABLE unreadable (                  -- ... those in a script that the model does not read, ...
    chunk INTEGER PRIMARY KEY REFERENCES chunks (id) ON DELETE CASCADE
) STRICT;

CREATE TABLE beyond (                      -- ... and those beyond the first chunks of a long source
    chunk INTEGER PRIMARY KEY REFERENCES chunks (id) ON DELETE CASCADE
) STRICT;
"""

FULL_TEXT = {  # table → what FTS5 is told of it
    "words": f"""tokenize="{" ".join(WORDS_TOKENIZER[:3])} categories '{WORDS_TOKENIZER[4]}'\"""",
    # Each trigram of a chunk's words once, parted by spaces and without its places: who looks for a part of a
    # word compares it with the text. With places and those that reach from word to word they take three
    # times as much as the text; so they take a third of it.
    "trigrams": "tokenize=ascii, detail=none",
}


def full_text(table: str, name: str = "") -> list[str]:
    """Return the statements that make a full-text *table*, or one like it of another *name*."""
    name = name or table
    settings = f"content='', contentless_delete=1, {FULL_TEXT[table]}"
    return [
        f"CREATE VIRTUAL TABLE {name} USING fts5 (text, {settings})",
        # Not in the commit that deletes: with 100,000 chunks and a tenth of them deleted, one took 9 s.
        # Compaction merges, in slices.
        f"INSERT INTO {name} ({name}, rank) VALUES ('deletemerge', 0)",
    ]


# One row for each place where a term stands; lives in the connection, not in the file.
POSTINGS = "CREATE VIRTUAL TABLE temp.postings USING fts5vocab (main, words, instance)"
TERMS = "CREATE VIRTUAL TABLE temp.terms USING fts5vocab (main, words, row)"  # one row for each term
TRIGRAM_POSTINGS = "CREATE VIRTUAL TABLE temp.trigram_postings USING fts5vocab (main, trigrams, instance)"
