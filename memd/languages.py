"""Languages: Snowball stemming, and recognition of a text's language by its function words.

Words are terms as FTS5 makes them: in lower case, Latin letters without accents. Words with the same stem are
forms of one word; a stem need not be a word. For any thread.
"""

import importlib.util
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import cache
from importlib import import_module
from typing import Literal, cast

# Snowball's languages, without older variants of two of them.
Language = Literal[
    "arabic", "armenian", "basque", "catalan", "czech", "danish", "dutch", "english", "esperanto", "estonian",
    "finnish", "french", "german", "greek", "hindi", "hungarian", "indonesian", "irish", "italian",
    "lithuanian", "nepali", "norwegian", "persian", "polish", "portuguese", "romanian", "russian", "serbian",
    "sesotho", "spanish", "swedish", "tamil", "turkish", "yiddish",
]  # fmt: skip

# Words of which nearly every sentence of a language contains some. Lists of other languages have no English
# words ("die", "per"); a word in two lists does not distinguish these. At least three letters: the vocabulary
# of an index has no shorter words. A language without a list is never recognised.
_TABLE = """
    catalan: amb aquest aquesta dels els molt nosaltres pero perque quan quina quines tambe
    czech: ale byla bylo jako jeho jsem jsme jsou kdyz ktera ktere ktery nebo proc protoze
    danish: blev det efter eller hvad hvor hvordan hvorfor ikke jeg ogsa skal som vores
    dutch: deze een heeft het hoe maar naar niet onze ook voor waarom welke wordt zijn
    english: and are been but can could did does for from had has have how into its not our should than
        that the their then there these they this those was were what when where which who why will with
        would you your
    estonian: kui kuidas kus meie mida miks millal mis nende ning oli see selle voi
    finnish: joka kun mika miksi milloin missa miten mutta myos oli olla ovat sita tama
    french: aux avec ces cette combien comment dans des est etait fut les leur nos notre nous ont pas
        pour pourquoi que quel quelle quelles quels qui sont sur une vous
    german: auch auf bei das dem den der des ein eine einem einen einer haben ich ist mit nach nicht
        oder sich sind uber und unsere vom von wann warum welche welcher welches wenn wer wie wir wird
        wurde zum zur
    greek: απο για δεν ειναι και που πως στη στην στο την τι των
    hungarian: csak egy ezek hogy kell mennyi miert mikor milyen mint nem vagy volt
    indonesian: adalah apa bagaimana dari dengan ini itu kapan mengapa pada tidak untuk yang
    italian: alla che dal dalla dei della delle gli nel nella nostra nostro perche quale quali quando
        questa questo sono una
    norwegian: ble det eller etter hva hvor hvordan hvorfor ikke jeg ogsa skal som
    polish: byl byla czy dla dlaczego gdzie jak jest kiedy ktora ktore ktory nie oraz sie
    portuguese: com como das dos foi nao nosso pela pelo por quais qual quando que sao uma
    romanian: aceasta acest cand care cum din este fost noastre pentru prin sau sunt unde
    russian: был была где для его или как какие какой когда она они почему при что это
    spanish: como cual cuales cuando cuanto cuantos del donde esta este fue las los nuestra nuestro pero
        por que quien segun una
    swedish: att blev det efter eller hur inte jag och ocksa ska som till vad varfor
    turkish: bir bizim cok daha degil gibi hangi icin ile nasil neden nedir nerede olan
"""  # noqa: RUF001 - Cyrillic and Greek are meant
_ROWS = (row.partition(":") for row in re.split(r"\n {4}(?! )", _TABLE.strip("\n")[4:]))
FUNCTION_WORDS = {cast("Language", language): frozenset(words.split()) for language, _, words in _ROWS}
_LANGUAGES_OF = {
    word: tuple(language for language, its in FUNCTION_WORDS.items() if word in its)
    for word in frozenset().union(*FUNCTION_WORDS.values())
}
# Function words of two letters, which no vocabulary has, in the languages above with Latin letters.
_SHORT_WORDS = frozenset(
    """
    al am an ao au av ce da de di do du ed el em en er es et il im ja je la le lo ma me mi na ne no nu og om
    op os se si su te ti tu ud um un we wo ya ze zu
    """.split()  # noqa: SIM905 - readable as words
)


def is_telling(term: str) -> bool:
    """Return whether a term tells a subject: no function word of a language and no single letter does."""
    return not (term in _LANGUAGES_OF or term in _SHORT_WORDS or (len(term) == 1 and term.isascii()))


def spoken(words: Collection[str], languages: Sequence[Language]) -> Language | None:
    """Return which of *languages* a query is in, None if it is recognisably in another language.

    The first one is returned if nothing in its *words* distinguishes them.
    """
    signs = Counter(language for word in set(words) for language in _LANGUAGES_OF.get(word, ()))
    most = max(signs.values(), default=0)
    return next((one for one in languages if signs[one] == most), None)


def stems(words: Sequence[str], language: Language) -> list[str]:
    """Return the stem of each word."""
    stem_words, lock = _stemmer(language)
    with lock:
        return stem_words(words)


@cache
def _stemmer(language: Language) -> tuple[Callable[[Sequence[str]], list[str]], threading.Lock]:
    """Return the stemming function of a language, and the lock that allows one thread at a time into it."""
    try:
        from Stemmer import Stemmer  # noqa: PLC0415 - with the first word
    except ImportError:
        return _plain_stemmer(language), threading.Lock()
    return Stemmer(language, 0).stemWords, threading.Lock()  # 0: without a cache, which is slower than the C


def _plain_stemmer(language: Language) -> Callable[[Sequence[str]], list[str]]:
    """Return the stemming function in plain Python."""
    # Importing the package itself would load the stemmers of all languages: 0.1 s of processor time and 8 MB.
    package = "snowballstemmer"
    if package not in sys.modules:
        spec = importlib.util.find_spec(package)
        assert spec is not None
        sys.modules[package] = importlib.util.module_from_spec(spec)
    module = import_module(f"{package}.{language}_stemmer")
    stem_words: Callable[[Sequence[str]], list[str]] = getattr(
        module, f"{language.capitalize()}Stemmer"
    )().stemWords
    return stem_words
