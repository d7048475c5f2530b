"""Reads instances, certificates, tables and archives, and prints verdicts; outside what has to be trusted.

``instance`` decides *which* problem a certificate is checked against. A mistake here makes the verdict one
about another problem; it cannot prove anything false about the problem that the kernel is given.
"""
