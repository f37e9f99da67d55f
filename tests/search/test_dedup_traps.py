"""Dedup distinguishes texts of every script, at a cost below the square of their number."""

import random

import pytest

from memd.index.reader import Reader
from memd.search import dedup
from memd.search.dedup import fingerprint, is_near

# Two texts of each script, about different things, and not a Latin letter in them.
PAIRS = {
    "Han": ("昨天的会议讨论了数据库迁移的时间表和责任人", "今年春天花园里的番茄长得比去年好得多"),
    "kana": (
        "きのうのかいぎでデータベースのいこうについてはなしました",
        "ことしのトマトはきょねんよりずっとよくそだちました",
    ),
    "Hangul": (
        "어제 회의에서 데이터베이스 이전 일정을 논의했다",
        "올해 봄 정원의 토마토는 작년보다 훨씬 잘 자랐다",
    ),
    "Thai": ("เมื่อวานที่ประชุมหารือเรื่องการย้ายฐานข้อมูล", "ปีนี้มะเขือเทศในสวนโตดีกว่าปีที่แล้วมาก"),
    "Cyrillic": (
        "вчера на совещании обсудили перенос базы данных",
        "в этом году помидоры в саду выросли лучше",
    ),
    "Greek": (
        "χθες στη συνάντηση μιλήσαμε για τη βάση δεδομένων",
        "φέτος οι ντομάτες στον κήπο μεγάλωσαν πολύ",
    ),
    "Arabic": ("ناقش الاجتماع أمس جدول نقل قاعدة البيانات", "نمت الطماطم في الحديقة هذا العام أفضل بكثير"),
    "Hebrew": ("בפגישה אתמול דנו במעבר של מסד הנתונים", "השנה העגבניות בגינה גדלו הרבה יותר טוב"),
    "Devanagari": ("कल की बैठक में डेटाबेस के स्थानांतरण पर चर्चा हुई", "इस साल बगीचे के टमाटर बहुत अच्छे हुए"),
}


@pytest.mark.parametrize("script", PAIRS)
def test_texts_without_a_latin_letter_are_not_all_the_same(script):
    """An empty set of words would be like every other empty set."""
    one, other = map(fingerprint, PAIRS[script])
    assert is_near(one, one)
    assert not is_near(one, other)


def test_texts_without_any_word_are_not_all_the_same():
    assert not is_near(fingerprint("🦩🦩🦩 🎉"), fingerprint("🍅🍅 → ☀️"))


@pytest.mark.parametrize("script", PAIRS)
@pytest.mark.parametrize("embed", [True, False])
def test_notes_of_any_script_are_folded_only_into_their_like(notes, script, embed):
    one, other = PAIRS[script]
    notes.save({"a.md": f"heron {one}\n", "b.md": f"heron {other}\n", "c.md": f"heron {one}\n"}, embed=embed)
    hits = notes.search("heron", mode="hybrid" if embed else "keyword", min_score=0.0).hits
    assert {hit.source.path for hit in hits} == {"a.md", "b.md"}
    assert [place.path for hit in hits for place in hit.folded] == ["c.md"]


@pytest.mark.parametrize("embed", [True, False])
def test_the_cost_of_folding_grows_with_the_candidates_and_not_with_their_square(notes, monkeypatch, embed):
    """Notes made from one template: each is compared with the few that are kept."""
    compared = []

    def counted(one, other):
        compared.append(None)
        return is_near(one, other)

    monkeypatch.setattr(dedup, "is_near", counted)
    template = " ".join(f"word{chr(97 + number % 26)}{number}" for number in range(60))
    notes.save(
        {f"n{number:03}.md": f"heron {template} x{'y' * number}\n" for number in range(90)}, embed=embed
    )
    assert len(notes.search("heron", mode="hybrid" if embed else "keyword").hits) == 1
    assert len(compared) <= 2 * 90


@pytest.fixture
def read(monkeypatch):
    """The ids of all chunks whose texts are read, call by call."""
    calls = []

    def noted(reader, ids, whole=Reader.chunks):
        calls.append(list(ids))
        return whole(reader, ids)

    monkeypatch.setattr(Reader, "chunks", noted)
    return calls


LONG = (
    "the heron nests by the weir and feeds in the reeds at dusk while the pond is still and nobody is about"
)


@pytest.mark.parametrize("embed", [True, False])
def test_the_texts_of_copies_are_not_read(notes, read, embed):
    """Neither are texts of equal length with other words: signatures suffice. Only the hits are read."""
    copies = {f"copy{number}.md": f"{LONG}\n" for number in range(6)}
    others = {
        f"other{number}.md": f"heron {' '.join(random.Random(number).sample(LONG.split() * 2, 20))}\n"
        for number in range(30)
    }
    notes.save({**copies, **others}, embed=embed)
    answer = notes.search(LONG, mode="hybrid" if embed else "keyword", min_score=0.0, limit=5)
    assert any(len(hit.folded) == 5 for hit in answer.hits)
    assert [sorted(ids) for ids in read] == [sorted(hit.candidate.id for hit in answer.hits)]


def test_a_text_in_other_letters_is_read(notes, read):
    """By signature it may be alike; the texts show that its spelling differs."""
    notes.save({"a.md": f"{LONG}\n", "b.md": f"{LONG.upper()}\n", "c.md": f"{LONG} now\n"}, embed=False)
    hits = notes.search("heron", mode="keyword", min_score=0.0).hits
    assert [(hit.source.path, [one.path for one in hit.folded]) for hit in hits] == [
        ("a.md", ["c.md"]),
        ("b.md", []),
    ]
    assert len(read) == 3  # once for headings that are the query


def test_only_what_may_be_shown_is_looked_for_on_the_disk(notes):
    """A stat for each of the first candidates takes longer than their scores."""
    notes.save({f"n{number}.md": f"heron number{number} {'pond ' * number}\n" for number in range(40)})
    asked = []

    def alive(path):
        asked.append(path)
        return path != "n1.md"

    hits = notes.search("heron", limit=3, min_score=0.0, alive=alive).hits
    assert len(hits) == 3
    assert set(asked) <= {"n1.md", *(hit.source.path for hit in hits)}
