"""The examples of the documents."""

from __future__ import annotations

import re
from dataclasses import dataclass

from places import ROOT


@dataclass
class Example:
    line: int
    code: str
    run: bool
    said: str | None


def examples(page: str) -> list[Example]:
    """The Python blocks of a page, each with the text block that follows it at once."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    found: list[Example] = []
    at = 0
    after_code = False
    while at < len(lines):
        opening = re.fullmatch(r"```(\S*)(.*)", lines[at])
        if opening is None:
            after_code = after_code and not lines[at].strip()
            at += 1
            continue
        end = next(i for i in range(at + 1, len(lines)) if lines[i] == "```")
        body = "\n".join(lines[at + 1 : end]) + "\n"
        if opening[1] == "python":
            flag = opening[2].strip()
            assert flag in ("", "no-run"), f"{page}:{at + 1}: unknown mark {flag!r}"
            found.append(Example(at + 2, body, flag == "", None))
        elif opening[1] == "text" and after_code:
            found[-1].said = body
        after_code = opening[1] == "python"
        at = end + 1
    return found
