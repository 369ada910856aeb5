"""Settings with type, unit, default and bounds; configuration files; external programs.

May import policies.base, model, setting and errors.
A setting of the core is an entry of schema.py; a policy declares its own on its class.
"""
