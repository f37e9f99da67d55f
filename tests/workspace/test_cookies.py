import asyncio

from memd.workspace.watcher import Cookies


def test_a_cookie_that_the_watcher_names_is_seen_and_leaves_nothing(tmp_path):
    """It is true as soon as its name comes back."""

    async def scenario():
        cookies = Cookies(tmp_path / "cookies")
        cookies.prepare()
        waiting = asyncio.create_task(cookies.seen_through(10))
        await asyncio.sleep(0)  # it is made before anything is waited for
        [name] = [path.name for path in cookies.folder.iterdir()]
        cookies.seen(["another", name])
        assert await waiting
        assert list(cookies.folder.iterdir()) == []

    asyncio.run(scenario())


def test_a_blind_watch_is_noticed(tmp_path):
    """A cookie that nobody names is not seen, and is gone afterwards."""

    async def scenario():
        cookies = Cookies(tmp_path / "cookies")
        cookies.prepare()
        assert not await cookies.seen_through(0.05)
        assert list(cookies.folder.iterdir()) == []

    asyncio.run(scenario())


def test_what_a_killed_daemon_left_is_cleared_away(tmp_path):
    """The folder begins empty, and is private."""
    cookies = Cookies(tmp_path / "cookies")
    cookies.prepare()
    (cookies.folder / "1-1").touch()
    cookies.prepare()
    assert list(cookies.folder.iterdir()) == []
    assert cookies.folder.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_cannot_take_a_cookie_is_a_blind_watch(tmp_path):
    """A full disk, or a folder deleted under us: the answer is a scan, not an error."""

    async def scenario():
        assert not await Cookies(tmp_path / "nowhere").seen_through(1)

    asyncio.run(scenario())
