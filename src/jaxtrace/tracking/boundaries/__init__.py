"""The rules particles meet at the borders of a domain, one family per file."""
