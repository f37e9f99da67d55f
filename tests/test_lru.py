"""A cache keeps to its size, and what was used last stays."""

from memd.lru import LruCache


def test_what_was_used_longest_ago_goes():
    cache = LruCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert [cache.get(key) for key in "abc"] == [1, None, 3]


def test_sizes_count_and_are_given_back():
    cache = LruCache(10)
    cache.put("a", 1, 6)
    cache.put("a", 2, 2)
    cache.put("b", 3, 8)
    assert (cache.get("b"), cache.get("a")) == (3, 2)
    cache.put("c", 4, 8)
    assert (cache.get("a"), cache.get("b")) == (2, None)
    cache.put("d", 5, 11)
    assert (cache.get("a"), cache.get("d")) == (None, 5), "the newest stays, too large or not"
