"""Notes in other languages than English: `init` proposes them, and its command makes their forms count."""

import shlex

from daemon_process import until


def test_init_proposes_the_languages_of_the_notes(daemon, tmp_path):
    root = tmp_path / "notes"
    root.mkdir()
    (root / "hof.md").write_text("# Haus\n\nDie Mieter haben den Hof nicht geputzt.\n")
    for number in range(30):
        (root / f"{number}.md").write_text(f"# Tag {number}\n\nWir haben die Rechnung nicht bezahlt.\n")
    said = daemon.memctl("init", str(root)).stdout
    [line] = [line for line in said.splitlines() if line.startswith("words:")]
    assert "in German" in line
    ask = ("search", "--mode", "keyword", "--files", "-w", str(root), "Höfen")
    assert daemon.memctl(*ask).stdout == ""
    program, *command = shlex.split(line.partition("forms: ")[2])
    assert program == "memctl"
    assert daemon.memctl(*command).returncode == 0
    until(lambda: "hof.md" in daemon.memctl(*ask).stdout, 5)
    assert "words:" not in daemon.memctl("init", str(root)).stdout
