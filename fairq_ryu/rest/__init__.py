"""The REST interface and the event stream: requests in, rows out.

May import control, fabric, policies and config, which it reads; it changes the policy and announcements only.
A new resource is an operation in operations.py, its rows in views.py, its types in schema/.
"""
