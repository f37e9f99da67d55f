import json

from benchmarks import report


def test_a_table_is_aligned_under_its_heads():
    text = report.table([{"arm": "keyword", "ndcg": 0.5, "n": 1200}, {"arm": "v", "ndcg": 12.25, "n": 3}])
    assert text.splitlines() == [
        "arm        ndcg      n",
        "-------  ------  -----",
        "keyword  0.5000  1,200",
        "v          12.2      3",
    ]


def test_quantiles_are_values_that_were_measured():
    assert report.quantile([4.0, 1.0, 3.0, 2.0], 0.5) == 3.0
    assert report.quantile([4.0, 1.0], 1.0) == 4.0


def test_a_kept_run_names_command_machine_and_versions_but_no_path(tmp_path, monkeypatch):
    """A kept run can be judged later, and says nothing of the folders of the machine it ran on."""
    monkeypatch.setattr(report, "RUNS", tmp_path / "runs")
    monkeypatch.setattr("sys.argv", ["/somewhere/benchmarks/quality.py", "/home/me/sets/scifact", "--keep"])
    first = report.keep("quality", [{"arm": "keyword"}], note="why", raw={"ms": [1.5]})
    second = report.keep("quality", [{"arm": "keyword"}], note="", raw={})
    kept = json.loads(first.read_text())
    assert kept["command"] == "python -m benchmarks.quality scifact --keep"
    assert kept["figures"] == [{"arm": "keyword"}]
    assert kept["raw"] == {"ms": [1.5]}
    assert kept["machine"]["cores"] >= 1
    assert kept["versions"]["python"]
    assert second.name == "quality-2.json"
    assert "/home/me" not in first.read_text()


def test_a_benchmark_in_a_folder_is_named_with_it(monkeypatch):
    """The kept command can be run again as it stands."""
    monkeypatch.setattr("sys.argv", ["/a/benchmarks/of/benchmarks/others/vectors.py", "--rows", "5"])
    assert report.command() == "python -m benchmarks.others.vectors --rows 5"
