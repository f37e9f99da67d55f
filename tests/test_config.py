import os
import re
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


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('scripts = ["Latin", "Klingon"]', "scripts[1] = 'Klingon': expected one of 'Arabic', 'Armenian'"),
        ('scripts = ["latin"]', "scripts[0] = 'latin': expected one of"),
        ("scripts = []", "scripts = []: expected array of length >= 1"),
        ('scripts = "Latin"', "scripts = 'Latin': expected array"),
    ],
)
def test_a_script_that_is_none_is_refused(tmp_path, text, told):
    path = tmp_path / "user.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_user_config(path)
    assert told in str(caught.value)


def test_the_users_file_says_which_scripts_a_model_reads(tmp_path):
    path = tmp_path / "user.toml"
    assert load_user_config(path).scripts is None
    path.write_text('scripts = ["Latin", "Han"]\n')
    assert load_user_config(path).scripts == ("Latin", "Han")


def test_a_model_folder_must_be_named_by_the_user(tmp_path):
    """A config that came with a git clone cannot choose any folder."""
    config = WorkspaceConfig(model="/models/mine")
    with pytest.raises(ConfigError, match="models = "):
        check_allowed(Path("w.toml"), config, UserConfig(), Path("u.toml"))
    check_allowed(Path("w.toml"), config, UserConfig(models=("/models/mine",)), Path("u.toml"))


@pytest.mark.parametrize(
    "address", ["http://10.0.0.1:11434", "http://127.0.0.1.evil.example:80", "http://[::2]:80"]
)
def test_an_address_beyond_loopback_needs_two_words_of_the_user(address):
    config = WorkspaceConfig(provider="ollama", model="m", address=address)
    for user in (UserConfig(), UserConfig(addresses=(address,))):
        with pytest.raises(ConfigError):
            check_allowed(Path("w.toml"), config, user, Path("u.toml"))
    check_allowed(Path("w.toml"), config, UserConfig(addresses=(address,), allow_remote=True), Path("u.toml"))


def test_the_usual_address_of_ollama_needs_no_word_of_the_user():
    """A clone may choose a model there, so its own notes go to whoever listens on that port of loopback."""
    config = WorkspaceConfig(provider="ollama", model="any")
    assert (config.address, UserConfig().addresses) == ("http://127.0.0.1:11434", (config.address,))
    check_allowed(Path("w.toml"), config, UserConfig(), Path("u.toml"))


def test_an_openai_server_is_named_by_the_user_alone():
    """By its table or among the addresses; a table names nothing for Ollama, and remote needs a word more."""
    near, far = "http://127.0.0.1:8080", "http://10.0.0.1:8080"
    near_user = UserConfig(openai={near: OpenAIServer()})
    config = WorkspaceConfig(provider="openai", model="m", address=near)
    check_allowed(Path("w.toml"), config, near_user, Path("u.toml"))
    check_allowed(Path("w.toml"), config, UserConfig(addresses=(near,)), Path("u.toml"))
    for provider, address, user in (
        ("openai", near, UserConfig()),
        ("ollama", near, near_user),
        ("openai", far, UserConfig(openai={far: OpenAIServer()})),
    ):
        with pytest.raises(ConfigError):
            check_allowed(
                Path("w.toml"), WorkspaceConfig(provider=provider, address=address), user, Path("u.toml")
            )


@pytest.mark.parametrize("line", ["api_key = 1234567", 'api_key = "1234567"\nprefix = "x"'])
def test_a_fault_beside_a_key_does_not_show_it(tmp_path, line):
    path = tmp_path / "config.toml"
    path.write_text(f'[openai."http://127.0.0.1:8080"]\n{line}\n')
    with pytest.raises(ConfigError, match=r"openai(\.api_key)?: ") as caught:
        load_user_config(path)
    assert "1234567" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ('{ query = "query" }', "openai.input_type: object missing required field document"),
        ('{ query = "query", document = "" }', "openai.input_type.document: expected str of length >= 1"),
        ('"query"', "openai.input_type: expected object | null, got str"),
    ],
)
def test_an_input_type_has_a_value_for_queries_and_one_for_documents(tmp_path, value, fault):
    """A server that knows only one of them would mix two kinds of vectors."""
    path = tmp_path / "config.toml"
    path.write_text(f'[openai."http://127.0.0.1:8080"]\ninput_type = {value}\n')
    with pytest.raises(ConfigError, match=re.escape(fault)):
        load_user_config(path)


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
