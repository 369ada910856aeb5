"""The command ``fairq`` with its subcommands.

May import agent, client, config, experiments, errors and rich; nothing imports it.
A subcommand is a module in commands/ and an entry of COMMANDS in main.py.
"""
