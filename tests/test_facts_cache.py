"""The cache of facts: what it keeps, and what it takes no harm from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from d9mlint.frontend.extract import extract
from d9mlint.ir.codec import pack
from d9mlint.store.facts_cache import Cache, version_key

TEXT = "import torch\ntorch.rand(2)\n"
DIGEST = "ab" * 20


@pytest.fixture
def directory(tmp_path: Path) -> str:
    return str(tmp_path / ".d9mlint_cache")


def put(directory: str, digest: str = DIGEST, text: str = TEXT) -> None:
    cache = Cache(directory)
    cache.put({digest: pack(text, extract(text, digest))})
    assert cache.warning is None


def pack_file(directory: str) -> Path:
    (path,) = Path(directory).glob("facts-*.bin")
    return path


def test_facts_come_back_equal(directory: str) -> None:
    put(directory)
    assert Cache(directory).get(DIGEST) == extract(TEXT, DIGEST)
    assert Cache(directory).get("cd" * 20) is None


def test_git_and_backups_leave_the_directory_alone(directory: str) -> None:
    put(directory)
    assert Path(directory, ".gitignore").read_text() == "*\n"
    assert (
        Path(directory, "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")
    )


def test_truncated_packs_are_rebuilt(directory: str) -> None:
    put(directory)
    path = pack_file(directory)
    content = path.read_bytes()
    for size in (0, 3, 20, 30, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:size])
        assert Cache(directory).get(DIGEST) is None
    put(directory)
    assert Cache(directory).get(DIGEST) == extract(TEXT, DIGEST)


def test_a_changed_byte_never_changes_an_answer(directory: str) -> None:
    put(directory)
    path = pack_file(directory)
    content = path.read_bytes()
    for at in range(len(content)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :])
        assert Cache(directory).get(DIGEST) in (None, extract(TEXT, DIGEST))


def test_foreign_packs_are_ignored(directory: str) -> None:
    put(directory)
    pack_file(directory).write_bytes(b"something else entirely" * 100)
    assert Cache(directory).get(DIGEST) is None
    pack_file(directory).unlink()
    Path(directory, f"facts-{version_key()}.bin").mkdir()
    assert Cache(directory).get(DIGEST) is None


def test_facts_of_another_file_are_no_answer(directory: str) -> None:
    Cache(directory).put({DIGEST: pack(TEXT, extract(TEXT, "cd" * 20))})
    assert Cache(directory).get(DIGEST) is None


def test_other_versions_have_other_packs(directory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    put(directory)
    monkeypatch.setattr("d9mlint.store.facts_cache._libcst_version", lambda: b"another")
    assert Cache(directory).get(DIGEST) is None


def test_a_second_run_keeps_what_the_first_has_written(directory: str) -> None:
    first, second = Cache(directory), Cache(directory)
    first.put({"aa" * 20: pack(TEXT, extract(TEXT, "aa" * 20))})
    second.put({"bb" * 20: pack(TEXT, extract(TEXT, "bb" * 20))})
    assert Cache(directory).get("aa" * 20) is not None
    assert Cache(directory).get("bb" * 20) is not None


def test_what_nobody_asks_for_is_dropped(directory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    put(directory, "aa" * 20)
    put(directory, "bb" * 20)
    stale = Path(directory, "facts-0123.bin")
    stale.write_bytes(b"")
    os.utime(stale, (0, 0))
    monkeypatch.setattr("d9mlint.store.facts_cache._today", lambda: 10**6)
    later = Cache(directory)
    assert later.get("bb" * 20) is not None
    later.put({"cc" * 20: pack(TEXT, extract(TEXT, "cc" * 20))})
    assert Cache(directory).get("aa" * 20) is None
    assert Cache(directory).get("bb" * 20) is not None
    assert not stale.exists()


def test_runs_at_the_same_time_do_no_harm(directory: str) -> None:
    code = (
        "import sys; from d9mlint.store.facts_cache import Cache\n"
        "from d9mlint.ir.codec import pack; from d9mlint.frontend.extract import extract\n"
        "for k in range(25):\n"
        "    d = f'{sys.argv[2]}{k:039}'; c = Cache(sys.argv[1])\n"
        "    c.put({d: pack('a', extract('a', d))}); assert c.warning is None, c.warning\n"
        "    assert c.get(f'{sys.argv[2]}{0:039}') in (None, extract('a', f'{sys.argv[2]}{0:039}'))\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, directory, name]) for name in "ef"]
    assert [process.wait(60) for process in running] == [0, 0]
    assert not list(Path(directory).glob(".*.new"))
    assert msgspec.msgpack.encode(Cache(directory).get(f"e{24:039}") or Cache(directory).get(f"f{24:039}"))


def test_a_place_that_cannot_be_written_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = Cache(str(tmp_path / "file" / "cache"))
    cache.put({DIGEST: pack(TEXT, extract(TEXT, DIGEST))})
    assert cache.warning is not None
    assert "cannot be written" in cache.warning
    assert cache.get(DIGEST) is None
