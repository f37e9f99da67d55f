"""The days that a query names in its words ("8 May", "last spring"), and what they add for notes of then.

A named day is no filter, since "when did we move?" asks for a day, and people write on Monday about Sunday:
notes of the named days rank higher, and those of the week after them a little. Months and weekdays are read
in English and in the languages of the workspace, everything else in English. `memd.search.dates` reads what
is typed behind a filter, `leading_time` what names of files and front matter say, both in every language:
no name means two months. Pure and thread-safe.
"""

import calendar
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import lru_cache
from typing import Final, cast
from unicodedata import combining, normalize

from memd.languages import Language

# On the sort key of a note of a named day. .05 and .2 are within .01 of nDCG@10 on questions with a day.
BONUS: Final = 0.1
BEFORE_DAYS: Final = 7  # in "before 8 May", beside that day: "the week before" was mostly told on it
AFTER_DAYS: Final = 7  # over which the bonus falls to 0: people write about yesterday
YEAR_SHARE: Final = (
    0.2  # of the bonus, for a year that is named without a month: half of the notes may have it
)
# Of the bonus: "in May" is mostly the last one, but notes of years ago are asked for without their year, too.
OTHER_YEARS: Final = 0.5
MOST_NAMED: Final = 4  # a text that names more days is a log, which asks for none of them; arbitrary
MAX_CHARS: Final = 1000  # likewise
MAX_LEADING_CHARS: Final = 80  # of a name that may begin with a day; arbitrary
FIRST_YEAR: Final = 1950  # a lower number alone is rarely a year; arbitrary
_LAST_MONTH: Final = 12
_SOUTHERN: Final = 6  # months between the seasons of the hemispheres

