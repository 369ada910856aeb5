"""Results: the file format, tables, pictures, the HTML page. Made from stored results alone.

May import errors, ../measure's statistics and intervals, and ../workloads, which have the rows and pictures.
The file format is in result.py, the form of the tables in table.py, the page in page.py.
"""
