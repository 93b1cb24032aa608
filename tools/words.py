"""List phrases that make a reader stop, as hints for a person: python tools/words.py [FILE ...].

Without files: README, the docs, and every text in the sources (docstrings and messages).
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: What to look at twice, and what usually says it better.
PHRASES = {
    r"\b(is|are|was|were) told\b|\btold (apart|of|by)\b": "report, warn, distinguish",
    r"\b(asked|asks) (for|of|to)\b": "requested; use a noun",
    r"\bheed\w*\b": "use, respect",
    r"\bwhom\b|\bnobody\b|\bsomebody\b|\beverybody\b|\banybody\b": "name the reader or the thing",
    r"\bof no matter whom\b|\bso many\b|\bat hand\b|\bas they come\b": "say what it is",
    r"\bstands? in\b|\bin the place of\b": "replaces",
    r"\bbeside\b": "next to, compared with",
    r"\bkept (apart|from)\b|\bleave away\b|\bunless said\b": "separate; omit; by default",
    r"\bthat is what\b|\bwhich may be why\b|\bthe answer\b": "shorten",
    r"\bcounts? as\b": "is treated as",
    r"\blooks? at\b": "uses, checks",
    r"\bwhich way round\b": "orientation",
    r"\bobservations?\b": "sample (outside mathematics)",
    r"\b\w*(neighbour|colour|centre|behaviour|licence|isation)\w*\b": "American spelling",
    r"\b(normal|regular|initial|factor|minim|recogn|standard|summar)is(e|ed|es|ing)\b": "American spelling",
}


def files(arguments: list[str]) -> list[Path]:
    if arguments:
        return [Path(name) for name in arguments]
    return [
        ROOT / "README.md",
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "src").rglob("*.py")),
    ]


def texts(path: Path) -> list[tuple[int, str]]:
    """Return numbered lines; of Python, only those of comments and strings."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return list(enumerate(text.splitlines(), 1))
    kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", None)}
    return [
        (token.start[0] + i, line)
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type in kinds
        for i, line in enumerate(token.string.splitlines())
    ]


def main(arguments: list[str]) -> None:
    found: Counter[str] = Counter()
    for path in files(arguments):
        if {"_build", "generated", "gallery"} & set(path.parts):
            continue
        for number, line in texts(path):
            for phrase, better in PHRASES.items():
                for match in re.finditer(phrase, line, re.IGNORECASE):
                    found[better] += 1
                    if arguments:
                        print(f"{path}:{number}: {match.group()!r} ({better})")
    for better, count in found.most_common():
        print(f"{count:6} {better}")


if __name__ == "__main__":
    main(sys.argv[1:])
