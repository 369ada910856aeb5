"""What the policies of all laws share, and the engine that runs them. No Ryu, no clock.

May import model, errors, setting and the specs of laws only; it knows no law. base.py is the interface,
parts/ has what laws share, common_settings.py the settings that several policies declare. The policies are
in ``fairq_ryu/laws``.
"""
