"""The configuration of Sphinx for the site. It is read by Sphinx alone."""

from nodeagent import __version__

project = "nodeagent"
version = release = __version__
html_title = f"nodeagent {__version__}"

extensions = ["myst_parser"]
# The headings that a link may lead to: all, by the names that repository hosts give them.
myst_heading_anchors = 6
# Drawings and output; "sh" and "toml" have their colours.
highlight_language = "text"
# Keys and codes of other programs may end a block that looks like another language.
suppress_warnings = ["misc.highlighting_failure"]

# What is typed keeps its quotes.
smartquotes = False

html_theme = "furo"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_copyright = False
