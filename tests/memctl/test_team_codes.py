"""`memctl team publish` ends with the code of what happened."""

import pytest

from memctl import exits
from memctl.commands import team


@pytest.mark.parametrize(
    ("error", "done", "code"),
    [
        ("", True, exits.OK),
        ("/n is not published: the store refused it", True, exits.UNHEALTHY),
        ("/n is another folder than the one that was published from there", True, exits.UNHEALTHY),
        ("/other is not published: the store refused it", True, exits.OK),
        ("the store does not answer", False, exits.UNHEALTHY),
    ],
)
def test_what_is_not_published_is_no_success(error, done, code):
    args = team.Namespace(json=True)
    assert team._told({"root": "/n", "done": done, "status": {"error": error}}, "", args) == code
