"""How much there is to hold in the head: lines of code, files, functions, and what a fit runs through.

    python benchmarks/size.py            # of this package
    python benchmarks/size.py DIR ...    # lines, files and functions of other trees, by the same counter

A line of code is one that is not blank, no comment and no docstring. A fit "enters" the functions and
modules of ours that run between the call of `fit` and its return, on small arrays in memory.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[1]
SKIPPED = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef
DOCUMENTED = ast.Module | ast.ClassDef | DEFINITIONS


def code_lines(text: str) -> int:
    """Lines with a token that is neither a comment nor part of a docstring."""
    documented = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            documented |= {*range(node.body[0].lineno, node.body[0].end_lineno + 1)}
    found = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SKIPPED:
            found |= {*range(token.start[0], token.end[0] + 1)}
    return len(found - documented)


def n_functions(text: str) -> int:
    return sum(isinstance(node, DEFINITIONS) for node in ast.walk(ast.parse(text)))


def size(folder: Path) -> tuple[int, int, int]:
    """Lines of code, files and functions of a tree of Python files."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py"))]
    return sum(map(code_lines, texts)), len(texts), sum(map(n_functions, texts))


def entered(work: object) -> tuple[int, int, int]:
    """Functions and modules of ours that ``work()`` runs through, and the deepest stack of them."""
    source, calls, depth, deepest = str(ROOT / "src"), set(), 0, 0

    def note(frame, event, _):  # type: ignore[no-untyped-def]
        nonlocal depth, deepest
        code = frame.f_code
        if event in ("call", "return") and code.co_filename.startswith(source):
            if code.co_name.startswith("<"):  # comprehensions, lambdas, module bodies
                return
            depth += 1 if event == "call" else -1
            deepest = max(deepest, depth)
            calls.add((code.co_filename, code.co_qualname))

    sys.setprofile(note)
    try:
        work()  # type: ignore[operator]
    finally:
        sys.setprofile(None)
    return len(calls), len({file for file, _ in calls}), deepest


def main() -> None:
    if len(sys.argv) > 1:
        for name in sys.argv[1:]:
            print(
                f"{name}: {'{:,} lines of code, {} files, {} functions'.format(*size(Path(name)))}"
            )
        return
    package = ROOT / "src" / "manyview"
    print("| | lines of code | files | functions |\n|---|---|---|---|")
    rooms = [
        path for path in sorted(package.iterdir()) if path.is_dir() and any(path.rglob("*.py"))
    ]
    for path in (package, *rooms, ROOT / "tests"):
        lines, files, functions = size(path)
        print(f"| {path.relative_to(ROOT).as_posix()} | {lines:,} | {files} | {functions:,} |")
    import numpy as np

    import manyview as mv

    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    views = [rng.uniform(size=(3, m))[y] + 0.1 * rng.uniform(size=(60, m)) for m in (8, 12)]
    print("\n| a fit | functions | modules | depth |\n|---|---|---|---|")
    for estimator in (mv.RobustWMNMF, mv.WMNMF):
        estimator(3, random_state=0).fit(views)  # imports
        found = entered(lambda estimator=estimator: estimator(3, random_state=0).fit(views))
        print(f"| {estimator.__name__} | {' | '.join(map(str, found))} |")


if __name__ == "__main__":
    main()
