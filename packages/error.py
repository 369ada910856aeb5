"""Errors of ``python -m packages`` that somebody at the keyboard can correct."""

from __future__ import annotations


class PackagingError(Exception):
    """Something that a package needs is missing or wrong; the text says what, and what to do."""
