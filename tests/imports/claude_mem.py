"""A database as claude-mem writes it: the columns of its migrations that a reader needs, and some others."""

import sqlite3
from contextlib import closing
from pathlib import Path

TABLES = """
    CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY, memory_session_id TEXT UNIQUE, project TEXT);
    CREATE TABLE observations (
        id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL, project TEXT NOT NULL,
        text TEXT,
        type TEXT NOT NULL, title TEXT, subtitle TEXT, facts TEXT, narrative TEXT, concepts TEXT,
        created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL
    );
    CREATE TABLE session_summaries (
        id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL, project TEXT NOT NULL,
        request TEXT, investigated TEXT, learned TEXT, completed TEXT, next_steps TEXT, notes TEXT,
        created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL
    );
"""


def claude_mem_database(folder: Path, text: str, *, session: str = "s1") -> Path:
    """Write a session with an observation and a summary, in the mode of journal that the program uses."""
    path = folder / "claude-mem.db"
    is_new = not path.exists()
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA journal_mode = WAL")
        if is_new:
            database.executescript(TABLES)
        at = ("2026-05-01T10:00:00.000Z", 1777629600000)
        database.execute(
            "INSERT INTO observations (memory_session_id, project, type, title, facts, narrative, created_at,"
            " created_at_epoch) VALUES (?, 'shop', 'decision', 'Weir', ?, ?, ?, ?)",
            (session, '["It is closed."]', text, *at),
        )
        database.execute(
            "INSERT INTO session_summaries (memory_session_id, project, request, learned, created_at,"
            " created_at_epoch) VALUES (?, 'shop', ?, 'It leaks.', ?, ?)",
            (session, f"Ask {session}", *at),
        )
    return path
