import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from memd.config import (
    MAX_CONFIG_BYTES,
    OpenAIServer,
    UserConfig,
    Weights,
    WorkspaceConfig,
    check_allowed,
    config_template,
    load_user_config,
    load_workspace_config,
    with_settings,
)
from memd.errors import ConfigError


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "config.toml"

    def load(text: str) -> WorkspaceConfig:
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
        return load_workspace_config(path)

    return load


def test_the_written_template_is_the_defaults(config):
    assert config(config_template()) == WorkspaceConfig()
    lines = [
        line.removeprefix("# ")
        for line in config_template().splitlines()
        if " = " in line and line.startswith("# ")
    ]
    written = config("\n".join(lines))
    assert (replace(written, weights=None), written.weights) == (WorkspaceConfig(), Weights())
    assert {line.split(" = ")[0] for line in lines} == set(WorkspaceConfig.__struct_fields__)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("limit = 1", "limit: unknown key; allowed are sources, ignore,"),
        ('chunk_words = "a"', "chunk_words = 'a': expected int, got str"),
        ("chunk_words = 5", "chunk_words = 5: expected int >= 20"),
        ("weights = { vector = 2 }", "weights.vector = 2: expected float <= 1.0"),
        ("weights = { vector = 0, keyword = 0 }", "both 0"),
        ("weights = { vektor = 1 }", "unknown field vektor"),
        ('fusion = "sum"', "fusion = 'sum': expected one of 'weighted', 'rrf'"),
        (
            'languages = ["german", "klingon"]',
            "languages[1] = 'klingon': expected one of 'arabic', 'armenian'",
        ),
        ("half_life_days = 0", "half_life_days = 0: expected float > 0.0"),
        ("half_life_days = nan", "half_life_days = nan: expected float > 0.0"),
        ("chunk_overlap = 150", "more than half of chunk_words = 200: use at most 100"),
        ("ignore = [1]", "ignore[0] = 1: expected str, got int"),
        ("a =", "not valid TOML"),
        ("a = '\udcff'", "byte 5 is not UTF-8"),
    ],
)
def test_a_fault_is_one_line_with_file_key_and_what_is_allowed(config, tmp_path, text, told):
    with pytest.raises(ConfigError) as caught:
        config(text)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'config.toml'}: ")
    assert told in message
    assert "\n" not in message


SERVER = '[openai."http://127.0.0.1:8080"]\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('scripts = ["Latin", "Klingon"]', "scripts[1] = 'Klingon': expected one of 'Arabic', 'Armenian'"),
        ('scripts = ["latin"]', "scripts[0] = 'latin': expected one of"),
        ("scripts = []", "scripts = []: expected array of length >= 1"),
        ('scripts = "Latin"', "scripts = 'Latin': expected array"),
        # A key is not shown, and a server that knew one input type would mix two kinds of vectors.
        (f"{SERVER}api_key = 1234567", "openai.api_key: "),
        (f'{SERVER}api_key = "1234567"\nprefix = "x"', "openai: "),
        (f'{SERVER}input_type = {{ query = "query" }}', "object missing required field document"),
        (
            f'{SERVER}input_type = {{ query = "query", document = "" }}',
            "document: expected str of length",
        ),
        (f'{SERVER}input_type = "query"', "openai.input_type: expected object | null, got str"),
    ],
)
def test_a_fault_in_the_users_file_is_told(tmp_path, text, told):
    path = tmp_path / "user.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_user_config(path)
    assert told in str(caught.value)
    assert "1234567" not in str(caught.value)


def test_the_users_file_says_which_scripts_a_model_reads(tmp_path):
    path = tmp_path / "user.toml"
    assert load_user_config(path).scripts is None
    path.write_text('scripts = ["Latin", "Han"]\n')
    assert load_user_config(path).scripts == ("Latin", "Han")


NEAR, FAR = "http://127.0.0.1:8080", "http://10.0.0.1:8080"
OLLAMA = "http://127.0.0.1:11434"  # a clone may choose a model there: its notes go to who listens there
EVIL = "http://127.0.0.1.evil.example:80"


@pytest.mark.parametrize(
    ("wanted", "user", "allowed"),
    [
        # A config that came with a git clone cannot choose any folder.
        ({"model": "/mine"}, {}, False), ({"model": "/mine"}, {"models": ("/mine",)}, True),
        ({"provider": "ollama"}, {}, True), ({"provider": "ollama", "address": OLLAMA}, {}, True),
        # Beyond loopback two words are needed.
        *(
            ({"provider": "ollama", "address": address}, user | {"addresses": named}, bool(user and named))
            for address in (FAR, EVIL, "http://[::2]:80")
            for user in ({}, {"allow_remote": True})
            for named in ((), (address,))
        ),
        # A server of OpenAI's is named by its table or among the addresses; a table names nothing for Ollama.
        ({"provider": "openai", "address": NEAR}, {"openai": {NEAR: OpenAIServer()}}, True),
        ({"provider": "openai", "address": NEAR}, {"addresses": (NEAR,)}, True),
        ({"provider": "openai", "address": NEAR}, {}, False),
        ({"provider": "ollama", "address": NEAR}, {"openai": {NEAR: OpenAIServer()}}, False),
        ({"provider": "openai", "address": FAR}, {"openai": {FAR: OpenAIServer()}}, False),
    ],
)  # fmt: skip
def test_what_a_workspace_may_choose_is_named_by_the_user(wanted, user, allowed):
    chosen = WorkspaceConfig(**{"model": "m"} | wanted)
    asked = Path("w.toml"), chosen, UserConfig(**user), Path("u.toml")
    if allowed:
        check_allowed(*asked)
    else:
        with pytest.raises(ConfigError):
            check_allowed(*asked)


@pytest.mark.parametrize("kind", ["FIFO", "folder", "device", "too large"])
def test_what_is_no_configuration_is_refused_without_waiting(tmp_path, kind):
    """A clone may bring a pipe, a link to a device without end, or a file that fills the memory."""
    path = tmp_path / "config.toml"
    if kind == "FIFO":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.write_bytes(b"#" * (MAX_CONFIG_BYTES + 1))
    wrong = r"config\.toml: (cannot be read: it is not a regular file|larger than)"
    with pytest.raises(ConfigError, match=wrong):
        load_workspace_config(path)


def test_no_user_config_means_the_defaults(tmp_path):
    assert load_user_config(tmp_path / "none.toml") == UserConfig()


def test_settings_are_checked_before_anything_is_written(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text("min_score = 0.2\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="max_results = 0"):
        with_settings(path, {"max_results": 0})
    assert with_settings(path, {"max_results": 5}).max_results == 5
    assert path.read_text(encoding="utf-8") == "min_score = 0.2\n"
