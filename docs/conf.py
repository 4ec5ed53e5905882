"""How Sphinx builds the site: `make docs`, with no network at build time or when it is read."""

import sys
from pathlib import Path

import levymc

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "levymc"
author = "levymc contributors"
copyright = author
release = version = levymc.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinxcontrib.bibtex",
    "sections",  # Targets, Not valid when, Departures and citations of our docstrings
    "mathml",
    "scripts",  # c_α and x^{1/α} in running text
]
exclude_patterns = ["_build", "results/*/**"]
nb_execution_mode = "off"  # the tests run every example
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
bibtex_bibfiles = ["../refs.bib"]
bibtex_reference_style = "author_year"

autodoc_typehints = "none"
autodoc_inherit_docstrings = False
autodoc_preserve_defaults = True  # as written, not a module with its path
autodoc_member_order = "groupwise"
default_role = "py:obj"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

html_theme = "sphinx_book_theme"
html_title = f"levymc {release}"
html_context = {"default_mode": "auto"}  # the theme complains of none
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/icon.svg"
html_show_search_summary = False  # they are fetched, which browsers refuse for files
html_theme_options = {
    "show_toc_level": 2,
    "home_page_in_toc": True,
    "use_download_button": False,
    "use_fullscreen_button": False,
    "navigation_with_keys": False,
    # The sidebar has the search; without this a second one stands above the page.
    "navbar_start": [],
    "navbar_center": [],
    "navbar_end": [],
    "navbar_persistent": [],
    "pygments_light_style": "a11y-light",
    "pygments_dark_style": "a11y-dark",
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
