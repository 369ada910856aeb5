"""The window policies, one module each with its settings, and the engine that runs them. No Ryu, no clock.

May import model, errors and setting only. base.py is the interface, parts/ has what laws share,
common_settings.py the settings that several policies declare.
A new policy is a module here (set-up finds its class by its ``name``), a module in apps/, their test,
and a page in docs/policies/.
"""
