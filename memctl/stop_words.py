"""The function words of questions, which are not searched beside other words, and not marked."""

# Function words of questions: in a large workspace they occur in most chunks, and their idf is close to 0
# anyway; in a small one they would let "the paper" find "execute the pipeline". They are kept in phrases, and
# in a query that has no other words.
STOP_WORDS = frozenset(
    """
    a an and are as at be been but by can could did do does for from had has have he her his how i if in into
    is it its me my no not of on or our she should so such than that the their them then there these they this
    those to was we were what when where which who whom why will with would you your
    """.split()  # noqa: SIM905 - readable as words
)
