"""The codes in answers: what a search did without, why a link means no note; for memctl and memd."""

# What an answer lacks, `degraded`: each heals by itself, or says what to do.
DEGRADED = {
    "embedding-paused": "memctl pause --off ends it",
    "model-loading": "the model is still loading",
    "model-failed": "the model failed, memctl status says why",
    "model-slow": "the model took too long",
    "no-provider": "this workspace's config.toml says provider = none",
    "numpy-missing": "numpy is not installed",
    "root-missing": "the folder, or memory/config.toml in it, is missing: the hits come from its index",
    "store-away": "the team's store gave no answer (memctl team status): the hits are of this workspace",
    "vocabulary-loading": "the vocabulary is still loading: no words were corrected or found in other forms",
    "vectors-building": "the notes are still being embedded with this model",
    "vectors-corrupt": "vectors on disk were damaged; they are being computed again",
    "vectors-incomplete": "the notes could not all be embedded, memctl status says why",
}

# Why there was no search by meaning, `vector_arm`: one of these, or a code of `degraded`.
NO_VECTOR_ARM = {
    "mode": "only words were asked for",
    "no-words": "the query has no words",
    "other-model": "the model was changed a moment ago",
    "script": "the model does not read the query's script",
}

# Why a link means no note or no place of one, `why`.
NO_NOTE = {
    "missing": "no such note",
    "outside": "outside of the workspace",
    "ambiguous": "several notes have this name",
    "part": "no such heading",
    "file": "no note",
}

MEANING = DEGRADED | NO_VECTOR_ARM  # a code of a newer memd is shown as it is
