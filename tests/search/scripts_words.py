"""The words of the matrix of scripts, and what they stand between.

Real words, one for each length that people count: letters, syllables, characters with their marks.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Script:
    """A script, some of its words with their meanings, and the text around them."""

    name: str
    words: tuple[tuple[str, str], ...]  # (word, meaning)
    before: str  # what stands in front of a word in a sentence
    after: str
    marks: str = "({})"  # punctuation of the script around a word
    is_mixed: bool = False  # has Latin or digits in it: gluing more of them makes another word


SCRIPTS = (
    Script(
        "Latin", (("I", "the pronoun"), ("ox", "ox"), ("fox", "fox"), ("heron", "heron")),
        "this ", " stands", "(“{}”),",
    ),
    Script(
        "Latin, accents", (("é", "is"), ("où", "where"), ("été", "summer"), ("naïveté", "naivety")),
        "deux ", " ensemble", "«{}» !",
    ),
    Script(
        "Latin, Vietnamese", (("ở", "at"), ("bơ", "butter"), ("phở", "noodle soup"), ("đường", "road")),
        "một ", " tốt", "“{}”.",
    ),
    Script(
        "Greek", (("ή", "or"), ("γη", "earth"), ("φως", "light"), ("θάλασσα", "sea")),
        "το ", " είναι", "«{}»·",
    ),
    Script(
        "Cyrillic", (("я", "I"), ("ёж", "hedgehog"), ("мир", "peace"), ("журавль", "crane")),
        "вот ", " здесь", "«{}» —",
    ),
    Script(
        "Arabic", (("و", "and"), ("يد", "hand"), ("بيت", "house"), ("مكتبة", "library")),
        "هذا ", " هنا", "«{}»؟،",
    ),
    Script(
        "Hebrew", (("ה", "the"), ("ים", "sea"), ("בית", "house"), ("ירושלים", "Jerusalem")),
        "זאת ", " כאן", "״{}״־",
    ),
    Script(
        "Devanagari", (("व", "and"), ("जल", "water"), ("कमल", "lotus"), ("पुस्तकालय", "library")),
        "यह ", " है", "“{}”।",
    ),
    Script(
        "Thai", (("ณ", "at"), ("มา", "come"), ("ปลา", "fish"), ("โรงเรียน", "school")),
        "ที่", "นี้", "“{}”",
    ),
    Script(
        "Hangul", (("물", "water"), ("회의", "meeting"), ("도서관", "library"), ("데이터베이스", "database")),
        "어제 ", "에서 본", "‘{}’.",
    ),
    Script(
        "Hiragana", (("め", "eye"), ("ねこ", "cat"), ("さくら", "cherry"), ("ありがとう", "thanks")),
        "昨日の", "は長かった", "「{}」。",
    ),
    Script(
        "Katakana", (("ガ", "moth"), ("ガス", "gas"), ("カメラ", "camera"), ("データベース", "database")),
        "昨日の", "は長かった", "・{}・",
    ),
    Script(
        "Han", (("会", "meeting"), ("迁移", "migration"), ("图书馆", "library"), ("人民共和国", "republic")),
        "昨天的", "很重要", "《{}》、",
    ),
    Script(
        "Han, beyond the BMP", (("𠮟", "scold"), ("𠮷野", "a name"), ("𩸽定食", "a dish")),
        "昨日の", "は長かった", "「{}」。",
    ),
    Script(
        "Latin and Han", (("A股", "shares"), ("T恤衫", "T-shirt"), ("AI会议", "AI meeting")),
        "昨天的", "很重要", "《{}》、", is_mixed=True,
    ),
    Script(
        "digits and Han", (("5月", "May"), ("第1回", "first time"), ("2026年", "the year 2026")),
        "昨日の", "は長かった", "「{}」。", is_mixed=True,
    ),
    Script(
        "digits and Latin", (("B2", "a size"), ("MP3", "a format"), ("iPhone15", "a telephone")),
        "this ", " stands", "({}),", is_mixed=True,
    ),
    Script("Armenian", (("և", "and"), ("տուն", "house")), "այս ", " այստեղ", "«{}»։"),
    Script("Georgian", (("და", "and"), ("სახლი", "house")), "ეს ", " აქ", "„{}“."),
    Script("Ethiopic", (("ቤት", "house"), ("ሰላም", "peace")), "ይህ ", " ነው", "«{}»።"),
    Script("Bengali", (("জল", "water"), ("বাড়ি", "house")), "এই ", " এখানে", "“{}”।"),
    Script("Gurmukhi", (("ਘਰ", "house"), ("ਪਾਣੀ", "water")), "ਇਹ ", " ਹੈ", "“{}”।"),
    Script("Tamil", (("நீர்", "water"), ("வீடு", "house")), "இந்த ", " இங்கே", "“{}”."),
    Script("Sinhala", (("ගස", "tree"), ("ශ්‍රී", "splendid")), "මේ ", " මෙහි", "“{}”."),
    Script("Thaana", (("ފެން", "water"), ("ދިވެހި", "Dhivehi")), "މި ", " އެ", "({})،"),
    Script("Tibetan", (("ཆུ", "water"), ("ཁང", "house")), "འདི་", "་རེད", "༼{}༽།"),
    Script("Lao", (("ນ້ຳ", "water"), ("ເຮືອນ", "house")), "ທີ່", "ນີ້", "“{}”"),
    Script("Khmer", (("ទឹក", "water"), ("ផ្ទះ", "house")), "នេះ", "ល្អ", "«{}»។"),
    Script("Myanmar", (("ရေ", "water"), ("အိမ်", "house")), "ဒီ", "က", "“{}”။"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Variant:
    """A word in a note, the word in the query, and whether a user expects the one to find the other."""

    about: str
    note: str
    query: str
    is_same: bool = True


def both(about: str, one: str, other: str) -> tuple[Variant, Variant]:
    """Either word may be the one in the note."""
    return Variant(about, one, other), Variant(about, other, one)


def neither(about: str, one: str, other: str) -> tuple[Variant, Variant]:
    """Words that only look alike."""
    return Variant(about, one, other, is_same=False), Variant(about, other, one, is_same=False)


VARIANTS = (
    *both("case", "Heron", "HERON"),
    *both("Latin accents", "résumé", "resume"),
    *both("Latin accents, capitals", "RÉSUMÉ", "resume"),
    *both("two accents on a letter", "việt", "viet"),
    *both("Turkish dotted capital", "İstanbul", "istanbul"),
    *both("Turkish dotless letter, capitals", "kapı", "KAPI"),
    *both("sharp s", "Straße", "STRASSE"),
    *both("Polish l", "Łódź", "lodz"),
    *both("Danish o", "Ørsted", "orsted"),
    *both("ligature of letters", "Cæsar", "caesar"),
    *both("ligature of a font", "\ufb01nd", "find"),
    *both("full-width Latin", "\uff21\uff30\uff29", "API"),
    *both("full-width digits", "\uff12\uff10\uff12\uff16", "2026"),
    *both("Roman numeral", "\u2163", "iv"),
    *both("superscript", "x\u00b2", "x2"),
    *both("soft hyphen", "Zeit\u00adung", "Zeitung"),
    *both("marks of direction", "\u2066heron\u2069", "heron"),
    *both("keycap emoji", "1\ufe0f\u20e3", "1"),
    Variant("young currency sign", "\u20bd500", "500"),
    Variant("sign", "a\u2705b", "\u2705"),
    Variant("skin colour", "\U0001f44d\U0001f3fd", "\U0001f44d"),
    *both("Greek accents", "θάλασσα", "θαλασσα"),
    *both("Greek capitals, final sigma", "λόγος", "ΛΟΓΟΣ"),
    *both("final sigma inside", "λόγος", "λόγοσ"),
    *both("Cyrillic io", "ёлка", "елка"),
    *both("Cyrillic stress", "за\u0301мок", "замок"),
    *neither("Cyrillic short i", "мой", "мои"),
    *both("Ukrainian apostrophes", "м\u2019ята", "м\u02bcята"),
    *both("Arabic vowels", "كِتَابٌ", "كتاب"),
    *both("Arabic stretched", "كتـــاب", "كتاب"),
    *both("Arabic hamza", "أحمد", "احمد"),
    *both("Arabic teh marbuta", "مدرسة", "مدرسه"),
    *both("Persian keyboard", "کتابی", "كتابي"),
    *both("Persian half space", "می\u200cخواهم", "می خواهم"),
    *both("Arabic digits", "٢٠٢٦", "2026"),
    *both("Hebrew points", "שָׁלוֹם", "שלום"),
    Variant("Hebrew article on Latin", "הAPI", "API"),
    Variant("Hebrew article on Hebrew", "הספר", "ספר"),
    *both("Devanagari joiner", "क्\u200dष", "क्ष"),
    *both("Devanagari nukta", "फ़िल्म", "फिल्म"),
    *both("Devanagari candrabindu", "हँसी", "हंसी"),
    *both("Devanagari digits", "२०२६", "2026"),
    *neither("Thai tones", "ม้า", "มา"),
    *both("Thai digits", "๒๕๖๙", "2569"),
    *both("half-width kana", "\uff76\uff9e\uff7d", "ガス"),
    *neither("voice marks of kana", "がく", "かく"),
    *neither("hiragana and katakana", "ねこ", "ネコ"),
    *both("compatibility Han", "\ufa19社", "神社"),
    *both("squared words", "\u337f", "株式会社"),
    *neither("simplified and traditional Han", "会议", "會議"),
    Variant("Hangul with its particle", "회의를", "회의"),
    Variant("a line break inside of a word", "東\n京", "東京", is_same=False),
)
