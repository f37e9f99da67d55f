"""Recorder of the vectors that sentence-transformers gives; run by hand, never by a test.

    python -m venv scratch && scratch/bin/pip install torch sentence-transformers
    scratch/bin/python tests/embedding/record_reference.py WEIGHTS_DIR

WEIGHTS_DIR is the folder of sentence-transformers/all-MiniLM-L6-v2 as it was published. The result,
memd/embedding/model/reference.json, holds the texts below and, for each, its vector as base64 of 384
little-endian float16 (half precision moves a cosine by about 1e-7 and halves the file).
"""

import base64
import json
import sys
from pathlib import Path

RESULT = Path(__file__).parents[2] / "memd" / "embedding" / "model" / "reference.json"

HARVEST = (
    "The orchard was planted in three rows by my grandfather, who kept a diary of every frost. "
    "In the first week of October we pick the late apples, sort out the bruised ones for juice, and lay "
    "the rest on straw in the cellar so that no fruit touches another. The press is older than the house: "
    "an iron screw, an oak basket, and a stone trough that has to be scrubbed the evening before. Two "
    "people turn the bar while a third rinses the cloths. From a hundred kilograms we get about sixty "
    "litres, of which a third is drunk within the month and the remainder heated to seventy-eight degrees "
    "and bottled. Whoever arrives last washes the floor. "
)
INCIDENT = (
    "At 02:14 the primary stopped acknowledging writes and the replica lag grew to nine minutes. The on-call "
    "engineer failed over by hand because the automatic promotion had been switched off during last week's "
    "migration and nobody had switched it on again. Connections piled up in the pooler, every retry made it "
    "worse, and the queue of background jobs reached four hundred thousand. We drained it by pausing the "
    "newsletter, raising the limit of the pool to two hundred and restarting the workers one zone at a time. "
    "No data was lost; eleven customers saw an error page for about twenty minutes. Actions: alert on a "
    "disabled failover, add jitter to the retries, and rehearse the promotion every quarter. "
)

TEXTS = (
    "", " ", "?", "a", "42", "tabs", "indentation", "breast cancer gene", "BRCA1 mutation analysis",
    "run the analysis", "execute the pipeline", "the paper about autism",
    "ASD prevalence study (PMID:12345)", "Code style: tabs vs spaces",
    "where did we decide which database to use for the billing service",
    "Decision: PostgreSQL 16 for billing, because of row-level security and logical replication.",
    "Standup 2026-05-01 > Blockers\n\n- waiting for the certificate of staging\n- flaky: `test_upload`",
    "how do I undo the last commit but keep my changes?", "git reset --soft HEAD~1",
    "def fibonacci(n: int) -> int:\n    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)",
    "SELECT name, count(*) FROM orders GROUP BY name HAVING count(*) > 3 ORDER BY 2 DESC;",
    "```rust\nlet words: Vec<&str> = line.split_whitespace().collect();\n```",
    '{"retries": 3, "timeout_ms": 2500, "hosts": ["10.0.0.7", "10.0.0.8"], "verify": false}',
    "Traceback (most recent call last): KeyError: 'session_id' in handlers.py, line 218",
    "| host | role | memory |\n|---|---|---|\n| kiwi | web | 8 GiB |\n| fig | queue | 16 GiB |",
    "https://example.org/wiki/Unix_domain_socket#Ancillary_data?lang=en&page=2",
    "Café crème, déjà vu, naïve façade, jalapeño, smörgåsbord, Łódź, Đà Nẵng",
    "Die Mülltonnen werden am Donnerstag geleert; Schlüssel hängt hinter der Tür.",
    "La reunión se aplazó hasta mañana porque el proyector no funcionaba.",
    "Совещание перенесено на четверг, протокол лежит в общей папке.",
    "Η συνάντηση μεταφέρθηκε στην Πέμπτη.", "数据库迁移失败后如何回滚",
    "会議は木曜日の午後三時に変更されました。", "회의가 목요일 오후로 옮겨졌습니다.",
    "اجتماع الفريق يوم الخميس في العاشرة صباحا", "Ship it! 🚀🎉 (thanks @dana) — see #1234 … 100 % done",
    "E = mc², ∑ xᵢ ≤ ½ · 10⁻³ mol/L at 25 °C",
    "supercalifragilisticexpialidocious pneumonoultramicroscopicsilicovolcanoconiosis " * 3, "the " * 60,
    INCIDENT, HARVEST, INCIDENT + HARVEST, (HARVEST + INCIDENT) * 3,
    "Remember to buy milk, oat flakes and two lemons, and to call the dentist about the crown before Friday.",
)  # fmt: skip


def main(weights: str) -> None:
    import sentence_transformers
    import torch

    model = sentence_transformers.SentenceTransformer(weights, device="cpu")
    vectors = [model.encode(text, normalize_embeddings=True) for text in TEXTS]
    made_by = f"sentence-transformers {sentence_transformers.__version__}, torch {torch.__version__}"
    rows = [
        {"text": text, "vector": base64.b64encode(vector.astype("<f2").tobytes()).decode("ascii")}
        for text, vector in zip(TEXTS, vectors, strict=True)
    ]
    head = {"made_by": made_by, "script": "tests/embedding/record_reference.py", "rows": rows}
    RESULT.write_text(json.dumps(head, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
    print(f"{len(rows)} vectors, {RESULT.stat().st_size} bytes: {RESULT}")


if __name__ == "__main__":
    main(sys.argv[1])
