"""The types of the REST interface: what the document (openapi.json) and the replies are made from.

May import fabric and model, and pydantic.
A field of a reply is added in rows.py or state.py.
"""