# Of each language the months, the weekdays from Monday, the words before one of these, and the words for
# "last". "/" parts the forms of a name; one with a point is an abbreviation.
_TABLE = """
    english: january/jan. february/feb. march/mar. april/apr. may june/jun. july/jul. august/aug.
        september/sep./sept. october/oct. november/nov. december/dec.; monday tuesday wednesday thursday
        friday saturday sunday; in on during since; last
    arabic: يناير فبراير مارس أبريل مايو يونيو يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر; الاثنين الثلاثاء
        الأربعاء الخميس الجمعة السبت الأحد; في منذ يوم شهر; الماضي
    catalan: gener febrer març abril maig juny juliol agost setembre octubre novembre desembre; dilluns
        dimarts dimecres dijous divendres dissabte diumenge; el al en de del des durant; passat
    czech: leden/ledna/lednu únor/února/únoru březen/března/březnu duben/dubna/dubnu
        květen/května/květnu červen/června/červnu červenec/července/červenci srpen/srpna/srpnu září
        říjen/října/říjnu listopad/listopadu prosinec/prosince/prosinci; pondělí úterý středa/středu čtvrtek
        pátek sobota/sobotu neděle/neděli; v ve od během; minulý minulou minulé minulém
    danish: januar/jan. februar/feb. marts april/apr. maj juni juli august/aug. september/sep./sept.
        oktober/okt. november/nov. december/dec.; mandag/mandags tirsdag/tirsdags onsdag/onsdags
        torsdag/torsdags fredag/fredags lørdag/lørdags søndag/søndags; i på
        om siden; sidste
    dutch: januari/jan. februari/feb. maart april/apr. mei juni juli augustus/aug. september/sep./sept.
        oktober/okt. november/nov. december/dec.; maandag dinsdag woensdag donderdag vrijdag zaterdag
        zondag; in op sinds tijdens; afgelopen vorige
    greek: ιανουάριος/ιανουαρίου/ιανουάριο φεβρουάριος/φεβρουαρίου/φεβρουάριο μάρτιος/μαρτίου/μάρτιο
        απρίλιος/απριλίου/απρίλιο μάιος/μαΐου/μάιο ιούνιος/ιουνίου/ιούνιο ιούλιος/ιουλίου/ιούλιο
        αύγουστος/αυγούστου/αύγουστο σεπτέμβριος/σεπτεμβρίου/σεπτέμβριο οκτώβριος/οκτωβρίου/οκτώβριο
        νοέμβριος/νοεμβρίου/νοέμβριο δεκέμβριος/δεκεμβρίου/δεκέμβριο; δευτέρα τρίτη τετάρτη πέμπτη
        παρασκευή σάββατο κυριακή; τον του τη την το στις από κατά; περασμένο περασμένη
    french: janvier/janv. février/févr. mars avril/avr. mai juin juillet/juil. août septembre/sept.
        octobre/oct. novembre/nov. décembre/déc.; lundi mardi mercredi jeudi vendredi samedi dimanche; en de
        depuis le du au; dernier
    german: januar/jänner/jan. februar/feber/feb. märz april/apr. mai juni/jun. juli/jul. august/aug.
        september/sep./sept. oktober/okt. november/nov. dezember/dez.; montag dienstag mittwoch donnerstag
        freitag samstag/sonnabend sonntag; im am in seit; letzten letzter letztem letzte
    indonesian: januari februari maret april mei juni juli agustus september oktober november desember;
        senin selasa rabu kamis jumat sabtu minggu; bulan hari pada sejak; lalu
    italian: gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre
        dicembre; lunedì martedì mercoledì giovedì venerdì sabato domenica; a in da dal nel di durante;
        scorso scorsa
    norwegian: januar/jan. februar/feb. mars april/apr. mai juni juli august/aug. september/sep./sept.
        oktober/okt. november/nov. desember/des.; mandag/mandags tirsdag/tirsdags onsdag/onsdags
        torsdag/torsdags fredag/fredags lørdag/lørdags søndag/søndags; i på
        om siden; sist forrige
    polish: styczeń/stycznia/styczniu luty/lutego/lutym marzec/marca/marcu kwiecień/kwietnia/kwietniu
        maj/maja/maju czerwiec/czerwca/czerwcu lipiec/lipca/lipcu sierpień/sierpnia/sierpniu
        wrzesień/września/wrześniu październik/października/październiku listopad/listopada/listopadzie
        grudzień/grudnia/grudniu; poniedziałek wtorek środa/środę czwartek piątek sobota/sobotę
        niedziela/niedzielę; w we od; zeszły zeszłą zeszłym ostatni
    portuguese: janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro
        dezembro; segunda-feira terça-feira quarta-feira quinta-feira sexta-feira sábado domingo; em de
        desde no na durante; passado passada
    romanian: ianuarie februarie martie aprilie mai iunie iulie august septembrie octombrie noiembrie
        decembrie; luni marți miercuri joi vineri sâmbătă duminică; în din de; trecut trecută
    russian: январь/января/январе февраль/февраля/феврале март/марта/марте апрель/апреля/апреле
        май/мая/мае июнь/июня/июне июль/июля/июле август/августа/августе сентябрь/сентября/сентябре
        октябрь/октября/октябре ноябрь/ноября/ноябре декабрь/декабря/декабре; понедельник вторник
        среда/среду четверг пятница/пятницу суббота/субботу воскресенье; в во с со; прошлый прошлую прошлое
        прошлом
    serbian: januar/januara/januaru februar/februara/februaru mart/marta/martu april/aprila/aprilu
        maj/maja/maju jun/juna/junu jul/jula/julu avgust/avgusta/avgustu septembar/septembra/septembru
        oktobar/oktobra/oktobru novembar/novembra/novembru decembar/decembra/decembru; ponedeljak utorak
        sreda/sredu četvrtak petak subota/subotu nedelja/nedelju; u od tokom; prošli prošlu prošlog
    spanish: enero febrero marzo abril mayo junio julio agosto septiembre/setiembre octubre noviembre
        diciembre; lunes martes miércoles jueves viernes sábado domingo; en el de del desde durante; pasado
    swedish: januari/jan. februari/feb. mars april/apr. maj juni juli augusti/aug. september/sep./sept.
        oktober/okt. november/nov. december/dec.; måndag/måndags tisdag/tisdags onsdag/onsdags
        torsdag/torsdags fredag/fredags lördag/lördags söndag/söndags; i på
        sedan; förra
    turkish: ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık; pazartesi salı
        çarşamba perşembe cuma cumartesi pazar; geçen; geçen
"""  # noqa: RUF001 - Cyrillic, Greek and Turkish are meant
_NAMES: Final = {
    language: [part.split() for part in names.split(";")]
    for row in re.split(r"\n {4}(?! )", _TABLE.strip("\n")[4:])
    for language, _, names in [row.partition(":")]
}
_SEASONS: Final = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}  # their first months
_SEASON_MONTHS: Final = 3
_QUARTERS: Final = {"first": 1, "second": 2, "third": 3, "fourth": 4}
COUNTS: Final = {"a": 1.0, "an": 1.0, "half a": 0.5} | {
    word: float(number)
    for number, word in enumerate("one two three four five six seven eight nine ten eleven twelve".split(), 1)  # noqa: SIM905 - readable as words
}
ALL_LANGUAGES: Final = cast("tuple[Language, ...]", tuple(_NAMES))
_VAGUE: Final = {"couple of": 2.0, "a couple of": 2.0, "few": 3.0, "a few": 3.0, "several": 3.0}
# Days of a unit, and the days on each side that so many units ago may mean.
_UNITS: Final = {
    "day": (1.0, 0), "week": (7.0, 3), "month": (30.44, 15), "quarter": (91.3, 45), "year": (365.25, 90)
}  # fmt: skip
_BACK: Final = {"yesterday": 1, "last night": 1, "day before yesterday": 2}  # days; other such words: today
_ORDINALS: Final = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}
_HINTS: Final = frozenset(
    {"yesterday", "today", "tonight", "weekend", *_SEASONS}
    | {"night", "morning", "afternoon", "evening"}
    | {*_UNITS, *(f"{unit}s" for unit in _UNITS)}
)
# Of a question for a day as a whole: "what happened two days ago". Beside them it has only function words.
WORDS_OF_DAYS: Final = _HINTS.union(
    re.findall(r"\w+", " ".join((*_NAMES["english"][0], *_NAMES["english"][1]))),
    COUNTS,
    ("ago", "last", "happened", "notes"),
)
_SINCE: Final = frozenset({"since", "seit", "depuis", "desde", "sinds", "siden", "sedan", "sejak", "od"})
_BEFORE: Final = frozenset({"before", "until", "till", "by"})
_TO: Final = re.compile("[\\s,]*(?:[-\u2013]|to|through|until|till|(and))\\s*")
_VERB: Final = re.compile(r"(?:\d+\s+)?(?:may|march)(?:\s+\d+)?")  # "what may 8 people do"
# Months of other languages that are English words or names: "Mars 2020 rover". A day tells, or an end.
_OTHERWISE: Final = frozenset({"mars", "marc", "mart"})
_WORD: Final = re.compile(r"[^\W\d_]+")
_NUMBER: Final = re.compile(r"\d{4}|q[1-4]")
_MARK: Final = re.compile("\\d ?[\u5e74\u6708\ub144\uc6d4]")  # year and month in Chinese, Japanese, Korean
_BEGINS: Final = re.compile(r"(?:^|[.!?:\n])[\W_]*$")
# Beside a letter they part words, except in "segunda-feira".
_SIGNS: Final = re.compile(r"(?<=[^\W\d_])[-_](?!feira)|(?<![^\W\d_])[-_](?=[^\W\d_])")


