"""The commands: ``fairq`` with its subcommands, and ``ryu-manager``.

May import everything; nothing imports it.
A subcommand is a module here and a parser in main.py.
"""
