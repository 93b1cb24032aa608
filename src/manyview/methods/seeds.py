"""The one source of randomness of a fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyview._types import Seed


def generator(random_state: Seed) -> np.random.Generator:
    """The one source of randomness of a fit, from whatever scikit-learn users pass."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return np.random.default_rng(random_state)


def state_of(random_state: Seed) -> Any:
    """The state of a generator that a fit would advance; None for a seed."""
    if isinstance(random_state, np.random.Generator):
        return random_state.bit_generator.state
    return random_state.get_state() if isinstance(random_state, np.random.RandomState) else None


def set_state(random_state: Seed, state: Any) -> None:
    if isinstance(random_state, np.random.Generator):
        random_state.bit_generator.state = state
    elif isinstance(random_state, np.random.RandomState):
        random_state.set_state(state)
