"""Results: the file format, tables, pictures, the HTML page. Made from stored results alone.

May import errors and ../measure's statistics; matplotlib.
A row of the table is in table.py, a picture in pictures.py.
"""
