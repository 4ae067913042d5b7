"""The site of the documents: what lies in docs/, and references made of the sources (``./dev docs``)."""
