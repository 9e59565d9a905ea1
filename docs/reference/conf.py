# SPDX-License-Identifier: Apache-2.0
"""Sphinx's configuration of the reference; scripts/reference.py runs Sphinx."""

import importlib.util
import os
import re

import plain_text

project = "similis"
version = release = re.search(r'SIMILIS_VERSION "(.*)"', open("similis_version.h").read()).group(1)
extensions = ["breathe", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "alabaster"
html_theme_options = {"description": "how alike two images are", "page_width": "960px"}
html_show_sourcelink = False
html_show_copyright = False
html_copy_source = False

breathe_projects = {"similis": os.environ["SIMILIS_DOXYGEN_XML"]}
breathe_default_project = "similis"
breathe_default_members = ("members",)
breathe_domain_by_extension = {"h": "c", "hpp": "cpp"}

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_type_aliases = {"PerAxisInt": "PerAxisInt", "PerAxisFloat": "PerAxisFloat"}

# similis.nn and similis.compat need torch; their page is left out where there is none.
if importlib.util.find_spec("torch") is None:
    exclude_patterns = ["python_torch.rst"]


def setup(app):
    # Before napoleon, which reads the sections and would take plain text for markup.
    app.connect("autodoc-process-docstring", plain_docstring, priority=400)


def plain_docstring(app, what, name, object, options, lines):
    lines[:] = plain_text.restructured(lines)
