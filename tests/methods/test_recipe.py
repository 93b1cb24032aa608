"""The paths of fits in docs/contributing.md are those that fits take."""

import re
import sys
from pathlib import Path

import pytest

import manyview as mv
from conftest import blobs

SOURCE = Path(mv.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "contributing.md"


def written_path(estimator):
    """(file, function) of every line of an estimator's list, with those above it in the tree."""
    page = PAGE.read_text(encoding="utf-8").split("### The path of a fit")[1]
    text = page.split(f"`{estimator}(3).fit(")[1].split("```")[1]
    above = {}
    for line in text.splitlines()[1:]:
        indent, function, file = re.match(r"( *)([\w.]+) +(\S+\.py)", line).groups()
        depth = len(indent) // 2
        above = {d: call for d, call in above.items() if d < depth}
        yield (file, function), [above[d] for d in sorted(above)]
        above[depth] = (file, function)


def calls_of(work):
    """Every call into the package while ``work`` runs, with the calls it was made from."""
    calls, stack = [], []

    def note(frame, event, _):
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(str(SOURCE)):
            return
        if event == "call":
            file = Path(code.co_filename).relative_to(SOURCE).as_posix()
            calls.append(((file, code.co_qualname), tuple(stack)))
            stack.append(calls[-1][0])
        else:
            stack.pop()

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


@pytest.fixture(scope="module", params=["RobustWMNMF", "WMNMF"])
def estimator(request):
    return request.param


@pytest.fixture(scope="module")
def calls(estimator):
    model, (views, _) = getattr(mv, estimator)(3, random_state=0), blobs()
    return calls_of(lambda: model.fit(views))


def test_the_path_of_a_fit_is_the_one_written_down(estimator, calls):
    latest = {}
    lines = list(written_path(estimator))
    assert 20 < len(lines) < 50
    for call, above in lines:
        parent = above[-1] if above else None
        inside = [
            at
            for at, (found, stack) in enumerate(calls)
            if found == call and (parent is None or parent in stack)
        ]
        assert inside, f"{call} is not called from {parent}"
        assert inside[-1] >= latest.get(parent, 0), f"{call} comes before what stands above it"
        latest[parent] = inside[0]


def test_data_are_read_scaled_and_measured_once(estimator, calls):
    made = [call for call, _ in calls]
    n_views = len(blobs()[0])
    assert made.count(("data/views.py", "as_views")) == 1
    if estimator == "WMNMF":
        assert made.count(("methods/scaling.py", "fit_scaling")) == 1
        return
    assert made.count(("engines/numpy/robust_scaling.py", "RobustScaling.fit")) == n_views
    assert made.count(("engines/numpy/robust_scaling.py", "RobustScaling.apply")) == n_views
