"""The shapes of the REST interface, as models: rows, requests and parameters."""
