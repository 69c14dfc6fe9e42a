"""The HTML report: one page without anything from elsewhere, that says what text and JSON say."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import zlib
from html.parser import HTMLParser
from pathlib import Path

import pytest

from d9mlint.cli.trace import as_html
from d9mlint.trace import journal
from d9mlint.trace.compare import first_difference
from d9mlint.trace.curve import by_step, lanes
from d9mlint.trace.journal import OP, STEP, Journal, Writer
from d9mlint.trace.model import DIVERGED, UNKNOWN, Report, RunInfo
from d9mlint.trace.report import as_json, text

STEPS, OPERATIONS = 6, 50
VOID = {"meta", "br", "wbr", "link"}


def recording(path: Path, program: Path, differs_from: int) -> Journal:
    """Steps of operations; from one place on every second digest, later every digest is another one."""
    writer = Writer(str(path), {"key": "main", "pid": 1})
    table = {
        "stream": ["main"],
        "name": ["aten.mul.Tensor", "SGD.step"],
        "path": [f"{program}:2:<train & test>"],
        "shape": ["float32[4]"],
    }
    writer.json(b"T", table)
    place = 0
    for _ in range(STEPS):
        records = []
        for _ in range(OPERATIONS):
            different = place >= differs_from and (place % 2 == 0 or place > 2 * differs_from)
            digest = place + 1000 * different
            records.append(journal.RECORD.pack(OP, 0, 1, 1, 1, 0, 1, 0, 0, digest))
            place += 1
        records.append(journal.RECORD.pack(STEP, 0, 1, 2, 1, 0, 0, 0, 0, 0))
        writer.records(b"".join(records))
    writer.json(b"E", {"steps": STEPS})
    writer.close()
    return Journal(str(path)).update()


@pytest.fixture
def report(tmp_path: Path) -> Report:
    program = tmp_path / "train.py"
    program.write_text("x = 1\ny = x < 2 and '<script>'\nz = 3\n")
    pairs = [(recording(tmp_path / "a", program, 10**6), recording(tmp_path / "b", program, 120))]
    difference = first_difference(pairs, complete=True)
    runs = (RunInfo(0, False, STEPS, 306), RunInfo(None, True, STEPS, 306))
    command = ("python", "train.py", "--name", "<b>")
    return Report(DIVERGED, command, "full", "", runs, difference=difference, lanes=lanes(pairs))


class Balanced(HTMLParser):
    """Fails where a tag is not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        assert not any(name in ("src", "href") or name.startswith("on") for name, _ in attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_one_page_with_a_picture_and_nothing_from_elsewhere(report: Report) -> None:
    page = as_html(report)
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    assert "script" not in parser.names and "link" not in parser.names
    assert "url(" not in page and "@import" not in page
    assert parser.names.count("svg") == 1 and "prefers-color-scheme: dark" in page
    assert "&lt;script&gt;" in page
    # What stands in backticks in a terminal is code here, and a list needs no word before each line.
    assert "<code>aten.mul.Tensor</code>" in page and "`" not in page and ">note: " not in page


def test_page_text_and_json_say_the_same(report: Report) -> None:
    page, found = as_html(report), json.loads(as_json(report))
    lines = text(report).splitlines()
    assert found["difference"]["step"] == 3 and "optimizer step 3" in page
    assert lines[0] in page and lines[0].startswith(f"diverged: {found['difference']['verdict']}")
    assert found["remedy"] in page and f"help: {found['remedy']}" in lines
    for side in ("first", "second"):
        assert found["difference"][side]["digest"] in page
        assert any(found["difference"][side]["digest"] in line for line in lines)


@pytest.mark.parametrize("distinct", [1, 4])
def test_an_operation_is_confirmed_only_by_replays_that_differ(report: Report, distinct: int) -> None:
    mode = {"distinct": 1, "raises": ""}
    outputs = [{"dtype": "float32", "shape": [2], "distinct": distinct, "v_ermv": 0.1, "v_c": 0.5, "ulp": 3}]
    found = {
        "runs": 10,
        "distinct": distinct,
        "raises": "",
        "outputs": outputs,
        "deterministic": mode,
        "inputs": [],
    }
    one = report._replace(confirmation=found)
    said = text(one)
    assert json.loads(as_json(one))["confirmed"] is (distinct > 1)
    assert ("gives different results for the same inputs" in said) is (distinct > 1)
    assert ("\nconfirmed: 4 distinct results in 10 replays" in said) is (distinct > 1)
    assert ("not confirmed: equal in 10 replays" in said) is (distinct == 1)
    assert ("memory that the operation does not initialize" in said) is (distinct == 1)
    # What is equal without deterministic mode says nothing about it.
    assert ("deterministic mode: equal" in said) is (distinct > 1)
    page = as_html(one)
    assert said.splitlines()[0] in page and json.loads(as_json(one))["headline"] == said.splitlines()[0]


def test_the_picture_shows_how_the_difference_grows(report: Report) -> None:
    (lane,) = report.lanes
    # From place 120 on every second operation differs, from 240 on every one.
    expected = [(1, 51, 0), (2, 51, 0), (3, 51, 15), (4, 51, 25), (5, 51, 30), (6, 51, 50)]
    assert by_step(lane) == expected
    assert sum(one["differing"] for one in json.loads(as_json(report))["curve"][0]["bins"]) == 120
    page = as_html(report)
    assert "step 6: 50 of 51" in page and "first difference: aten.mul.Tensor" in page
    assert "step 6: 50 of 51" in text(report)


def test_a_long_recording_has_a_bounded_picture(tmp_path: Path) -> None:
    def long(name: str, first: int) -> Journal:
        writer = Writer(str(tmp_path / name), {"key": "main", "pid": 1})
        writer.json(b"T", {"stream": ["main"], "name": ["aten.mul"]})
        writer.records(
            b"".join(journal.RECORD.pack(OP, 0, 1, 1, 0, 0, 0, 0, 0, int(n > first)) for n in range(100_000))
        )
        writer.close()
        return Journal(str(tmp_path / name)).update()

    (lane,) = lanes([(long("a", 10**9), long("b", 50_000))])
    assert len(lane.bins) <= 240 and sum(one.records for one in lane.bins) == 100_000


def test_a_report_without_a_difference_is_a_page_too() -> None:
    page = as_html(Report(UNKNOWN, ("python", "x.py"), "full", "the <first> run failed", ()))
    assert "could not tell: the &lt;first&gt; run failed" in page


@pytest.mark.full
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
@pytest.mark.parametrize(("scheme", "dark"), [(1, False), (0, True)])
def test_a_browser_shows_the_picture_in_light_and_dark(
    report: Report, tmp_path: Path, scheme: int, dark: bool
) -> None:
    page, shot = tmp_path / "page.html", tmp_path / "shot.png"
    page.write_text(as_html(report))
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1000,1200"]
    subprocess.run(
        [
            *("chromium", *flags, f"--user-data-dir={tmp_path / 'profile'}"),
            *(f"--blink-settings=preferredColorScheme={scheme}", f"--screenshot={shot}", page.as_uri()),
        ],
        check=True,
        capture_output=True,
        timeout=900,
    )
    pixels = colors(shot)
    background = max(pixels, key=pixels.__getitem__)
    assert pixels[background] > 400_000, "the page has one background"
    assert max(background) < 0x30 if dark else min(background) > 0xF0, background
    bars = (0xFB, 0x92, 0x3C) if dark else (0xC2, 0x41, 0x0C)
    assert pixels.get(bars, 0) > 2_000, "the bars of the picture are drawn"


def colors(path: Path) -> dict[tuple[int, int, int], int]:
    """How often each color occurs in a PNG of 8 bits."""
    data = path.read_bytes()
    position, compressed, width, height, channels = 8, b"", 0, 0, 3
    while position < len(data):
        size, kind = struct.unpack_from(">I4s", data, position)
        body = data[position + 8 : position + 8 + size]
        if kind == b"IHDR":
            width, height, _, color = struct.unpack_from(">IIBB", body)
            channels = {2: 3, 6: 4}[color]
        elif kind == b"IDAT":
            compressed += body
        position += size + 12
    raw = zlib.decompress(compressed)
    stride = width * channels
    previous = bytearray(stride)
    found: dict[tuple[int, int, int], int] = {}
    for row in range(height):
        start = row * (stride + 1)
        line = unfiltered(raw[start], bytearray(raw[start + 1 : start + 1 + stride]), previous, channels)
        for at in range(0, stride, channels):
            key = (line[at], line[at + 1], line[at + 2])
            found[key] = found.get(key, 0) + 1
        previous = line
    return found


def unfiltered(kind: int, line: bytearray, above: bytearray, width: int) -> bytearray:
    """A row of a PNG without its filter."""
    for at in range(len(line)):
        left = line[at - width] if at >= width else 0
        up = above[at]
        corner = above[at - width] if at >= width else 0
        if kind == 1:
            line[at] = (line[at] + left) & 255
        elif kind == 2:
            line[at] = (line[at] + up) & 255
        elif kind == 3:
            line[at] = (line[at] + (left + up) // 2) & 255
        elif kind == 4:
            guess = left + up - corner
            a, b, c = abs(guess - left), abs(guess - up), abs(guess - corner)
            line[at] = (line[at] + (left if a <= b and a <= c else up if b <= c else corner)) & 255
    return line
