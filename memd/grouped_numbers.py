"""Numbers in groups, of telephones, books, accounts and devices: in one piece they are the same. Pure.

A note's numbers in groups are indexed in one piece, too, and those of a query are joined. What may be the
number of a subscriber is joined (ITU-T E.123 and E.164, and as people write them): digits behind a plus sign,
a zero or an area code in brackets, or three, three and three or four digits; and so are groups of digits with
hyphens between them, an ISBN, an IBAN, the number of a card, a UUID, the address of a network card and 1,200.
So days, decimal fractions, addresses of computers and rows of figures are not.
"""

import re

FEWEST, MOST = 9, 15  # digits; fewer are mostly no number, and no telephone number has more
_LINE = r"[-/ \u00a0\u2010\u2011\u2013\u202f]"
_HEX = "[0-9A-Fa-f]"
_OF_DEVICES = (
    rf"{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}"
    rf"|(?:{_HEX}{{2}}[:-]){{5,31}}{_HEX}{{2}}|{_HEX}{{4}}(?:\.{_HEX}{{4}}){{2}}"
)
_NUMBER = re.compile(
    rf"""(?<![\w.,/+)-])(?<!\d[ :])
    (?: (?P<other>{_OF_DEVICES} | [3-6]\d{{3}}(?:[ ]\d{{4}}){{3}} | \d+(?:-\d+){{2,7}}(?:-X)?
    | 97[89](?:[- ]\d{{1,7}}){{4}}
    | [A-Z]{{2}}\d\d(?:[ ][A-Z\d]{{4}}){{2,7}}(?:[ ][A-Z\d]{{1,3}})?)
    | (?:(?P<abroad>\+|00(?=[1-9])|\(\+)\d{{1,4}}\)? | \(\d{{2,6}}\) | 0[1-9]\d{{0,5}} | 8(?=[ ]?\(\d)
      | \d{{3}}(?={_LINE}\d{{3}}{_LINE}\d{{3,4}}\b) )
    (?: (?:[ ]?{_LINE}[ ]? | (?<=\)) | (?=\() ) \(?\d+\)?
        (?: (?:{_LINE} | (?<=\)) | (?=\() ) \(?\d+\)? )*
      | (?:\.\d+){{2,}} ))
    (?!\w | [ ]?[-./:]?\d)""",
    re.VERBOSE,
)
# Each number begins with as many of its signs; most texts have no such row, and this is a fourth of the time.
_MAY_BE = re.compile(rf"[\d(+]{_LINE[:-1]}\d()+.]{{{FEWEST - 1}}}")
_MAY_BE_OF_A_DEVICE = re.compile(rf"[-:.](?:{_HEX}{{4}}[-.]{_HEX}{{4}}|(?:{_HEX}{{2}}[-:]){{3}})")  # likewise
_DAY = re.compile(r"\d{1,2}([-./])\d{1,2}\1\d{2,4}(?![-./]?\d)|(?:19|20)\d\d-[01]\d(?!\d)")
_TRUNK = re.compile(r"\(0\)")  # dialled only within the country
_THOUSANDS = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?!\w|,\d)")  # 1.200 and 1 200 may be something else
_MAY_BE_THOUSANDS = re.compile(r",\d{3}")
_GROUP = re.compile(r"[A-Za-z\d]+")


def numbers_in(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return each number that *text* has in groups, as written, and its forms in one piece.

    A telephone number with a country has that form, and those within it, with a leading zero and without.
    """
    found: list[tuple[str, tuple[str, ...]]] = []
    if _MAY_BE_THOUSANDS.search(text):
        found += [(one, (one.replace(",", ""),)) for one in _THOUSANDS.findall(text)]
    if not (_MAY_BE.search(text) or _MAY_BE_OF_A_DEVICE.search(text)):
        return found
    for place in _NUMBER.finditer(text):
        first, *others = _GROUP.findall(_TRUNK.sub(" ", place[0]))
        rest = "".join(others)
        size = len(first + rest)
        if size >= FEWEST and (size <= MOST or place["other"]) and not _DAY.match(place[0]):
            is_abroad = place["abroad"] is not None
            code = first.removeprefix("00") if is_abroad else first
            found.append(
                (place[0], (f"{code}{rest}", f"0{rest}", rest) if is_abroad else (f"{first}{rest}",))
            )
    return found
