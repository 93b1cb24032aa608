"""Colours of everything that is drawn, on pages and in figures."""

#: Colour-blind safe (Okabe & Ito, then Tol), in an order that keeps neighbours apart; readable on
#: white and on near-black.
PALETTE = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#AA4499",
    "#999933",
    "#6F63BB",
    "#888888",
)
