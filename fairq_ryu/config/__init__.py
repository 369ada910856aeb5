"""Settings: one schema with type, unit, default and bounds; files; external programs.

May import policies.base, model and errors.
A setting of the core is a row in schema.py; a policy declares its own.
"""
