"""The manual pages, made of the help of the commands, the documents, the shipped configuration and the
forms that read it.
"""
