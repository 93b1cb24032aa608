"""How the documentation is built: ``make docs``. Nothing here, and no page, needs the network."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "src"), str(Path(__file__).parent)]

import manyview  # noqa: E402  (from src, above)

project = "manyview"
author = "manyview contributors"
copyright = "manyview contributors"
release = version = manyview.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
    "mathml",
]
# Names of other projects become links with MANYVIEW_DOCS_LINKS, which needs a network.
if os.environ.get("MANYVIEW_DOCS_LINKS"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_timeout = 20
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
        "pandas": ("https://pandas.pydata.org/docs", None),
        "anndata": ("https://anndata.readthedocs.io/en/stable", None),
        "mudata": ("https://mudata.readthedocs.io/stable", None),
        "scanpy": ("https://scanpy.readthedocs.io/en/stable", None),
    }
# The button copies what is typed, without prompts and without what is printed.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
html_math_renderer = "mathml"
myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 3
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["_build", "README.md", "gallery/**/*.ipynb", "gallery/**/*.py"]
templates_path = ["_templates"]
default_role = "py:obj"

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's "Parameters" say it in words
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 10**6,  # times differ between machines and tell a reader nothing
    "write_computation_times": False,
    "abort_on_example_error": True,
}
# Warnings inside examples are part of what they show; as build warnings they would be errors.
warnings.filterwarnings("ignore", category=UserWarning, module="sphinx_gallery")

html_theme = "pydata_sphinx_theme"
html_title = "manyview"
html_static_path = ["_static"]
html_css_files = ["manyview.css"]
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "show_prev_next": True,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "header_links_before_dropdown": 6,
}
