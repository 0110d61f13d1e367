"""Ways to spoil a scenario file, as authors, editors, merges and generators do. Knows no message."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

__all__ = ["MUTATIONS", "ODD"]

ODD = [
    *[
        "",
        " ",
        "\t",
        "\n",
        "\r",
        "\r\n",
        "\0",
        "\x07",
        "\x1b[31m",
        "\x85",
        "\xa0",
        "\u200b",
        "\u2028",
        "\ud800",
        "\ufeff",
    ],
    *[
        "?",
        "!",
        "&a ",
        "*a",
        "@",
        "`",
        "%",
        "|",
        ">",
        "- ",
        ": ",
        " #",
        "#",
        ",",
        "'",
        '"',
        "\\",
        "\\x",
        "''",
        "[",
        "]",
        "{",
    ],
    *["}", "{}", "[]", "{{x}}", "---\n", "...\n", "<<: ", "!!binary ", "!python/object:os.system ", "%YAML 9.9\n"],
    *["~", "null", "true", "no", "on", "0", "-0", "-1", "08", "0x7f", "1e999", ".inf", ".nan", "1_000", "12:30:45"],
    *["2026-11-22", "٣", "½", "naïve", "日本", "🙂", "e\u0301", "\u202e", "\uffff", "\U0010ffff", "9" * 40, "9" * 5000],
    *[
        "for ever",
        "kill_grace",
        "kill_grace / 0",
        "1s / 3",
        "(" * 60,
        "1h * 1h",
        "1ns * 0.1",
        "100000000h",
        "-1s",
        "64 GiB",
    ],
    *[
        "../../etc/passwd",
        "/dev/zero",
        ".",
        "a\0b",
        "(?i)[a-z]{1,9}",
        "((a+)+)+$",
        "*" * 50,
        "[!",
        "SIGKILL",
        "\u201chi\u201d",
    ],
]
"""Scalars and signs that a person or a broken tool may write."""


def delete_a_line(lines: list[str], random: Random) -> None:
    """Lose a line."""
    del lines[random.randrange(len(lines))]


def duplicate_a_line(lines: list[str], random: Random) -> None:
    """Have a line twice."""
    place = random.randrange(len(lines))
    lines.insert(place, lines[place])


def swap_two_lines(lines: list[str], random: Random) -> None:
    """Exchange two lines."""
    first, second = random.randrange(len(lines)), random.randrange(len(lines))
    lines[first], lines[second] = lines[second], lines[first]


def indent_otherwise(lines: list[str], random: Random) -> None:
    """Move a line to the left or to the right, maybe with a tab or a blank that is none."""
    place = random.randrange(len(lines))
    lines[place] = random.choice(["", " ", "  ", "    ", "\t", " \t", "\xa0 ", "      "]) + lines[place].lstrip()


def replace_a_value(lines: list[str], random: Random) -> None:
    """Write something else after a colon."""
    place = random.randrange(len(lines))
    lines[place] = re.sub(r": .*", lambda _: ": " + random.choice(ODD), lines[place], count=1)


def replace_a_word(lines: list[str], random: Random) -> None:
    """Write something else in place of a word."""
    place = random.randrange(len(lines))
    words = list(re.finditer(r"[\w.-]+|[^\w\s]", lines[place]))
    if words:
        word = random.choice(words)
        lines[place] = lines[place][: word.start()] + random.choice(ODD) + lines[place][word.end() :]


def change_one_character(lines: list[str], random: Random) -> None:
    """Lose, double or change a character."""
    place = random.randrange(len(lines))
    line = lines[place]
    at = random.randrange(len(line) + 1)
    lines[place] = (
        line[:at] + random.choice(["", line[at : at + 1] * 2, chr(random.randrange(32, 0x300))]) + line[at + 1 :]
    )


def insert_something(lines: list[str], random: Random) -> None:
    """Put something odd anywhere."""
    place = random.randrange(len(lines))
    at = random.randrange(len(lines[place]) + 1)
    lines[place] = lines[place][:at] + random.choice(ODD) + lines[place][at:]


def make_a_long_word(lines: list[str], random: Random) -> None:
    """Have a word that fills a screen, or a page."""
    place = random.randrange(len(lines))
    at = random.randrange(len(lines[place]) + 1)
    word = random.choice(["x", "ab ", "é", "\\", "'", "- ", "a: ", "? ", "9", " #"]) * random.choice([50, 500, 20_000])
    lines[place] = lines[place][:at] + word + lines[place][at:]


def nest_deeply(lines: list[str], random: Random) -> None:
    """Open brackets, or lists in lists."""
    opening = random.choice(["[", "{a: ", "- ", "? ", "[{", "(", "{do: [", '"', "!a ", "&a "])
    lines.insert(random.randrange(len(lines) + 1), opening * random.choice([3, 39, 41, 3000]))


def repeat_a_block(lines: list[str], random: Random) -> None:
    """Have a few lines again and again."""
    begin = random.randrange(len(lines))
    block = lines[begin : begin + random.randrange(1, 4)]
    times = random.choice([2, 30, 200])
    if times * sum(map(len, block)) < 1 << 20:
        lines[begin:begin] = block * times


def cut_short(lines: list[str], random: Random) -> None:
    """Lose the rest of the file in the middle of a line."""
    place = random.randrange(len(lines))
    lines[place:] = [lines[place][: random.randrange(len(lines[place]) + 1)]]


def end_lines_otherwise(lines: list[str], random: Random) -> None:
    """Come from another system."""
    ending = random.choice(["\r", "\x85", "\u2028", "\x0b", "\x0c"])
    lines[:] = [line + ending for line in lines]


MUTATIONS: tuple[Callable[[list[str], Random], None], ...] = (
    delete_a_line,
    duplicate_a_line,
    swap_two_lines,
    indent_otherwise,
    replace_a_value,
    replace_a_word,
    change_one_character,
    insert_something,
    make_a_long_word,
    nest_deeply,
    repeat_a_block,
    cut_short,
    end_lines_otherwise,
)
"""Each changes a list of at least one line in place."""
