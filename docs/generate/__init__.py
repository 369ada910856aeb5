"""Writes the tables and hex dumps of the documents that follow from code or data: ``make docs``."""
