"""The subcommands of ``fairq``: a module for each, with NAME, HELP, ``add_arguments`` and ``run``.

Every start of ``fairq`` loads all of them: only ``run`` imports what does the work.
A new command is a module here and an entry in ../main.py.
"""
