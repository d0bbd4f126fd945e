"""How Sphinx makes the site; ``build.py`` calls it. The pages are the Markdown that stands in the repository."""

from importlib.util import find_spec
from pathlib import Path

from derivations.site.sources import linkcode_resolve as linkcode_resolve

HERE = Path(__file__).parent

project = "rnn-parity"
copyright = ""  # LICENSE says it
root_doc = "README"
include_patterns = ["README.md", "CONTRIBUTING.md", "derivations/*.md", "derivations/site/**.rst"]
exclude_patterns = [".*", "build", "dist", "numpy_rnn", "torch_rnn", "parity_tests"]

extensions = [
    "myst_parser",
    "sphinx.ext.mathjax",
    "sphinx.ext.autodoc",
    "sphinx.ext.linkcode",
    "derivations.site.equations",
    "derivations.site.sources",
    "derivations.site.reference",
]

# GitHub's Markdown: its dollars, its ```math fences, its anchors of headings.
myst_enable_extensions = ["dollarmath"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 6

# A signature with its types written out is three lines of unions; the text gives types and shapes.
autodoc_typehints = "none"
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}

html_theme = "furo"
html_title = "rnn-parity"
html_copy_source = False
html_use_index = html_domain_indices = False  # the pages of the reference are short, and the search finds the rest
html_show_copyright = False
html_show_sphinx = False
html_show_search_summary = False  # a summary is fetched, which a browser refuses to a page from the disk
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = [(name, {"defer": "defer"}) for name in ("equations.js", "fit.js", "site.js")]
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#1f5f99",
        "color-brand-content": "#1f5f99",
        "site-code-background": "#f5f6f8",
    },
    "dark_css_variables": {
        "color-brand-primary": "#8cc1f2",
        "color-brand-content": "#8cc1f2",
        "site-code-background": "#1d1f23",
    },
}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

# One file and no fonts: pages from the disk need no network.
html_static_path += [str(Path(find_spec("sphinx-mathjax-offline").origin).parent / "static/mathjax/tex-svg.js")]
mathjax_path = "tex-svg.js"
mathjax3_config = {
    "svg": {"fontCache": "global"},
    "tex": {"packages": {"[-]": ["noundefined"]}},  # it writes an unknown command in red, and check.py sees no error
}
