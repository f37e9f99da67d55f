from benchmarks.beir import Query, export, load


def write(folder, **files):
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text, encoding="utf-8")


def test_a_set_is_read_with_its_judged_queries_only(tmp_path):
    write(
        tmp_path,
        corpus_jsonl='{"_id": "d1", "title": "T", "text": "x"}\n',
        queries_jsonl='{"_id": "q1", "text": "ä?", "metadata": {"lang": "de"}}\n{"_id": "q2", "text": ""}\n',
        qrels_tsv="query-id\tcorpus-id\tscore\nq1\td1\t2\n",
        exclude_tsv="q1\td9\n",
    )
    data = load(tmp_path)
    assert data.queries == [Query("q1", "ä?", "de")]
    assert data.judgements == {"q1": {"d1": 2}}
    assert data.excluded == {("q1", "d9")}


def test_documents_become_files_that_lead_back_to_their_ids(tmp_path):
    documents = [
        {"_id": "a/Doc 1", "title": "One", "text": "text\n\n"},
        {"_id": "a/doc_1", "title": "", "text": "other"},
    ]
    ids = export(documents, tmp_path)
    assert ids == {"a/Doc_1.md": "a/Doc 1", "a/doc_1_.md": "a/doc_1"}
    assert (tmp_path / "a/Doc_1.md").read_text() == "# One\n\ntext\n"
    assert (tmp_path / "a/doc_1_.md").read_text() == "other\n"
