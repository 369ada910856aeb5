"""DropTail: no windows at all."""