@dataclass(frozen=True, slots=True)
class Time:
    """A time that a query names."""

    first: date
    last: date
    share: float = 1.0  # of the bonus
    is_yearly: bool = False  # without a year: the last such time until today, and that of other years

    def near(self, day: date) -> tuple[float, date, date]:
        """Return the share of the bonus for a note of *day*, and the first and last day of the time."""
        found = []
        for back in (day.year - self.first.year, day.year - 1 - self.first.year) if self.is_yearly else (0,):
            first, last = _moved(self.first, back), _moved(self.last, back)
            after = max(0, (day - last).days)
            share = self.share * max(0.0, 1 - after / AFTER_DAYS) if day >= first else 0.0
            found.append((share * (OTHER_YEARS if back else 1.0), first, last))
        return max(found)


@dataclass(frozen=True, slots=True)
class _Known:
    """What is read in some languages."""

    months: dict[str, int]
    weekdays: dict[str, int]
    short: frozenset[str]  # names that count beside a number only
    before: frozenset[str]
    last: frozenset[str]
    hints: frozenset[str]  # words without which no day is named
    form: re.Pattern[str]


def named_days(
    text: str, today: date, languages: Sequence[Language] = (), *, southern: bool = False
) -> tuple[Time, ...]:
    """Return the times that a query names.

    Args:
        text: of the query, without operators.
        today: the day that "yesterday" counts from.
        languages: beside English.
        southern: spring begins in September.
    """
    if len(text) > MAX_CHARS:
        return ()
    known, plain = _known(tuple(languages)), _plain(text)
    lower = plain.lower()
    if known.hints.isdisjoint(_WORD.findall(lower)) and not _NUMBER.search(lower):  # noqa: SIM102
        if plain.isascii() or not _MARK.search(plain):
            return ()
    found: list[Time] = []
    begin = end = 0  # of the last match
    for match in known.form.finditer(lower):
        with suppress(ValueError, OverflowError):  # 31 June; outside of the calendar
            its = list(_named(match, known, plain, today, southern=southern))
            to = _TO.fullmatch(lower, end, match.start())
            if found and len(its) == 1 and to and (not to[1] or lower[:begin].endswith("between ")):
                its = [_joined(found[-1], its[0])]
                found.pop()
            else:
                said = lower[: match.start()].split()[-2:]
                if not _SINCE.isdisjoint({*said, *match.group().split()[:1]} & known.before):
                    its = [replace(one, last=max(one.last, today), is_yearly=False) for one in its]
                elif not _BEFORE.isdisjoint(said[-1:]):
                    its = [replace(one, first=one.first - timedelta(days=BEFORE_DAYS)) for one in its]
            if its:
                found += its
                begin, end = match.span()
    return tuple(dict.fromkeys(found)) if len(set(found)) <= MOST_NAMED else ()


