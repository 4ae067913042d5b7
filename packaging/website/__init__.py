"""The site of the documents: what lies in docs/, and references made of the sources (``./dev docs``).

Sphinx builds it, with MyST for Markdown and the theme Furo. MyST follows the links and headings of Markdown
as repository hosts do, so that one document serves the host, the package and the site. Material for MkDocs
was not taken: its maintenance ends in May 2027 (release 9.8.1), and MkDocs has no release since 2024.

The references are made when the site is built, and are not committed: a clone has the same texts in the help
of the commands, in proto/, in the shipped configuration and in fault_codes/.
"""
