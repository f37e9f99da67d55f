from memd.events import EventBus


def heard(feed, root=None):
    """Return a list that fills with what is published, and what ends it."""
    events = []
    return events, feed.listen(events.append, root)


def test_an_event_says_where_and_when():
    feed = EventBus()
    events, _ = heard(feed)
    feed.publish("/a", {"event": "state", "state": "ready"})
    feed.publish("/a", {"event": "state", "at": 7.0})
    assert events[0].keys() == {"workspace", "at", "event", "state"}
    assert (events[0]["workspace"], events[1]["at"]) == ("/a", 7.0)


def test_who_follows_one_workspace_hears_of_no_other():
    feed = EventBus()
    (one, _), (every, _) = heard(feed, "/a"), heard(feed)
    for number, root in enumerate(("/a", "/ab", "/a")):
        feed.publish(root, {"number": number})
    assert [event["number"] for event in one] == [0, 2]
    assert [event["number"] for event in every] == [0, 1, 2]


def test_who_ends_it_hears_nothing_more():
    feed = EventBus()
    ends = []
    feed.listen(lambda _: ends[0]())
    events, end = heard(feed)
    ends.append(end)
    feed.publish("/a", {})
    feed.publish("/a", {})
    end()
    assert len(events) == 1


def test_the_same_listener_may_listen_twice():
    feed = EventBus()
    events = []
    listen = events.append
    end = feed.listen(listen)
    feed.listen(listen)
    end()
    feed.publish("/a", {})
    assert len(events) == 1
