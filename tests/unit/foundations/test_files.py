"""Files that a user names: one sentence refuses a file that is not regular, or too large, and it is never read."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.cli import main
from pytest_agentproc.errors import ScenarioError, UsageError
from pytest_agentproc.files import read_file, read_file_inside_folder, shorten_path
from pytest_agentproc.scenario import load
from pytest_agentproc.subjects import load_command_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

GOOD = "scenario: it says hello\nagent: raw\nscript: [{answer: hello}]\n"
WITH_FILE = "scenario: a\nagent: raw\nscript:\n  - raw: {file: sub/f}\nexpect: {outcome: completed}\n"
HUGE = 20 * 1000**3


def _make_pipe(path: Path) -> None:
    os.mkfifo(path)


def _make_sparse_file(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(HUGE)


def _make_link_to_sparse_file(path: Path) -> None:
    _make_sparse_file(path.with_name("sparse"))
    path.symlink_to("sparse")


def _make_link_to_zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


PIPE = "it is a named pipe, and not a regular file"
DEVICE = "it is a device, and not a regular file"
LARGE = f"it has {HUGE} bytes: at most "
KINDS = [
    (_make_pipe, PIPE),
    (_make_link_to_zero, DEVICE),
    (_make_sparse_file, LARGE),
    (_make_link_to_sparse_file, LARGE),
]
each_kind = pytest.mark.parametrize(("make", "why"), KINDS, ids=["pipe", "device", "sparse", "link"])


@each_kind
def test_a_scenario_that_is_no_file_is_refused_unread(
    make: Callable[[Path], None], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A checkout can hold such a thing, and `check` must neither wait for it nor take all memory."""
    path = tmp_path / "x.scenario.yaml"
    make(path)
    with pytest.raises(ScenarioError) as error:
        load(path)
    assert str(error.value).startswith(f"{path}:1:1: the file cannot be read: {why}")
    for command in ("check", "run", "search"):
        assert main([command, str(path)]) == (1 if command == "check" else 2)
        output = capsys.readouterr()
        assert why in output.out + output.err
    assert main(["check", str(tmp_path)]) == 1
    assert why in capsys.readouterr().out


def test_a_device_is_no_scenario(capsys: pytest.CaptureFixture[str]) -> None:
    """/dev/zero has no end."""
    assert main(["check", "/dev/zero"]) == 1
    assert DEVICE in capsys.readouterr().out
    assert main(["run", "/dev/zero"]) == 2
    assert DEVICE in capsys.readouterr().err


@each_kind
def test_a_log_that_is_no_file_is_refused_unread(
    make: Callable[[Path], None], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`import` reads whatever a user pastes the path of."""
    path = tmp_path / "log"
    make(path)
    assert main(["import", str(path), "--dialect", "claude"]) == 2
    assert why in capsys.readouterr().err


@each_kind
def test_a_wrapper_that_is_no_file_is_refused_unread(make: Callable[[Path], None], why: str, tmp_path: Path) -> None:
    """`--subject FILE.toml` names a file, too."""
    path = tmp_path / "wrapper.toml"
    make(path)
    with pytest.raises(UsageError, match=why):
        load_command_file(path)


def test_a_number_of_5000_digits_is_a_mistake_of_the_wrapper(tmp_path: Path) -> None:
    """Python reads no such number; that is a sentence and no stack."""
    path = tmp_path / "wrapper.toml"
    path.write_text(f"limits = {{inactivity_timeout = {'9' * 5000}}}\n", "utf-8")
    with pytest.raises(UsageError, match=r"^wrapper.toml: "):
        load_command_file(path)


@each_kind
def test_bytes_of_a_step_that_are_no_file_are_refused_unread(
    make: Callable[[Path], None], why: str, tmp_path: Path
) -> None:
    """The file that a step names is read while the scenario is checked."""
    (tmp_path / "sub").mkdir()
    make(tmp_path / "sub" / "f")
    path = tmp_path / "x.scenario.yaml"
    path.write_text(WITH_FILE, "utf-8")
    with pytest.raises(ScenarioError, match=r"x.scenario.yaml:4:\d+: raw.file"):
        load(path)
    assert why


def test_a_link_that_is_put_there_after_the_look_is_not_followed(tmp_path: Path) -> None:
    """A name may lead elsewhere by the time that it is opened: each part of the path is opened for itself."""
    (tmp_path / "secret").write_text("outside", "utf-8")
    folder = tmp_path / "folder"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "f").symlink_to("../../secret")
    with pytest.raises(OSError, match="symbolic link"):
        read_file_inside_folder(folder, folder / "sub" / "f", 100)
    (folder / "below").symlink_to("..")
    with pytest.raises(OSError, match=r"Not a directory|symbolic link"):
        read_file_inside_folder(folder, folder / "below" / "secret", 100)


def test_nothing_outside_is_read_while_links_are_swapped(tmp_path: Path) -> None:
    """The check and the reading are two calls, and another process may act between them."""
    (tmp_path / "secret").write_text("SECRET", "utf-8")
    folder = tmp_path / "folder"
    (folder / "sub").mkdir(parents=True)
    path, over = folder / "x.scenario.yaml", threading.Event()
    path.write_text(WITH_FILE, "utf-8")

    def swap() -> None:
        while not over.is_set():
            (folder / "t").write_text("inside", "utf-8")
            (folder / "t").rename(folder / "sub" / "f")
            (folder / "t").symlink_to("../../secret")
            (folder / "t").rename(folder / "sub" / "f")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(400):
            try:
                assert "SECRET" not in repr(load(path).scripts)
            except ScenarioError:
                continue
    finally:
        over.set()
        thread.join()


def test_a_file_that_grows_is_read_up_to_the_limit() -> None:
    """A file of /proc has no size, and another one may grow after the look."""
    with pytest.raises(OSError, match="it has more than 3 bytes"):
        read_file("/proc/self/status", 3)
    assert read_file("/proc/self/comm", 100)


def test_a_path_in_a_message_is_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of an environment says nothing; a path from the current folder can be pasted."""
    monkeypatch.chdir(tmp_path)
    assert shorten_path("/home/me/.venv/lib/python3.11/site-packages/sdk/client.py") == "site-packages/sdk/client.py"
    assert shorten_path("/usr/lib/python3/dist-packages/sdk.py") == "dist-packages/sdk.py"
    assert shorten_path(tmp_path / "tests" / "mine.py") == "tests/mine.py"
    assert shorten_path("/etc/mine.py") == "/etc/mine.py"
