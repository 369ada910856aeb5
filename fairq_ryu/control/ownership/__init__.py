"""Which bridges are this controller's, where several share a fabric, and what follows when that changes? To
the rooms below, a switch that becomes its own has connected, and one that becomes another's has disconnected.

Rooms that it may import: none.
"""