def whole_time(text: str, today: date) -> Time:
    """Return the time that a whole text in small letters is, where a month or weekday alone is meant as one.

    Raises:
        ValueError, OverflowError: it is none.
    """
    known, plain = _known(ALL_LANGUAGES), _plain(text)
    match = known.form.fullmatch(f"in {plain}") or known.form.fullmatch(plain)
    if not match or not (times := _named(match, known, match.string, today, southern=False)):
        raise ValueError(text)
    return times[0]


def leading_time(text: str) -> Time | None:
    """Return the day, week, month or quarter that a text begins with, perhaps behind a weekday or a "the".

    None: it begins with none that has a year. A year alone or a season says less than the day of a file.
    """
    known = _known(ALL_LANGUAGES)
    plain = _SIGNS.sub(" ", _plain(text[:MAX_LEADING_CHARS]).lower()).replace("_", " ").lstrip("<[\"' ")
    if (month := next(iter(_WORD.findall(plain)), "")) in known.months:  # 1may2026, 2026 may
        plain = " ".join(re.sub(month, f" {month} ", plain, count=1).split())
        plain = re.sub(rf"^(\d{{4}}) {month}$", rf"{month} \1", plain)
    begins, _, rest = plain.partition(" ")
    is_before = begins in known.before or (
        len(begins) > 1 and any(name.startswith(begins.strip(".,")) for name in known.weekdays)
    )
    for one in (plain, rest.lstrip()) if is_before else (plain,):
        if match := known.form.match(one):
            said = _said(match)
            if said.get("name") in _OTHERWISE and "day" not in said and one[match.end() :].strip():
                continue
            if said.get("year", "").isdecimal() and {"month", "name", "week", "quarter"} & said.keys():
                with suppress(ValueError):  # 31 June
                    return next(iter(_named(match, known, one, date.max, southern=False)), None)
    return None


