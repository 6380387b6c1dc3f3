"""Runs wirelab and its peers over the same generated captures, checks that they agree, and compares their cost."""
