"""The types of the REST interface: what the document (openapi.json) and the replies are made from.

May import fabric and model, and pydantic.
A field of a row is added in rows.py, one of the state in state.py, one beside lists of rows in responses.py.
"""