def spellings(day: str, languages: Sequence[Language]) -> list[str]:
    """Return a day, given in ISO form, as people write it in English and in *languages*."""
    year, month, number = map(int, day.split("-"))
    names = [name for name, its in _known(tuple(languages)).months.items() if its == month]
    forms = [day, day.replace("-", ""), f"{year} {month} {number}"]
    forms += [f"{number} {month} {year}", f"{number:02} {month:02} {year}"]
    for name in names:
        for one in (f"{number}", f"{number}{_ORDINALS.get(number, 'th')}"):
            forms += [f"{one} {name} {year}", f"{name} {one} {year}"]
        forms.append(f"{number} de {name} de {year}")
    return forms


def day_within(name: str) -> date | None:
    """Return the only day, with its year, in a name ("meeting-2026-10-14"); None: none, or several."""
    days: set[date] = set()
    known, plain = _known(ALL_LANGUAGES), _SIGNS.sub(" ", _plain(name[:MAX_CHARS]).lower()).replace("_", "-")
    for match in known.form.finditer(plain) if _NUMBER.search(plain) else ():
        said = _said(match)
        if said.get("year", "").isdecimal():
            with suppress(ValueError):  # 31 June
                times = _named(match, known, plain, date.max, southern=False)
                days |= {time.first for time in times if time.first == time.last}
    return days.pop() if len(days) == 1 else None


def _said(match: re.Match[str]) -> dict[str, str]:
    """Return what a form has, by the names of its groups without their numbers."""
    return {name.rstrip("0123456789"): one for name, one in match.groupdict().items() if one}


def _named(  # noqa: PLR0911 - a line for each form
    match: re.Match[str], known: _Known, text: str, today: date, *, southern: bool
) -> Sequence[Time]:
    """Return the times of one match in *text*."""
    said = _said(match)
    named, day = said.get("year", "0"), int(said.get("day", 0))
    year = int(named) if named.isdecimal() else today.year - named.startswith("last")
    is_last = said.get("before") in known.last or "after" in said
    if word := said.get("word"):
        day_then = today - timedelta(days=_BACK.get(" ".join(word.split()), 0))
        return [Time(day_then, day_then)]
    if week := said.get("week"):
        monday = date.fromisocalendar(year, int(week), 1)
        if weekday := said.get("weekday"):
            day_then = monday + timedelta(days=int(weekday) - 1)
            return [Time(day_then, day_then)]
        return [Time(monday, monday + timedelta(days=6))]
    if unit := said.get("unit"):
        return [_counted(said, unit, today)]
    if quarter := said.get("quarter"):
        if not (quarter.isdigit() or year or "before" in said):
            return []
        number = int(quarter) if quarter.isdigit() else _QUARTERS[quarter]
        return [_period(3 * number - 2, 3, 0, year, today)]
    if season := said.get("season"):
        if said.get("before") == "next" or not (year or "before" in said):
            return []
        month = (_SEASONS[season] - 1 + _SOUTHERN * southern) % 12 + 1
        # The winter of 2023 began or ended then.
        years = (year, year - 1) if year and month + _SEASON_MONTHS > _LAST_MONTH + 1 else (year,)
        found = [_period(month, _SEASON_MONTHS, 0, one, today, is_last=is_last) for one in years]
        return [replace(one, is_yearly=False) for one in found] if said.get("before") == "this" else found
    if name := said.get("name"):
        if not _is_meant(match, said, known, text):
            return []
        if name in known.weekdays:
            day_then = today - timedelta(days=(today.weekday() - known.weekdays[name] - 1) % 7 + 1)
            return [Time(day_then, day_then)]
        one = _period(known.months[name], 1, day, year, today, is_last=is_last)
        first, last = (int(said.get(end, day)) for end in ("from", "until"))
        if first > last:
            raise ValueError(text)
        return [
            replace(one, first=one.first.replace(day=first), last=one.last.replace(day=last)) if day else one
        ]
    if "month" in said:
        month = int(said["month"])
        if "sign" in said and month != day:  # the month may come first
            month, day = (day, month) if month > _LAST_MONTH else (month, day)
            if day <= _LAST_MONTH:
                return []
        return [_period(month, 1, day, year, today)]
    before = text[: match.start()].split()[-1:]
    if not FIRST_YEAR <= year <= today.year + 1 or any(len(one) > 1 and one.isupper() for one in before):
        return []  # "RFC 2026"
    return [Time(date(year, 1, 1), date(year, 12, 31), YEAR_SHARE)]


