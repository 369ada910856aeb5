"""The REST interface and the event stream: requests in, rows out.

May import control, fabric, policies and config, which it reads; it changes the policy and announcements only.
A new resource is an entry of resources.py; its rows are made in views.py, flow_rows.py or
announcement_rows.py; its types are in schema/.
"""
