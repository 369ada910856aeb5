"""Several controllers of one fabric, with an OVSDB database between them.

``view``: what the database says, as values. ``ownership``: which controller owns which bridge. ``database``:
the database itself, and its schema beside it. ``settings``: the section ``[cluster]``. How it all works is in
``docs/scaling.md``.
"""
