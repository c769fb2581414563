"""A changed file is noticed, however it was changed."""

from pathlib import Path

from situate.loop.watched import WatchedFile


def test_a_file_that_is_written_again_has_changed_once(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("one")
    file = WatchedFile(path)
    assert not file.changed()
    path.write_text("other")
    assert file.changed()
    assert not file.changed()


def test_a_file_that_is_replaced_by_the_same_bytes_has_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("one")
    file = WatchedFile(path)
    (tmp_path / "new").write_text("one")
    (tmp_path / "new").replace(path)
    assert not file.changed()


def test_the_swapped_links_of_a_config_map_are_a_change(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.yaml").write_text(name)
    (tmp_path / "..data").symlink_to("one")
    (tmp_path / "config.yaml").symlink_to("..data/config.yaml")
    file = WatchedFile(tmp_path / "config.yaml")
    (tmp_path / "..data_tmp").symlink_to("two")
    (tmp_path / "..data_tmp").replace(tmp_path / "..data")
    assert file.changed()


def test_a_file_that_is_away_for_a_moment_has_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("one")
    file = WatchedFile(path)
    path.unlink()
    assert not file.changed()
    path.write_text("one")
    assert not file.changed()