def _is_meant(match: re.Match[str], said: dict[str, str], known: _Known, text: str) -> bool:
    """Return whether the name of a month or weekday is meant as one."""
    if "year" in said:
        return True
    if "day" in said:
        is_verb = _VERB.fullmatch(text, *match.span()) and text[match.end() :].strip("?!. ")
        return not is_verb or not known.before.isdisjoint(text[: match.start()].lower().split()[-1:])
    if said.get("before") == "next":
        return False
    if said["name"] in known.short:  # French "le sept" is the seventh
        return said.get("before") in {*_NAMES["english"][2], "last"}
    if "before" in said or "after" in said:
        return True
    at = next(match.start(group) for group, one in match.groupdict().items() if one and "name" in group)
    is_first = _BEGINS.search(text[:at]) and said["name"] in known.months  # "May I ask"
    return text[at : at + 1].isupper() and not is_first


def _joined(first: Time, last: Time) -> Time:
    """Return the time from one to the other, across a year's end where the months say so."""
    begin, end = first.first, last.last
    if first.is_yearly:
        begin = _moved(begin, end.year - begin.year - ((begin.month, begin.day) > (end.month, end.day)))
    elif last.is_yearly:
        end = _moved(end, begin.year - end.year + ((begin.month, begin.day) > (end.month, end.day)))
    if begin > end:
        raise ValueError(begin)
    return Time(begin, end, min(first.share, last.share), first.is_yearly and last.is_yearly)


