import pytest

from memd.config import write_settings
from memd.errors import UnsafeError


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text("# mine\n\nignore = [  # two of them\n  'a',\n  'b',\n]\nmin_score = 0.2  # low\n")
    return path


def test_a_setting_is_replaced_and_comments_stay(config, tmp_path):
    write_settings(tmp_path, config, {"min_score": 0.3})
    assert config.read_text() == (
        "# mine\n\nignore = [  # two of them\n  'a',\n  'b',\n]\nmin_score = 0.3  # low\n"
    )


def test_a_new_setting_is_added(config, tmp_path):
    write_settings(tmp_path, config, {"model": 'say "hi"'})
    assert config.read_text().endswith('min_score = 0.2  # low\nmodel = "say \\"hi\\""\n')


def test_the_mode_of_the_file_stays(config, tmp_path):
    config.chmod(0o640)
    write_settings(tmp_path, config, {"max_results": 3})
    assert config.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["config.toml"]


def test_a_link_out_of_the_root_is_refused(config, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    (root / "config.toml").symlink_to(config)
    before = config.read_text()
    with pytest.raises(UnsafeError, match="out of the workspace"):
        write_settings(root, root / "config.toml", {"max_results": 3})
    assert config.read_text() == before
