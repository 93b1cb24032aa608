"""Formulas as MathML, written at build time: pages show them without a script and offline."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

#: <munderover> of a letter, its indices and an accent.
_ACCENTED = re.compile(
    r"<munderover>\s*(<mi>\w</mi>)\s*(<mi>\w</mi>|<mrow>(?:(?!<mrow>).)*?</mrow>)\s*"
    r"(<mo[^>]*>[~ˆ¯]</mo>)\s*</munderover>",
    re.DOTALL,
)

logger = logging.getLogger(__name__)


def converted(node: Any, **how: Any) -> str:
    text = node.astext()
    if r"\\" in text and r"\begin" not in text:
        text = rf"\begin{{aligned}}{text}\end{{aligned}}"
    # Two digits after a fraction are its two sides, as TeX has it; docutils reads one number.
    text = re.sub(r"\\([tcd]?frac)(\d)(\d)", r"\\\1{\2}{\3}", text)
    try:
        return _beside(tex2mathml(text, **how))
    except MathError as error:
        logger.warning("formula cannot be shown: %s", error, location=node)
        return ""


def _beside(mathml: str) -> str:
    """Indices of a letter with an accent to its right: docutils puts them below."""
    return _ACCENTED.sub(r"<msub><mover accent='true'>\1\3</mover>\2</msub>", mathml)


def inline(self: Any, node: Any) -> None:
    self.body.append(converted(node))
    raise nodes.SkipNode


def block(self: Any, node: Any) -> None:
    self.body.append(self.starttag(node, "div", CLASS="math-block"))
    self.body.append(f"{converted(node, as_block=True)}</div>\n")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
