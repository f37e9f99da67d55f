import json
from pathlib import Path

HERE = Path(__file__).parent
SAMPLE = HERE / "sample"
TITLES = {
    "research/brca1.md": "BRCA1 mutation analysis\n",
    "runbooks/pipeline.md": "execute the pipeline\n",
    "research/asd.md": "ASD prevalence study (PMID:12345)\n",
    "programming/style.md": "Code style: tabs vs spaces\n",
}


def test_the_four_notes_are_their_titles_alone():
    """What the semantic gates search for has no word of help beside its title."""
    assert {path: (SAMPLE / path).read_text() for path in TITLES} == TITLES


def test_the_sample_is_no_workspace_yet():
    assert not (SAMPLE / "memory/config.toml").exists()
    assert len(list(SAMPLE.rglob("*.md"))) >= 44


def test_every_pair_names_a_note():
    pairs = [json.loads(line) for line in (HERE / "pairs.jsonl").read_text().splitlines()]
    assert all((SAMPLE / pair["path"]).is_file() for pair in pairs)
    assert len({pair["query"] for pair in pairs}) == len(pairs) >= 300
