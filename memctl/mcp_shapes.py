"""What do the tools for agents take and give? Types, with the words that an agent reads of them."""

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict  # pydantic reads no other before Python 3.12

Query = Annotated[
    str,
    Field(
        description="What to look for: a question or some words, in any language. "
        '"Quoted words" stand together, -word excludes.'
    ),
]
Path = Annotated[str | None, Field(description="Only notes whose path matches this glob, as daily/*.md")]
Tag = Annotated[list[str] | None, Field(description="Only notes that have all of these tags")]
Since = Annotated[str | None, Field(description="Only notes of this day or later, YYYY-MM-DD")]
Until = Annotated[str | None, Field(description="Only notes of this day or earlier, YYYY-MM-DD")]
Sync = Annotated[
    bool, Field(description="Wait until everything that is saved by now is searchable, a few seconds at most")
]
Topic = Annotated[
    str, Field(description="A short subject, as deploy or user-preferences: the entry's folder")
]
Title = Annotated[str, Field(description="The fact in one line, in words somebody would search for")]
Content = Annotated[
    str,
    Field(
        description="Markdown that is clear without this conversation: what holds, why, since when, "
        "where it comes from"
    ),
]


# Beside what each answer is about: `note` says what it lacks, "" where all is well.


class Place(TypedDict):
    """Where text came from, or why it was left out."""

    path: str
    start_line: int
    end_line: int
    reason: NotRequired[str]


class Hit(TypedDict):
    """One stretch of a note."""

    path: str
    start_line: int
    end_line: int
    heading: str
    title: str
    snippet: str
    score: float
    date: str | None
    origin: str
    also_in: list[Place]


class SearchAnswer(TypedDict):
    """Hits, best first, and how they were found."""

    hits: list[Hit]
    confidence: str
    mode: str
    degraded: list[str]
    complete: bool
    workspace: str
    note: str


class RecallAnswer(TypedDict):
    """Text for a prompt with its sources."""

    text: str
    tokens: int
    budget_tokens: int
    sources: list[Place]
    omitted: list[Place]
    confidence: str
    degraded: list[str]
    note: str


class Reason(TypedDict):
    """Which stage dropped a note that a search did not return."""

    path: str
    stage: str
    text: str
    advice: str
    degraded: list[str]
    note: str


class Likeness(TypedDict):
    """A note or entry that may say the same."""

    path: str
    title: str
    start_line: int
    end_line: int
    score: float


class Written(TypedDict):
    """The entry that was written."""

    path: str
    id: str
    created: str | bool | None
    indexed: bool
    similar: list[Likeness]
    note: str


class Excerpt(TypedDict):
    """A note or some of its lines."""

    path: str
    start_line: int
    end_line: int
    lines: int
    title: NotRequired[str]
    tags: NotRequired[list[str]]
    text: str
    note: str
