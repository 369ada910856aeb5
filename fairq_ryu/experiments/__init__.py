"""Experiments: scenarios as small data files; run, result and report are three separate steps."""
