"""Outputs of the original programs on small inputs, turned to samples × features."""

from pathlib import Path

import numpy as np

HERE = Path(__file__).parent / "golden"


def load(name):
    with np.load(HERE / f"{name}.npz", allow_pickle=False) as stored:
        return {key: stored[key] for key in stored.files}


def tiny():
    """The shared inputs: views (N×M), starts U (M×K), V (N×K), V*, w, α."""
    z = load("inputs_tiny")
    views = [np.ascontiguousarray(z[f"X{s}"].T) for s in (1, 2, 3)]
    raw = [np.ascontiguousarray(z[f"Xraw{s}"].T) for s in (1, 2, 3)]
    U = [z[f"U{s}"] for s in (1, 2, 3)]
    V = [z[f"V{s}"] for s in (1, 2, 3)]
    return views, raw, U, V, z
