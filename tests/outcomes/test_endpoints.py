"""Which value of an event column means the event: read where it is clear, asked where it is not."""

import numpy as np
import pandas as pd
import pytest

from manyview.outcomes import survival
from manyview.outcomes.endpoints import UnclearEvent, is_follow_up, read_events, recognize

TIME, DEAD = np.arange(1.0, 61.0), (np.arange(60) * 7 % 3 > 0).astype(int)
LABELS = np.arange(60) % 2
WORDS = np.array(["alive", "dead"])


def coded(name, values):
    return pd.Series(values, name=name)


@pytest.mark.parametrize(
    "event",
    [
        coded("dead", DEAD),
        coded("dead", DEAD == 1),
        coded("alive", 1 - DEAD),
        coded("is_alive", np.array(["yes", "no"])[DEAD]),
        coded("censored", DEAD == 0),
        coded("censorship", np.array(["censored", "event"])[DEAD]),
        coded("vital_status", WORDS[DEAD]),
        coded("OS_STATUS", np.array(["0:LIVING", "1:DECEASED"])[DEAD]),
        coded("PFS_STATUS", np.array(["0:CENSORED", "1:PROGRESSION"])[DEAD]),
        coded("uncensored", DEAD.astype(float)),
        coded(None, DEAD),
    ],
    ids=lambda event: f"{event.name}={event[0]}",
)
def test_every_clear_coding_gives_the_same_survival(event):
    assert survival(LABELS, TIME, event).p_value == survival(LABELS, TIME, DEAD).p_value


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("censorship", 1 - DEAD),
        ("censored", (1 - DEAD).astype(str)),
        ("OS_censor", 1.0 - DEAD),
        ("cens", DEAD),
        ("vital_status", DEAD),
        ("Vital Status", 1 + DEAD),
        ("status", 1 + DEAD),
        ("survival", 1 - DEAD),
        ("disease_free", np.array(["no", "yes"])[DEAD]),
        ("event", DEAD * 2),
        ("OS_STATUS", np.array(["1:CENSORED", "0:DEAD"])[DEAD]),
        ("survivor", 1 - DEAD),
        ("surviving", 1 - DEAD),
        ("no_event", 1 - DEAD),
        ("lost_to_followup", 1 - DEAD),
    ],
)
def test_an_unclear_coding_is_a_question_with_answers_that_are_read(name, values):
    with pytest.raises(UnclearEvent) as error:
        survival(LABELS, TIME, coded(name, values))
    assert name in str(error.value) and "code it as 1" in str(error.value)
    assert len(error.value.answers) == 2
    happened = str(values[DEAD == 1][0])
    read, told = read_events(values, name, happened)
    np.testing.assert_array_equal(read, DEAD)
    assert name in told or {*map(str, values.tolist())} == {"0", "1"}
    with pytest.raises(ValueError, match="never has the value '9'"):
        read_events(values, name, "9")


def test_missing_events_stay_missing_however_the_event_is_named():
    read, _ = read_events([1, None, 2, "NA"], "status", "2")
    np.testing.assert_array_equal(read, [0, np.nan, 1, np.nan])


def test_recognized_columns_with_an_unclear_event_are_not_used():
    found = recognize({"os_months": [1, 2], "censored": [0, 1], "age": [3, 4]})
    assert found.doubt is not None and found.doubt.answers == ["censored=0", "censored=1"]
    assert recognize({"os_months": [1, 2], "status": [0, 1], "censored": [0, 1]}).doubt is None
    found = recognize({"os_months": [1, 2], "age": [3, 4]})
    assert found[:2] == (None, None) and "no event column was recognized" in found.note


def test_times_of_follow_up_are_known_by_their_headings():
    times = ["os_months", "OS.time", "PFI.time", "Disease Free (Months)", "time", "days_to_death",
             "Months of disease-specific survival", "Progress Free Survival (Months)",
             "follow_up_days"]  # fmt: skip
    assert [name for name in times if not is_follow_up(name)] == []
    others = ["age", "time_of_day", "days_to_birth", "os", "event", "months_of_smoking"]
    assert [name for name in others if is_follow_up(name)] == []