def _counted(said: dict[str, str], unit: str, today: date) -> Time:
    """Return the time of "three weeks ago", "the last three weeks", "last week" or "this week"."""
    if which := said.get("which"):
        is_last = which != "this"
        if unit in {"week", "weekend"}:
            monday = today - timedelta(days=today.weekday() + 7 * is_last)
            return Time(monday + timedelta(days=5 * (unit == "weekend")), monday + timedelta(days=6))
        if unit == "year":
            year = today.year - is_last
            return Time(date(year, 1, 1), date(year, 12, 31), YEAR_SHARE)
        months = 3 if unit == "quarter" else 1
        number = today.year * 12 + (today.month - 1) // months * months - months * is_last
        return _period(number % 12 + 1, months, 0, number // 12, today)
    days, around = _UNITS[unit]
    count = said.get("ago") or said["past"]
    amount = (COUNTS | _VAGUE).get(count) or float(count)
    back, around = timedelta(days=round(amount * days)), around + round(days) * (count in _VAGUE)
    if "past" in said:
        return Time(today - back, today)
    return Time(today - back - timedelta(days=around), today - back + timedelta(days=around))


def _period(month: int, months: int, day: int, year: int, today: date, *, is_last: bool = False) -> Time:
    """Return a day or some months; of the last year that has them before *today* if *year* is 0."""
    if year:
        return Time(*_stretch(month, months, day, year))
    for back in range(9):  # a 29 February is at most eight years ago
        with suppress(ValueError):
            first, last = _stretch(month, months, day, today.year - back)
            if (last < today) if is_last else (first <= today):
                return Time(first, last, is_yearly=not is_last)
    raise ValueError(day)


def _stretch(month: int, months: int, day: int, year: int) -> tuple[date, date]:
    if day:
        return date(year, month, day), date(year, month, day)
    end = month + months - 1
    year_of_end, end = (year, end) if end <= _LAST_MONTH else (year + 1, end - _LAST_MONTH)
    return date(year, month, 1), date(year_of_end, end, calendar.monthrange(year_of_end, end)[1])


def _moved(day: date, years: int) -> date:
    last = calendar.monthrange(day.year + years, day.month)[1]
    is_end = day.day == calendar.monthrange(day.year, day.month)[1]
    return day.replace(year=day.year + years, day=last if is_end else min(day.day, last))


def _plain(text: str) -> str:
    """Return *text* without accents, in its case."""
    if text.isascii():
        return text
    bare = "".join(one for one in normalize("NFD", text) if not combining(one))
    return normalize("NFC", bare)


@lru_cache(16)
def _known(languages: tuple[Language, ...]) -> _Known:
    months: dict[str, int] = {}
    weekdays: dict[str, int] = {}
    before: set[str] = set()
    last: set[str] = set()
    for language in dict.fromkeys(("english", *languages)):
        if language not in _NAMES:
            continue
        its = [[_plain(word) for word in words] for words in _NAMES[language]]
        for names, numbers in ((its[0], months), (its[1], weekdays)):
            numbers |= {form: at for at, name in enumerate(names) for form in name.split("/")}
        before |= {*its[2]}
        last |= {*its[3]}
    months = {name: number + 1 for name, number in months.items()}
    short = {name[:-1] for name in months if name.endswith(".")}
    months = {name.rstrip("."): number for name, number in months.items()}
    hints = frozenset({*months, *weekdays, *_HINTS, *(word for name in weekdays for word in name.split("-"))})
    form = _form(months, weekdays, before, last)
    return _Known(months, weekdays, frozenset(short), frozenset(before), frozenset(last), hints, form)


def _form(
    months: Iterable[str], weekdays: Iterable[str], before: set[str], last: set[str]
) -> re.Pattern[str]:
    def any_of(words: Iterable[str]) -> str:
        return "|".join(map(re.escape, sorted(words, key=lambda word: (-len(word), word))))

    month, names = any_of(months), any_of([*months, *weekdays])
    year = r"(?P<year{}>(?:19|20)\d\d)(?!\d)"
    its_year = r"(?P<year{}>(?:19|20)\d\d|(?:last|this)\s+year)(?!\d)"
    day = r"(?P<day{}>3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th|er|\.|o|\u00ba|\u00b0)?(?![\w:])"
    of = r"(?:(?:of|de|del|di)\s+|d['\u2019])?"
    week = r"(?:(?:cw|kw|w)\s?|(?:semaine|semana|settimana|uke|vecka|week|woche)\s)"
    counts, units = any_of(COUNTS | _VAGUE), f"(?P<unit{{}}>{any_of(_UNITS)})"
    number = r"(?P<{}>3[01]|[12]\d|0?[1-9])"
    then = r"(?:early\s+|late\s+|mid[-\s]\s*)?"
    before_season = rf"(?:(?P<before10>in|during|since|last|this|next)\s+(?:the\s+)?{then})?"
    alone = rf"(?:(?P<before15>{any_of({*before, *last, 'next'})})\s+{then})?(?P<name15>{names})"
    # Not "March last year", which has a form of its own, nor "Monday last week", which is in that week.
    ends = rf"(?!\.?,?\s+{of}(?:(?:the\s+)?\d|(?:last|this)\s+(?:week|year)))"
    forms = [
        (
            rf"(?<![./-]){year.format(1)}(?P<mark1>[-/.])(?P<month1>\d\d?)(?P=mark1)(?P<day1>\d\d?)"
            r"(?:t\d[\d:]*z?)?(?![\w/-])"
        ),
        r"(?<![./-])(?P<year18>(?:19|20)\d\d)(?P<month18>0[1-9]|1[0-2])(?P<day18>[012]\d|3[01])(?![\w/-])",
        rf"(?<![./-]){year.format(19)}[-\s]?{week}(?P<week19>\d\d?)(?:-(?P<weekday19>[1-7]))?(?![\w/-])",
        rf"(?<![./-]){week}(?P<week21>\d\d?)(?:,?\s+|[-/]){of}{year.format(21)}",
        rf"{year.format(20)}[.,]?\s+(?P<name20>{month})\.?\s+{day.format(20)}",
        rf"(?<![./-]){year.format(2)}-(?P<month2>\d\d)(?![\w/-])",
        (
            r"(?<![./-])(?P<day3>\d\d?)(?:(?P<sign3>[-/])|\.\s?)(?P<month3>\d\d?)(?(sign3)(?P=sign3)|\.\s?)"
            rf"{year.format(3)}(?![/-]|\.\d)"
        ),
        (
            rf"(?:{number.format('from4')}\.?\s?(?:[-\u2013]|to)\s?)?{day.format(4)}\s+{of}"
            rf"(?P<name4>{month})\.?(?:,?\s+{of}{its_year.format(4)})?"
        ),
        (
            rf"(?P<name5>{month})\.?\s+(?:the\s+)?{day.format(5)}"
            rf"(?:\s?[-\u2013]\s?{number.format('until5')}(?![\w:]))?(?:(?:,?\s+|-){its_year.format(5)})?"
        ),
        rf"(?P<name6>{month})\.?,?\s+{of}{its_year.format(6)}",
        rf"q(?P<quarter7>[1-4])(?:(?:\s+|-){of}{its_year.format(7)})?",
        rf"{year.format(8)}\s?-?q(?P<quarter8>[1-4])",
        (
            rf"(?:(?P<before9>in|during|since)\s+(?:the\s+)?)?(?P<quarter9>{any_of(_QUARTERS)})\s+quarter"
            rf"(?:\s+{of}{its_year.format(9)}|(?!\s+of\b))"
        ),
        rf"{before_season}(?P<season10>{any_of(_SEASONS)})(?:\s+{of}{its_year.format(10)}|(?!\s+of\b))",
        rf"(?P<ago11>\d{{1,3}}|{counts})\s+{units.format(11)}s?\s+ago",
        rf"(?:last|past)\s+(?P<past12>\d{{1,3}}|{counts})\s+{units.format(12)}s?",
        r"(?P<which13>last|this|past|previous)\s+(?P<unit13>week(?:end)?|month|quarter|year)",
        (
            r"(?P<word14>day\s+before\s+yesterday|last\s+night|this\s+(?:morning|afternoon|evening)"
            r"|yesterday|today|tonight)"
        ),
        rf"{alone}{ends}(?:\s+(?P<after15>{any_of(last)}))?",
        rf"(?<![.,:/#$\u20ac\u00a3+-]){year.format(16)}(?![\w/:%-]|[.,]\d)",
    ]
    # Year, month and day in Chinese, Japanese and Korean.
    y, m, d = "[\u5e74\ub144]", "[\u6708\uc6d4]", "[\u65e5\u53f7\u865f\uc77c]"
    spaceless = (
        rf"(?:{year.format(17)}\s?{y}\s?)?(?<!\d){number.format('month17')}\s?{m}"
        rf"(?:\s?{number.format('day17')}\s?{d})?|{year.format(22)}\s?{y}"
    )
    return re.compile(rf"(?<!\w)(?:{'|'.join(forms)})(?!\w)|{spaceless}")
