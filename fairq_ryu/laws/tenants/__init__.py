"""Tenants: a layer above a law with a pool, which shares the pool out among tenants first."""
