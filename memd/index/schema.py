"""Which tables does an index have?

The full-text tables are contentless: the text lives once, in ``chunks``, as it stands in the file, and
what they index is derived from it (``memd.terms``). They can be dropped and filled again at any time.
"""

VERSION = 1  # of these tables; another one means that the index is built anew

# unicode61 keeps letters and digits; with Mn and Mc the vowel signs of Indic scripts stay in their words.
# remove_diacritics 2 also sees the ones that are stored as one code point with their letter.
WORDS_TOKENIZER = ("unicode61", "remove_diacritics", "2", "categories", "L* N* Co Mn Mc")

SCHEMA = f"""
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
    dated INTEGER NOT NULL,                -- 1: the name starts with the day
    origin TEXT NOT NULL,
    front_matter TEXT NOT NULL,            -- JSON object
    warnings TEXT NOT NULL                 -- JSON list
) STRICT;

CREATE TABLE chunks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used twice: what is dead stays dead in a snapshot
    source INTEGER NOT NULL REFERENCES sources (id),
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    start_byte INTEGER NOT NULL,           -- of the first line, that the text begins at
    heading TEXT NOT NULL,
    text TEXT NOT NULL,                    -- as in the file
    context TEXT NOT NULL,                 -- what the model reads in front of it
    hash BLOB NOT NULL,                    -- of what the model reads
    length INTEGER NOT NULL,               -- in terms
    row INTEGER                            -- of the matrix; NULL while the vector is not there
) STRICT;
CREATE INDEX chunks_by_source ON chunks (source);
CREATE INDEX chunks_to_embed ON chunks (id) WHERE row IS NULL;
CREATE INDEX hashes_to_embed ON chunks (hash) WHERE row IS NULL;

CREATE TABLE vectors (
    row INTEGER PRIMARY KEY,               -- never used twice inside a matrix file
    hash BLOB NOT NULL UNIQUE,             -- of what the model read
    crc INTEGER NOT NULL                   -- CRC-32 of the row's bytes
) STRICT;

CREATE VIRTUAL TABLE words USING fts5 (
    text, content='', contentless_delete=1,
    tokenize="{" ".join(WORDS_TOKENIZER[:3])} categories '{WORDS_TOKENIZER[4]}'"
);
CREATE VIRTUAL TABLE trigrams USING fts5 (
    text, content='', contentless_delete=1, tokenize="trigram remove_diacritics 1"
);
"""

# One row for each place where a term stands; lives in the connection, not in the file.
POSTINGS = "CREATE VIRTUAL TABLE temp.postings USING fts5vocab (main, words, instance)"
